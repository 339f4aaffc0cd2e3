"""Share of a threshold key: the secret of a trustee."""

from __future__ import annotations

import os
import struct
from typing import Self

from secagg._check import as_bytes, check_integer, check_kind
from secagg._secrets import Confined, without_frames
from secagg.encoding import Entropy
from secagg.errors import ParameterError
from secagg.paillier import Ciphertexts
from secagg.paillier.gmp import gmpy2
from secagg.threshold.key import ThresholdKey
from secagg.threshold.partials import PartialDecryption

HEADER = struct.Struct("<4sB32sB")  # magic, version, key id, trustee
MAGIC = b"SAKS"
VERSION = 1


class KeyShare(Confined):
    """A trustee's secret share of a threshold key, made by the dealer.

    A trustee must choose the ciphertexts to decrypt. If a trustee decrypted any ciphertext, the
    aggregator could read single clients' vectors. So load each message with
    ``key.public_key.load_vector(data, packing, summands=…)``, with the round's number of
    vectors, and decrypt one sum a round.

    **This finds mistakes, not lies: a single vector is safe only as long as the aggregator
    follows the protocol.** The number of vectors is in an unauthenticated header, and no
    trustee sees the encrypted count. See `secagg.threshold` for the attack by multiplying one
    client's vector. Against a deviating aggregator, load every client's authenticated message,
    add the messages, and decrypt that sum only. The party that combines must add the messages,
    too.

    Parameters
    ----------
    key : ThresholdKey
        Public side of the key.
    index : int
        i, the number of the trustee, 1 ≤ i ≤ l.
    secret : int
        s_i, the share, 0 ≤ s_i < n².

    Raises
    ------
    ParameterError
        The index is out of range, or the secret, which the message omits, does not match v_i.

    Notes
    -----
    Not constant-time: gmpy2's arithmetic takes time that depends on secret numbers.

    A share cannot be pickled. Export the share by `to_bytes`. Copies are the share itself.
    """

    _remedy = "export it explicitly with to_bytes() and load that with KeyShare.from_bytes"

    @without_frames
    def __init__(self, key: ThresholdKey, index: int, secret: int) -> None:
        check_kind("key", key, ThresholdKey, "a ThresholdKey")
        check_integer("index", index, 1, key.trustees)
        self.key = key
        self.index = int(index)
        square = key.public_key.modulus.value
        # the range first: the power of a number without bound would never end
        in_range, image = 0 <= secret < square, key.images[self.index - 1]
        if not in_range or gmpy2.powmod(key.base, key.delta * secret, square) != image:
            raise ParameterError(
                f"the share is not that of trustee {index} of the key {key.key_id.hex()[:8]}: "
                "damaged, or of another dealing; restore it from a copy"
            )
        self._secret = int(secret)

    def __repr__(self) -> str:
        return f"KeyShare(trustee {self.index} of {self.key!r})"

    @without_frames
    def decrypt_partially(
        self, ciphertexts: Ciphertexts, entropy: Entropy = os.urandom
    ) -> PartialDecryption:
        """Return this trustee's partial decryption of a batch, with the proof.

        Parameters
        ----------
        ciphertexts : Ciphertexts
            Ciphertexts of an encrypted vector, ``vector.ciphertexts``.
        entropy : callable
            Source of the proof's nonce. The nonce is hedged with share and batch: if the source
            repeats bytes, nonces of different batches still differ.

        Raises
        ------
        ParameterError
            The ciphertexts are under another key.
        """
        key = self.key
        key.check_ciphertexts(ciphertexts)
        x = key.delta * self._secret
        group = key.public_key
        values = Ciphertexts(group, group.modulus.power(ciphertexts.batch, 2 * x), fresh=True)
        statement = key.statement(self.index, ciphertexts, values)
        proof = statement.prove(x, key.exponent_bits, entropy)
        return PartialDecryption(key.key_id, self.index, ciphertexts.digest(), values, proof)

    def to_bytes(self) -> bytes:
        """Return the secret share as bytes, for a file that only the trustee can read."""
        head = HEADER.pack(MAGIC, VERSION, self.key.key_id, self.index)
        return head + self._secret.to_bytes(self.key.public_key.modulus.width, "little")

    @classmethod
    @without_frames
    def from_bytes(cls, data: bytes, key: ThresholdKey) -> Self:
        """Decode the output of `to_bytes`, given the public side of the same key.

        Raises
        ------
        ParameterError
            The bytes, which the message omits, are damaged or are not a share of this key.
        """
        check_kind("key", key, ThresholdKey, "a ThresholdKey")
        data = as_bytes(data, "a share")
        if len(data) != HEADER.size + key.public_key.modulus.width:
            raise ParameterError(f"{len(data)} bytes are not a share of this key")
        magic, version, key_id, index = HEADER.unpack_from(data)
        if magic != MAGIC or version != VERSION or key_id != key.key_id:
            raise ParameterError(
                f"not a share, of version {VERSION}, of the key {key.key_id.hex()[:8]}"
            )
        return cls(key, index, int.from_bytes(data[HEADER.size :], "little"))
