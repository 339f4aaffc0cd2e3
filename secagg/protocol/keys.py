"""Keys of clients: X25519 pairs, public keys, and what derives from a single client's secret.

HKDF-SHA256 derives every key. Each key is bound to the session (as HKDF's salt), to a purpose
(a label) and to ids. See `sealing` for the boxes of shares, and `pair_masks` for the masks of
pairs.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from secagg import _fast
from secagg._secrets import Confined
from secagg._threads import in_slices

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]

KEY_BYTES = 32
SEED_BYTES = 32
TAG_BYTES = 16
DIGEST_BYTES = 32
MASK_KEY_BYTES = _MASK_KEY_BYTES = 16  # 0.4 documents the second name
_MASKING = b"secagg/4 masking key"
# fewer take less than a millisecond
_DERIVED_ALONE = 2000
_POINTS_ALONE = 300
_P = 2**255 - 19
_LOW_ORDER = frozenset(
    int.from_bytes(bytes.fromhex(u), "little")
    for u in (
        "00" * 32,
        "01" + "00" * 31,
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ec" + "ff" * 30 + "7f",
    )
)
"""The u of the points with an order that divides 8, also of the twist; as in tests/vectors."""


class KeyPair(Confined):
    """X25519 key pair (RFC 7748). A masking pair is for one round only; see `masking`.

    Parameters
    ----------
    seed : bytes
        Private scalar before clamping, 32 bytes.

    Attributes
    ----------
    public : bytes
        Public key, 32 bytes.
    private : bytes
        The scalar.
    seed : bytes
        The scalar, too; of a masking pair the seed that its holders share.
    """

    __slots__ = ("private", "public", "seed")
    _remedy = "it is for one process"

    def __init__(self, seed: bytes) -> None:
        self.seed = self.private = seed
        key = X25519PrivateKey.from_private_bytes(seed)
        self.public = key.public_key().public_bytes_raw()

    @classmethod
    def masking(cls, seed: bytes) -> KeyPair:
        """Return the masking pair of a seed; the private key is derived from the seed, one way.

        So who finds the private key from s_u does not know the seed, from which the client's
        contributions to masks follow (docs/protocol.md, §5.1).
        """
        hkdf = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=bytes(32), info=_MASKING)
        pair = cls(hkdf.derive(seed))
        pair.seed = seed
        return pair

    def __repr__(self) -> str:
        return f"KeyPair(public={self.public.hex()})"

    def agree(self, publics: U8) -> U8:
        """Return the X25519 secret with each row of public keys; both shapes are (m, 32).

        The keys are usable (`is_usable`); of another key anybody may know the secret. The
        secrets are not keys themselves: see `sealing` and `pair_masks`.
        """
        shared = np.empty_like(publics)
        scalar = np.frombuffer(self.private, np.uint8).reshape(1, -1)
        in_slices(
            lambda rows: _fast.x25519(scalar, publics[rows], shared[rows]),
            len(publics),
            alone=_POINTS_ALONE,
        )
        return shared


def is_usable(public: bytes) -> bool:
    """Return True if an X25519 public key is canonical and not of low order.

    Keys of low order are unusable (RFC 7748 §6.1), and so are numbers from 2^255 − 19 on:
    X25519 reduces such numbers, so a key could join twice in two encodings.
    """
    number = int.from_bytes(public, "little")
    return len(public) == KEY_BYTES and number < _P and number not in _LOW_ORDER


class PublicKeys(NamedTuple):
    """Public keys that a client advertises.

    Attributes
    ----------
    seal, mask : bytes
        Sealing key c_u and masking key s_u, 32 bytes each.
    kem : bytes
        Encapsulation key e_u of ML-KEM-768, 1,184 bytes; empty in suite x25519.
    """

    seal: bytes
    mask: bytes
    kem: bytes = b""

    @property
    def bound(self) -> bytes:
        """The bytes that digests and signatures have of these keys: c_u, s_u, SHA-256(e_u)."""
        return self.seal + self.mask + (hashlib.sha256(self.kem).digest() if self.kem else b"")


def roster_digest(publics: Mapping[int, PublicKeys]) -> bytes:
    """Return the SHA-256 of all entries (id, public keys) of U1, in ascending order of ids."""
    joined = b"".join(struct.pack("<Q", u) + publics[u].bound for u in sorted(publics))
    return hashlib.sha256(b"secagg/4 roster" + joined).digest()


def session_id(params_digest: bytes, roster: bytes) -> bytes:
    """Return the session's identifier: SHA-256 of the digests of parameters and roster."""
    return hashlib.sha256(b"secagg/4 session" + params_digest + roster).digest()


