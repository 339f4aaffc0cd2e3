"""Partial decryption by one trustee, with a proof of correctness."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from secagg.errors import RemoteProtocolError
from secagg.paillier import Ciphertexts
from secagg.paillier.ciphertexts import CiphertextGroup

PHASE = "threshold_decryption"
HEADER = struct.Struct("<4sB32sB32s")  # magic, version, key id, trustee, digest
MAGIC = b"SAPD"
VERSION = 1


def violation(sender: int | None, check: str, message: str) -> RemoteProtocolError:
    """Return the error for an invalid message of trustee `sender` (None if unknown)."""
    return RemoteProtocolError(message, sender=sender, phase=PHASE, check=check)


@dataclass(frozen=True, eq=False)
class PartialDecryption:
    """Partial decryption of a batch by one trustee; fewer than t reveal nothing.

    `KeyShare.decrypt_partially` makes a partial decryption, and `ThresholdKey.load_partial`
    decodes a trustee's bytes.

    Attributes
    ----------
    key_id : bytes
        Id of the `ThresholdKey`, 32 bytes.
    index : int
        i, the number of the trustee, 1 ≤ i ≤ l.
    digest : bytes
        `Ciphertexts.digest` of the batch, 32 bytes.
    values : Ciphertexts
        c_i = c^(2 Δ s_i) for every ciphertext c of the batch.
    proof : bytes
        Proof that `values` are these powers.
    """

    key_id: bytes
    index: int
    digest: bytes
    values: Ciphertexts
    proof: bytes

    def __repr__(self) -> str:
        return (
            f"PartialDecryption(trustee {self.index}, {len(self.values)} ciphertexts, "
            f"{self.key_id.hex()[:8]})"
        )

    def to_bytes(self) -> bytes:
        """Return the bytes to send; send them only to parties who may read the plaintexts."""
        head = HEADER.pack(MAGIC, VERSION, self.key_id, self.index, self.digest)
        return head + self.proof + self.values.to_bytes()


def decode_partial(
    data: bytes, group: CiphertextGroup, key_id: bytes, trustees: int, proof_bytes: int
) -> PartialDecryption:
    """Decode a trustee's bytes; see `ThresholdKey.load_partial`."""
    if len(data) < HEADER.size + proof_bytes:
        raise violation(None, "length", "too short for a partial decryption")
    magic, version, found, index, digest = HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise violation(None, "version", f"not a partial decryption of version {VERSION}")
    if found != key_id:
        mine, theirs = key_id.hex()[:8], found.hex()[:8]
        raise violation(None, "key", f"made with a share of the key {theirs}, not {mine}")
    if not 1 <= index <= trustees:
        raise violation(None, "trustee", f"trustee {index}; there are 1 to {trustees}")
    body = data[HEADER.size + proof_bytes :]
    count, rest = divmod(len(body), group.modulus.width)
    if rest:
        raise violation(index, "length", f"{len(body)} bytes are not a whole number of values")
    try:
        values = group.load(body, count)
    except RemoteProtocolError:
        raise violation(index, "values", "one of the values is not in Z*_{n²}") from None
    return PartialDecryption(found, index, digest, values, data[HEADER.size :][:proof_bytes])
