"""Keys of clients, the sealing (encryption) of shares, and the masks.

Two clients agree on a secret by X25519, and HKDF-SHA256 derives keys from it. Every key is
bound to the session (as HKDF's salt), to its purpose (a label), to both ids and their public
keys. A secret of sealing keys may serve many rounds; all else is of one. AES-256-GCM seals
shares. Each of its keys encrypts one message, so the nonce is always zero. AES-128-CTR expands
a mask key to a stream that is uniform over [0, R)^d for every R.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from secagg import _fast
from secagg._secrets import Confined
from secagg._threads import in_slices
from secagg.encoding import Entropy, Lanes, Ring

U8 = NDArray[np.uint8]

KEY_BYTES = 32
SEED_BYTES = 32
TAG_BYTES = 16
_NONCE = bytes(12)  # each key seals one message
_MASK_KEY_BYTES = 16
_SHARE_KEYS_ROUND = 1
_PAIRWISE = b"secagg/2 pairwise mask"
_POINTS_ALONE = 300  # X25519 of fewer takes less than a millisecond
_SLICE_BYTES = 1 << 14  # of a vector, at least, for a thread
_P = 2**255 - 19
_IDS = struct.Struct("<QQ")
_BLOCK = 64  # bytes that SHA-256 takes at a time


class KeyPair(Confined):
    """X25519 key pair (RFC 7748). A masking pair is for one round only.

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
    _remedy = "it is for one process"

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

    `shared` is the X25519 secret of the two sealing keys, which may serve many rounds; `mine`
    and `theirs` are (id, public sealing key ‖ public masking key). The masking keys are of this
    round alone, and so are the results, whatever session a server names. The first half of the
    derived bytes is for the lower id's message.
    """
    derived = _derive(shared, session, _pair(b"secagg/3 seal", mine, theirs), 2 * KEY_BYTES)
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
    info = _pair(_PAIRWISE, mine, theirs)
    return _derive(shared, session, info, _MASK_KEY_BYTES)


def revealed_mask_keys(
    seed: bytes,
    session: bytes,
    mine: tuple[int, bytes],
    peers: Sequence[tuple[int, bytes]],
) -> list[bytes]:
    """Return `pairwise_mask_key` of a client with each of its peers, in bulk.

    `seed` is the client's masking seed, which must be revealed already: the server rebuilds it
    when the client drops out. `mine` is (id, public masking key), and so is each of `peers`,
    whose keys are usable.
    """
    points = np.frombuffer(b"".join(public for _, public in peers), np.uint8)
    points = points.reshape(-1, KEY_BYTES)
    shared = np.empty_like(points)
    scalar = np.frombuffer(seed, np.uint8).reshape(1, -1)
    in_slices(
        lambda rows: _fast.x25519(scalar, points[rows], shared[rows]),
        len(points),
        alone=_POINTS_ALONE,
    )
    canonical = all(int.from_bytes(public, "little") < _P for _, public in peers)
    if not canonical or not shared.any(axis=1).all():  # also by `python -O`
        raise AssertionError("a public key is unusable, which was checked when it came")
    infos = [_pair(_PAIRWISE, mine, peer) for peer in peers]
    return _derive_each(shared, session, infos, _MASK_KEY_BYTES)


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


def _derive_each(
    secrets: U8, session: bytes, infos: Sequence[bytes], length: int
) -> list[bytes]:
    """Return `_derive` of each row of `secrets` and its info; at most 32 bytes.

    That is one block of HKDF (RFC 5869), so two HMACs for each key.
    """
    salt = np.frombuffer(session, np.uint8).reshape(1, -1)
    extracted = b"".join(_hmac(salt, [secret.tobytes() for secret in secrets]))
    pseudorandom = np.frombuffer(extracted, np.uint8).reshape(-1, KEY_BYTES)
    blocks = _hmac(pseudorandom, [info + b"\1" for info in infos])
    return [block[:length] for block in blocks]


def _hmac(key: U8, messages: Sequence[bytes]) -> list[bytes]:
    """Return HMAC-SHA256 of each message under its row of `key`, or under the only row.

    This is RFC 2104 for keys of at most 64 bytes. Over hashlib it takes half the time of a call
    of ``cryptography`` or `hmac` for each message.
    """
    padded = np.zeros((len(key), _BLOCK), np.uint8)
    padded[:, : key.shape[1]] = key
    inner, outer = (padded ^ 0x36).tobytes(), (padded ^ 0x5C).tobytes()
    step = _BLOCK if len(key) > 1 else 0
    digests = []
    for i, message in enumerate(messages):
        block = slice(i * step, i * step + _BLOCK)
        digest = hashlib.sha256(inner[block] + message).digest()
        digests.append(hashlib.sha256(outer[block] + digest).digest())
    return digests


def _pair(label: bytes, mine: tuple[int, bytes], theirs: tuple[int, bytes]) -> bytes:
    """Return HKDF's info for a key of two clients: label, ascending ids, their public keys."""
    (u, u_key), (v, v_key) = (mine, theirs) if mine < theirs else (theirs, mine)
    return label + _IDS.pack(u, v) + u_key + v_key


def _associated_data(session: bytes, sender: int, receiver: int) -> bytes:
    return (
        b"secagg/2 shares" + session + struct.pack("<QQB", sender, receiver, _SHARE_KEYS_ROUND)
    )
