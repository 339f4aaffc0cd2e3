"""Digests, keys, shares and signed bytes: docs/protocol.md §5.1 to §5.6, §5.10, §5.12."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

from independent_primitives import curve_key, hkdf, integers, number, sha256, u8, u64le

SHAMIR_PRIME = 2**61 - 1  # §5.4
Keys = tuple[bytes, bytes, bytes]
"""c, s and e, the public keys of sealing, of masking and, in suite hybrid, of the KEM."""


def fingerprint(e: bytes) -> bytes:
    """§5.2: what stands for e in all that is hashed or signed; nothing in suite x25519."""
    return sha256(e) if e else b""


def client_id(name: str) -> int:
    """§5.12."""
    text = unicodedata.normalize("NFC", name).encode()
    return number(sha256(b"secagg/2 client id", text)[:8])


def masking_private(seed: bytes) -> bytes:
    """§5.1: the private key of masks, of the seed that is shared."""
    return hkdf(seed, bytes(32), b"secagg/4 masking key", 32)


def masking_key(seed: bytes) -> bytes:
    """§5.1: s, of the seed that is shared."""
    return curve_key(masking_private(seed))


def roster_digest(keys: Mapping[int, Keys]) -> bytes:
    """§5.2."""
    entries = (u64le(u) + c + s + fingerprint(e) for u, (c, s, e) in sorted(keys.items()))
    return sha256(b"secagg/4 roster", *entries)


def session_id(params: bytes, roster: bytes) -> bytes:
    return sha256(b"secagg/4 session", params, roster)


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


def rebuilt(shares: Mapping[int, bytes]) -> bytes | None:
    """The secret of 32 bytes; None if the limbs are of no secret."""
    found = combine(shares)
    if any(x >= 2**56 for x in found[:4]) or found[4] >= 2**32:
        return None
    return b"".join(x.to_bytes(7, "little") for x in found[:4]) + found[4].to_bytes(4, "little")


def commitment(session: bytes, u: int, b: bytes) -> bytes:
    """§5.6."""
    return sha256(b"secagg/2 self mask commitment", session, u64le(u), b)


def signed_keys(params: bytes, u: int, c: bytes, s: bytes, e: bytes) -> bytes:
    """§5.10."""
    return b"secagg/4 signed keys" + params + u64le(u) + u8(0) + c + s + fingerprint(e)


def signed_survivors(session: bytes, u: int, survivors: bytes) -> bytes:
    return b"secagg/2 signed survivors" + session + u64le(u) + u8(3) + survivors
