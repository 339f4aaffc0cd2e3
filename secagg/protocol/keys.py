"""Keys of clients, the sealing (encryption) of shares, and the masks.

Two clients agree on a secret by X25519, and HKDF-SHA256 derives keys from it. Every key is
bound to the session (as HKDF's salt), to its purpose (a label), to both ids and their public
keys. AES-256-GCM seals shares. Each of its keys encrypts one message, so the nonce is always
zero. AES-128-CTR expands a mask key to a stream that is uniform over [0, R)^d for every R.
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
from secagg._secrets import Confined
from secagg._threads import in_slices
from secagg.encoding import Entropy, Lanes, Ring

KEY_BYTES = 32
SEED_BYTES = 32
TAG_BYTES = 16
_NONCE = bytes(12)  # each key seals one message
_MASK_KEY_BYTES = 16
_SHARE_KEYS_ROUND = 1
_SLICE_BYTES = 1 << 14  # of a vector, at least, for a thread
_P = 2**255 - 19


class KeyPair(Confined):
    """X25519 key pair (RFC 7748), fresh for every session.

    Parameters
    ----------
    seed : bytes
        Private scalar before clamping, 32 bytes. The shares of s_u are shares of this seed.

    Attributes
    ----------
    public : bytes
        Public key, 32 bytes.
    """

    __slots__ = ("_private", "public", "seed")
    _remedy = "it is for one session in one process"

    def __init__(self, seed: bytes) -> None:
        self.seed = seed
        self._private = X25519PrivateKey.from_private_bytes(seed)
        self.public = self._private.public_key().public_bytes_raw()

    def __repr__(self) -> str:
        return f"KeyPair(public={self.public.hex()})"

    @classmethod
    def generate(cls, entropy: Entropy) -> KeyPair:
        """Draw a fresh key pair."""
        return cls(entropy(SEED_BYTES))

    def agree(self, peer: bytes) -> bytes | None:
        """Return the X25519 secret shared with a peer's public key, or None if it is unusable.

        Keys of low order are unusable (RFC 7748 §6.1), and so are numbers from 2^255 − 19 on:
        X25519 reduces them, so one key could join twice in two encodings. Pass the secret to
        `seal_keys` or `pairwise_mask_key`; it is not itself a key.
        """
        if int.from_bytes(peer, "little") >= _P:
            return None
        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(peer))
        except ValueError:
            return None


def is_usable(public: bytes) -> bool:
    """Return whether an X25519 public key is canonical and not of low order."""
    return _PROBE.agree(public) is not None


_PROBE = KeyPair(bytes(range(SEED_BYTES)))


def roster_digest(entries: list[tuple[int, bytes, bytes]]) -> bytes:
    """Return the SHA-256 of all entries (id, sealing key, masking key) of U1, ascending ids."""
    joined = b"".join(struct.pack("<Q", u) + c + s for u, c, s in entries)
    return hashlib.sha256(b"secagg/2 roster" + joined).digest()


def session_id(params_digest: bytes, roster: bytes) -> bytes:
    """Return the session's identifier: SHA-256 of the digests of parameters and roster."""
    return hashlib.sha256(b"secagg/2 session" + params_digest + roster).digest()


def seal_keys(
    shared: bytes, session: bytes, mine: tuple[int, bytes], theirs: tuple[int, bytes]
) -> tuple[bytes, bytes]:
    """Return two AES-256 keys: of the message to the peer, and of the message from the peer.

    `shared` is the X25519 secret of the two sealing keys; `mine` and `theirs` are (id, public
    sealing key). The first half of the derived bytes is for the lower id's message.
    """
    derived = _derive(shared, session, _pair(b"secagg/2 seal", mine, theirs), 2 * KEY_BYTES)
    upward, downward = derived[:KEY_BYTES], derived[KEY_BYTES:]
    return (upward, downward) if mine < theirs else (downward, upward)


