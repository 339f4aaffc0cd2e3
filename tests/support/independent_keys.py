"""Digests, keys, shares and signed bytes: docs/protocol.md §5.2 to §5.6, §5.10, §5.12."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from independent_primitives import hkdf, integers, number, sha256, split, u8, u64le

SHAMIR_PRIME = 2**61 - 1  # §5.4
Keys = tuple[bytes, bytes]  # c and s, the public keys of sealing and masking


def client_id(name: str) -> int:
    """§5.12."""
    text = unicodedata.normalize("NFC", name).encode()
    return number(sha256(b"secagg/2 client id", text)[:8])


def roster_digest(keys: Mapping[int, Keys]) -> bytes:
    """§5.2."""
    return sha256(b"secagg/2 roster", *(u64le(u) + c + s for u, (c, s) in sorted(keys.items())))


def session_id(params: bytes, roster: bytes) -> bytes:
    return sha256(b"secagg/2 session", params, roster)


def seal_info(pair: Mapping[int, Keys]) -> bytes:
    """§5.3, of two clients."""
    (lo, keys_lo), (hi, keys_hi) = sorted(pair.items())
    return b"secagg/3 seal" + u64le(lo) + u64le(hi) + b"".join(keys_lo + keys_hi)


def mask_info(pair: Mapping[int, Keys]) -> bytes:
    (lo, (_, s_lo)), (hi, (_, s_hi)) = sorted(pair.items())
    return b"secagg/2 pairwise mask" + u64le(lo) + u64le(hi) + s_lo + s_hi


def sealing_keys(session: bytes, sealing: bytes, masking: bytes, pair: Mapping) -> list[bytes]:
    """The key from the lower id to the higher, and the one back; of the two secrets shared."""
    return split(hkdf(sealing + masking, session, seal_info(pair), 64), 32)


def pairwise_key(session: bytes, masking: bytes, pair: Mapping) -> bytes:
    return hkdf(masking, session, mask_info(pair), 16)


def self_mask_key(session: bytes, u: int, b: bytes) -> bytes:
    return hkdf(b, session, b"secagg/2 self mask" + u64le(u), 16)


def limbs(secret: bytes) -> list[int]:
    """§5.4: of 7, 7, 7, 7 and 4 bytes."""
    return integers(secret, 7)


def share(constants: list[int], coefficients: Iterable[list[int]], x: int) -> bytes:
    """The polynomials at X = x; rows of `coefficients` are a_1, a_2, … of all limbs."""
    values = [0] * len(constants)
    for row in (*reversed([*coefficients]), constants):  # Horner
        pairs = zip(values, row, strict=True)
        values = [(value * x + a) % SHAMIR_PRIME for value, a in pairs]
    return b"".join(map(u64le, values))


def combine(shares: Mapping[int, bytes]) -> list[int]:
    """The limbs, of shares by their points."""
    rows = []
    for x_i, values in shares.items():
        factor = 1
        for x_j in shares.keys() - {x_i}:
            factor = factor * x_j * pow(x_j - x_i, -1, SHAMIR_PRIME) % SHAMIR_PRIME
        rows.append([factor * value for value in integers(values)])
    return [sum(column) % SHAMIR_PRIME for column in zip(*rows, strict=True)]


def rebuilt(shares: Mapping[int, bytes]) -> bytes:
    """The secret of 32 bytes."""
    found = combine(shares)
    return b"".join(x.to_bytes(7, "little") for x in found[:4]) + found[4].to_bytes(4, "little")


def sealing_data(session: bytes, sender: int, receiver: int) -> bytes:
    """§5.5: the associated data."""
    return b"secagg/2 shares" + session + u64le(sender) + u64le(receiver) + u8(1)


def seal(key: bytes, share: bytes, session: bytes, sender: int, receiver: int) -> bytes:
    return AESGCM(key).encrypt(bytes(12), share, sealing_data(session, sender, receiver))


def unseal(
    key: bytes, sealed: bytes, session: bytes, sender: int, receiver: int
) -> bytes | None:
    try:
        return AESGCM(key).decrypt(bytes(12), sealed, sealing_data(session, sender, receiver))
    except InvalidTag:
        return None


def commitment(session: bytes, u: int, b: bytes) -> bytes:
    """§5.6."""
    return sha256(b"secagg/2 self mask commitment", session, u64le(u), b)


def signed_keys(params: bytes, u: int, c: bytes, s: bytes) -> bytes:
    """§5.10."""
    return b"secagg/2 signed keys" + params + u64le(u) + u8(0) + c + s


def signed_survivors(session: bytes, u: int, survivors: bytes) -> bytes:
    return b"secagg/2 signed survivors" + session + u64le(u) + u8(3) + survivors