def self_mask_key(seed: bytes, session: bytes, client_id: int) -> bytes:
    """Return the key of the mask PRG(b_u), 16 bytes, from the seed b_u (Bonawitz 2017)."""
    info = b"secagg/2 self mask" + struct.pack("<Q", client_id)
    hkdf = HKDF(algorithm=SHA256(), length=MASK_KEY_BYTES, salt=session, info=info)
    return hkdf.derive(seed)


def rows_of(items: Iterable[bytes], width: int = KEY_BYTES) -> U8:
    """Return strings of `width` bytes as a uint8 array, a row each."""
    return np.frombuffer(b"".join(items), np.uint8).reshape(-1, width)


def commitment(seed: bytes, session: bytes, client_id: int) -> bytes:
    """Return the commitment to b_u, which the server compares with the b_u that it rebuilds.

    The commitment hides b_u, which is 32 uniform bytes. The commitment is binding, because
    SHA-256 is collision resistant.
    """
    label = b"secagg/2 self mask commitment"
    return hashlib.sha256(label + session + struct.pack("<Q", client_id) + seed).digest()


def digests(rows: U8) -> U8:
    """Return the SHA-256 of each row, as an array of shape (m, 32)."""
    found = np.empty((len(rows), DIGEST_BYTES), np.uint8)
    # a kernel takes no columns of a wider array
    _fast.sha256(np.ascontiguousarray(rows), found)
    return found


def derive_each(secrets: U8, salt: bytes, infos: U8, length: int) -> U8:
    """Return HKDF-SHA256 (RFC 5869) of each secret and info, `length` bytes a row."""
    derived = np.empty((len(secrets), length), np.uint8)
    secrets = np.ascontiguousarray(secrets)  # a kernel takes no columns of a wider array
    in_slices(
        lambda rows: _fast.hkdf(secrets[rows], salt, infos[rows], derived[rows]),
        len(secrets),
        alone=_DERIVED_ALONE,
    )
    return derived


def joined(label: bytes, first: int | U64, second: int | U64, *rest: bytes | U8) -> U8:
    """Return a row for each pair: the label, both ids and the rest, side by side.

    Ids take eight bytes each. Bytes, a single id and a single row stand in all rows.
    """
    return beside(label, id_rows(first), id_rows(second), *rest)


def id_rows(ids: int | U64) -> U8:
    """Return an id, or an array of ids, as rows of eight little-endian bytes."""
    return np.array(ids, "<u8").reshape(-1, 1).view(np.uint8)


def beside(*columns: bytes | U8) -> U8:
    """Return the columns side by side; bytes and a single row stand in all rows."""
    arrays = [
        np.frombuffer(c, np.uint8)[np.newaxis] if isinstance(c, bytes) else c for c in columns
    ]
    count = max((len(array) for array in arrays if len(array) != 1), default=1)
    rows = np.empty((count, sum(array.shape[1] for array in arrays)), np.uint8)
    start = 0
    for array in arrays:  # each fills its columns; np.broadcast_to takes longer than the copies
        end = start + array.shape[1]
        rows[:, start:end] = array
        start = end
    return rows