def seal(key: bytes, session: bytes, sender: int, receiver: int, shares: bytes) -> bytes:
    """Return the shares of `sender` for `receiver`, encrypted and authenticated (round 1)."""
    return AESGCM(key).encrypt(_NONCE, shares, _associated_data(session, sender, receiver))


def open_sealed(
    key: bytes, session: bytes, sender: int, receiver: int, sealed: bytes
) -> bytes | None:
    """Return the shares that `seal` encrypted, or None if key, ids, session or bytes differ."""
    try:
        return AESGCM(key).decrypt(_NONCE, sealed, _associated_data(session, sender, receiver))
    except InvalidTag:
        return None


def pairwise_mask_key(
    shared: bytes, session: bytes, mine: tuple[int, bytes], theirs: tuple[int, bytes]
) -> bytes:
    """Return the key of the mask PRG(s_uv), 16 bytes, the same for u and v (Bonawitz 2017).

    `shared` is the X25519 secret of the two masking keys; `mine` and `theirs` are (id, public
    masking key).
    """
    info = _pair(b"secagg/2 pairwise mask", mine, theirs)
    return _derive(shared, session, info, _MASK_KEY_BYTES)


def self_mask_key(seed: bytes, session: bytes, client_id: int) -> bytes:
    """Return the key of the mask PRG(b_u), 16 bytes, from its seed b_u (Bonawitz 2017)."""
    info = b"secagg/2 self mask" + struct.pack("<Q", client_id)
    return _derive(seed, session, info, _MASK_KEY_BYTES)


def subtracts(u: int, v: int) -> bool:
    """Return True if client u subtracts its mask with v: v < u (Bonawitz 2017, §4)."""
    return v < u


@dataclass
class MaskSum:
    """Collection of masks that `apply` adds to a vector in one pass; see `add`."""

    _keys: list[bytes] = field(default_factory=list, repr=False)
    _signs: bytearray = field(default_factory=bytearray, repr=False)

    def add(self, key: bytes, *, negate: bool = False) -> None:
        """Collect the mask PRG(key), to be added, or subtracted if `negate`; 16-byte key."""
        self._keys.append(key)
        self._signs.append(negate)

    def apply(self, values: Lanes, ring: Ring) -> None:
        """Add all collected masks to `values` modulo R, in place, on several threads.

        `values` are in [0, R), shape (d,), in the lanes of the ring. If R is a power of two,
        the results are congruent modulo R only; call ``ring.reduce`` afterwards.
        """
        keys, signs = b"".join(self._keys), bytes(self._signs)

        def part(rows: slice) -> None:
            if ring.is_power_of_two:
                _fast.mask_words(values[rows], keys, signs, rows.start)
            else:
                lanes = values[rows].view(np.uint64)
                _fast.mask_mod(lanes, keys, signs, ring.modulus, rows.start)

        alone = _fast.MASK_BYTES // (max(1, len(signs)) * values.itemsize)
        # each slice expands all keys again, which takes as long as about 1 KB of their masks
        least = max(alone // 8, _SLICE_BYTES // values.itemsize)
        in_slices(part, values.size, least, alone)


def commitment(seed: bytes, session: bytes, client_id: int) -> bytes:
    """Return the commitment to b_u, which the server compares with the b_u that it rebuilds.

    It hides b_u, which is 32 uniform bytes; SHA-256 is collision resistant, so it is binding.
    """
    label = b"secagg/2 self mask commitment"
    return hashlib.sha256(label + session + struct.pack("<Q", client_id) + seed).digest()


def _derive(secret: bytes, session: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=session, info=info).derive(secret)


def _pair(label: bytes, mine: tuple[int, bytes], theirs: tuple[int, bytes]) -> bytes:
    """Return HKDF's info for a key of two clients: label, ascending ids, their public keys."""
    (u, u_key), (v, v_key) = sorted((mine, theirs))
    return label + struct.pack("<QQ", u, v) + u_key + v_key


def _associated_data(session: bytes, sender: int, receiver: int) -> bytes:
    return (
        b"secagg/2 shares" + session + struct.pack("<QQB", sender, receiver, _SHARE_KEYS_ROUND)
    )
