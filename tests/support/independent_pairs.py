"""Keys, boxes and deposits of two clients: docs/protocol.md §5.3, §5.5 and §5.16.

u is the sender and v the receiver; a pair is the keys of both by their ids. `e` and `ct` are
empty in suite x25519, and so are p, q and the secret of the KEM.
"""

from __future__ import annotations

from collections.abc import Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from independent_keys import Keys, fingerprint
from independent_primitives import hkdf, ids, sha256, split, u8


def seal_info(pair: Mapping[int, Keys], u: int, v: int) -> bytes:
    (c_lo, s_lo, _), (c_hi, s_hi, _) = (keys for _, keys in sorted(pair.items()))
    both = c_lo + s_lo + c_hi + s_hi
    return b"secagg/4 seal" + ids([u, v]) + both + fingerprint(pair[v][2])


def seal_base(
    session: bytes, sealing: bytes, masking: bytes, pair: Mapping[int, Keys], u: int, v: int
) -> bytes:
    """B, of the two secrets that X25519 gives."""
    return hkdf(sealing + masking, session, seal_info(pair, u, v), 32)


def box_info(u: int, v: int, ct: bytes) -> bytes:
    return b"secagg/4 box" + ids([u, v]) + fingerprint(ct)


def box_key(session: bytes, base: bytes, secret: bytes, u: int, v: int, ct: bytes) -> bytes:
    """The key of one box, of B and the secret of the KEM."""
    return hkdf(base + secret, session, box_info(u, v, ct), 32)


def sealing_data(session: bytes, u: int, v: int) -> bytes:
    """§5.5: the associated data."""
    return b"secagg/2 shares" + session + ids([u, v]) + u8(1)


def seal(key: bytes, content: bytes, session: bytes, u: int, v: int) -> bytes:
    return AESGCM(key).encrypt(bytes(12), content, sealing_data(session, u, v))


def unseal(key: bytes, sealed: bytes, session: bytes, u: int, v: int) -> bytes | None:
    try:
        return AESGCM(key).decrypt(bytes(12), sealed, sealing_data(session, u, v))
    except InvalidTag:
        return None


def agreement_info(pair: Mapping[int, Keys]) -> bytes:
    (_, s_lo, _), (_, s_hi, _) = (keys for _, keys in sorted(pair.items()))
    return b"secagg/4 agreement" + ids(sorted(pair)) + s_lo + s_hi


def agreement(session: bytes, masking: bytes, pair: Mapping[int, Keys]) -> bytes:
    """A, of the secret that the masking keys give."""
    return hkdf(masking, session, agreement_info(pair), 32)


def mask_key(session: bytes, agreed: bytes, p: Mapping[int, bytes]) -> bytes:
    """The key of the pair's mask, of A and, by its sender, each p of the two."""
    (lo, p_lo), (hi, p_hi) = sorted(p.items())
    return hkdf(agreed + p_lo + p_hi, session, b"secagg/4 pairwise mask" + ids([lo, hi]), 16)


def contribution(session: bytes, masking_seed: bytes, u: int, v: int) -> tuple[bytes, bytes]:
    """p and q of u for v."""
    info = b"secagg/4 contribution" + ids([u, v])
    p, q = split(hkdf(masking_seed, session, info, 64), 32)
    return p, q


def check(session: bytes, u: int, v: int, p: bytes, q: bytes) -> bytes:
    """The check of u for v."""
    return sha256(b"secagg/4 check", session, ids([u, v]), p, q)


def deposit(session: bytes, u: int, v: int, p: bytes, q: bytes) -> bytes:
    """The deposit of u for v, of p of u for v and q of v for u; from a deposit it makes p."""
    pad = hkdf(q, session, b"secagg/4 deposit" + ids([u, v]), 32)
    return bytes(a ^ b for a, b in zip(p, pad, strict=True))
