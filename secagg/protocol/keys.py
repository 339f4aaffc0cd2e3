"""Keys: X25519 agreement, HKDF-SHA256 under separate labels, AES-256-GCM sealed shares, masks.

Every derived key is bound to the session (as HKDF's salt), to its purpose (a label), to both
ids and to their public keys. A sealing key protects one message in one direction, so its nonce
is zero: no key is ever used twice. A mask key is expanded by AES-128-CTR; its stream is uniform
over [0, R)^d for every R.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from secagg import _fast
from secagg.encoding import Entropy, Lanes, Ring

__all__ = [
    "KEY_BYTES",
    "SEED_BYTES",
    "TAG_BYTES",
    "KeyPair",
    "MaskSum",
    "commitment",
    "is_usable",
    "open_sealed",
    "pairwise_mask_key",
    "roster_digest",
    "seal",
    "seal_keys",
    "self_mask_key",
    "session_id",
    "subtracts",
]

KEY_BYTES = 32
SEED_BYTES = 32
TAG_BYTES = 16
_MASK_KEY_BYTES = 16
_SHARE_KEYS_ROUND = 1
_P = 2**255 - 19


class KeyPair:
    """X25519 key pair (RFC 7748), fresh for every session.

    Parameters
    ----------
    seed : bytes
        32 bytes, the private scalar before clamping. Shares of s_u are shares of it.
    """

    __slots__ = ("_private", "public", "seed")

    def __init__(self, seed: bytes) -> None:
        self.seed = seed
        self._private = X25519PrivateKey.from_private_bytes(seed)
        self.public = self._private.public_key().public_bytes_raw()

    def __repr__(self) -> str:
        """Show the public key only."""
        return f"KeyPair(public={self.public.hex()})"

    @classmethod
    def generate(cls, entropy: Entropy) -> KeyPair:
        """Draw a fresh key pair."""
        return cls(entropy(SEED_BYTES))

    def agree(self, peer: bytes) -> bytes | None:
        """Return the shared secret, or None if the peer's key is not usable.

        Unusable keys are of low order (RFC 7748 §6.1) or not canonical, 2^255 − 19 or more.
        X25519 takes the latter for another, so one key could join twice under two spellings.
        The result is not a key: only the functions below may use it.
        """
        if int.from_bytes(peer, "little") >= _P:
            return None
        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(peer))
        except ValueError:
            return None


def is_usable(public: bytes) -> bool:
    """Return whether a public key is canonical and not of low order."""
    return _PROBE.agree(public) is not None


_PROBE = KeyPair(bytes(range(SEED_BYTES)))


def roster_digest(entries: list[tuple[int, bytes, bytes]]) -> bytes:
    """Return SHA-256 over every client of U1: (id, sealing key, masking key), ascending ids."""
    joined = b"".join(struct.pack("<Q", u) + c + s for u, c, s in entries)
    return hashlib.sha256(b"secagg/1 roster" + joined).digest()


def session_id(params_digest: bytes, roster: bytes) -> bytes:
    """Return the session's identifier: its parameters and the fresh keys of its clients."""
    return hashlib.sha256(b"secagg/1 session" + params_digest + roster).digest()


def seal_keys(
    shared: bytes, session: bytes, mine: tuple[int, bytes], theirs: tuple[int, bytes]
) -> tuple[bytes, bytes]:
    """Return the AES-256 keys of the one message to the peer and of the one from it.

    Both come from one derivation over the ascending ids; the first half belongs to the message
    from the lower id to the higher. `shared` is the X25519 secret of the two sealing keys;
    `mine` and `theirs` are (id, public sealing key).
    """
    derived = _derive(shared, session, _pair(b"secagg/1 seal", mine, theirs), 2 * KEY_BYTES)
    upward, downward = derived[:KEY_BYTES], derived[KEY_BYTES:]
    return (upward, downward) if mine < theirs else (downward, upward)


def seal(key: bytes, session: bytes, sender: int, receiver: int, shares: bytes) -> bytes:
    """Encrypt and authenticate the shares that `sender` gives `receiver` (round 1)."""
    return AESGCM(key).encrypt(bytes(12), shares, _associated_data(session, sender, receiver))


def open_sealed(
    key: bytes, session: bytes, sender: int, receiver: int, sealed: bytes
) -> bytes | None:
    """Return the shares, or None if they were altered, swapped, reflected or replayed."""
    try:
        return AESGCM(key).decrypt(
            bytes(12), sealed, _associated_data(session, sender, receiver)
        )
    except InvalidTag:
        return None


def pairwise_mask_key(
    shared: bytes, session: bytes, mine: tuple[int, bytes], theirs: tuple[int, bytes]
) -> bytes:
    """Return the PRG key of s_uv (Bonawitz 2017, round 2); the same for u and v.

    `shared` is the X25519 secret of the two masking keys; `mine` and `theirs` are (id, public
    masking key).
    """
    info = _pair(b"secagg/1 pairwise mask", mine, theirs)
    return _derive(shared, session, info, _MASK_KEY_BYTES)


def self_mask_key(seed: bytes, session: bytes, client_id: int) -> bytes:
    """Return the PRG key of b_u (Bonawitz 2017, round 2)."""
    info = b"secagg/1 self mask" + struct.pack("<Q", client_id)
    return _derive(seed, session, info, _MASK_KEY_BYTES)


def subtracts(u: int, v: int) -> bool:
    """Return True for v < u: client u subtracts its mask with v (Bonawitz 2017, §4)."""
    return v < u


@dataclass
class MaskSum:
    """Masks to be added or subtracted together, in one pass over the vector."""

    _keys: list[bytes] = field(default_factory=list, repr=False)
    _signs: bytearray = field(default_factory=bytearray, repr=False)

    def add(self, key: bytes, *, negate: bool = False) -> None:
        """Count in PRG(key), 16 bytes, with the given sign."""
        self._keys.append(key)
        self._signs.append(negate)

    def apply(self, values: Lanes, ring: Ring) -> None:
        """Add all masks to `values` modulo R, in place.

        Values lie in [0, R) before and after, unless R is a power of two: then the result is
        congruent, and ``ring.reduce`` brings it back.
        """
        keys, signs = b"".join(self._keys), bytes(self._signs)
        if ring.is_power_of_two:
            _fast.mask_words(values, keys, signs)
        else:
            _fast.mask_mod(values.view(np.uint64), keys, signs, ring.modulus)


def commitment(seed: bytes, session: bytes, client_id: int) -> bytes:
    """Return the commitment to b_u, checked once it has been rebuilt.

    Hiding because b_u is 32 uniform bytes, binding because SHA-256 is collision resistant.
    """
    label = b"secagg/1 self mask commitment"
    return hashlib.sha256(label + session + struct.pack("<Q", client_id) + seed).digest()


def _derive(secret: bytes, session: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=session, info=info).derive(secret)


def _pair(label: bytes, mine: tuple[int, bytes], theirs: tuple[int, bytes]) -> bytes:
    """Return the label of a common key: ascending ids, then their public keys."""
    (u, u_key), (v, v_key) = sorted((mine, theirs))
    return label + struct.pack("<QQ", u, v) + u_key + v_key


def _associated_data(session: bytes, sender: int, receiver: int) -> bytes:
    return (
        b"secagg/1 shares" + session + struct.pack("<QQB", sender, receiver, _SHARE_KEYS_ROUND)
    )
