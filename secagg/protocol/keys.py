"""Keys of clients, and the sealing (encryption) of shares.

Two clients agree on a secret by X25519, and HKDF-SHA256 derives keys from the secret. Every key
is bound to the session (as HKDF's salt), to a purpose (a label), to both ids and their public
keys. A secret of sealing keys may serve many rounds; all else serves one round. AES-256-GCM
seals shares. Each AES key encrypts one message, so the nonce is always zero.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
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
_NONCE = bytes(12)  # each key seals one message
MASK_KEY_BYTES = _MASK_KEY_BYTES = 16  # 0.4 documents the second name
_SHARE_KEYS_ROUND = b"\1"
_SEAL = b"secagg/3 seal"
_SHARES = b"secagg/2 shares"
_PAIRWISE = b"secagg/2 pairwise mask"
_POINTS_ALONE = 300  # X25519 of fewer takes less than a millisecond
_DERIVED_ALONE = 2000  # and so does HKDF
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

    def agree(self, peer: bytes) -> bytes | None:
        """Return the X25519 secret shared with a peer, or None if the public key is unusable.

        Keys of low order are unusable (RFC 7748 §6.1), and so are numbers from 2^255 − 19 on:
        X25519 reduces such numbers, so a key could join twice in two encodings. The secret is
        not a key itself: pass it to `seal_keys` or `pairwise_mask_keys`.
        """
        if int.from_bytes(peer, "little") >= _P:
            return None
        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(peer))
        except ValueError:
            return None


def is_usable(public: bytes) -> bool:
    """Return True if an X25519 public key is canonical and not of low order."""
    number = int.from_bytes(public, "little")
    return len(public) == KEY_BYTES and number < _P and number not in _LOW_ORDER


def roster_digest(entries: list[tuple[int, bytes, bytes]]) -> bytes:
    """Return the SHA-256 of all entries (id, sealing key, masking key) of U1, ascending ids."""
    joined = b"".join(struct.pack("<Q", u) + c + s for u, c, s in entries)
    return hashlib.sha256(b"secagg/2 roster" + joined).digest()


def session_id(params_digest: bytes, roster: bytes) -> bytes:
    """Return the session's identifier: SHA-256 of the digests of parameters and roster."""
    return hashlib.sha256(b"secagg/2 session" + params_digest + roster).digest()


def seal_keys(
    shared: U8, session: bytes, mine: tuple[int, bytes], ids: U64, publics: U8
) -> tuple[U8, U8]:
    """Return the AES-256 keys of a client's messages to its peers, and of the peers' messages.

    The sealing keys may serve many rounds, but the masking keys are of this round. So the
    results are of this round alone, whatever session a server names. A thief of a sealing key
    also needs a masking key of the round, which is forgotten (docs/protocol.md, §5.3).

    Parameters
    ----------
    shared : uint8 array, shape (m, 64)
        Secret agreed on with each peer: by the sealing keys, then by the masking keys.
    session : bytes
    mine : (int, bytes)
        Id of the client, and the client's public keys, the sealing key first.
    ids : uint64 array, shape (m,)
        Ids of the peers.
    publics : uint8 array, shape (m, 64)
        Public keys of the peers in the same order.

    Returns
    -------
    sending, opening : uint8 arrays, shape (m, 32)
        The first half of the derived bytes is for the lower id's message.
    """
    derived = derive_each(shared, session, _pairs(_SEAL, mine, ids, publics), 2 * KEY_BYTES)
    upward, downward = derived[:, :KEY_BYTES], derived[:, KEY_BYTES:]
    below = (ids > mine[0])[:, np.newaxis]  # the client has the lower id
    return np.where(below, upward, downward), np.where(below, downward, upward)


def seal(keys: U8, session: bytes, sender: int, receivers: U64, shares: U8) -> U8:
    """Return a client's shares for its peers, encrypted and authenticated (round 1).

    Parameters
    ----------
    keys : uint8 array, shape (m, 32)
        Key of the messages to each peer, from `seal_keys`.
    session : bytes
    sender : int
        Id of the client.
    receivers : uint64 array, shape (m,)
        Ids of the peers.
    shares : uint8 array, shape (m, L)

    Returns
    -------
    uint8 array, shape (m, L + 16)
    """
    sealed = np.empty((len(keys), shares.shape[1] + TAG_BYTES), np.uint8)
    bound = _associated_data(session, sender, receivers)
    _fast.gcm_seal(keys, _NONCE, bound, shares, sealed)
    return sealed


def open_sealed(
    keys: U8, session: bytes, senders: U64, receiver: int, sealed: U8
) -> tuple[U8, int]:
    """Return the shares that `seal` of each sender encrypted, and the number of opened rows.

    The number is m, or the index of the first row with another key, id, session or bytes.
    From that row on the shares are meaningless. `senders` are the ids of the m
    peers; see `seal` for the shapes.
    """
    shares = np.empty((len(keys), sealed.shape[1] - TAG_BYTES), np.uint8)
    bound = _associated_data(session, senders, receiver)
    return shares, _fast.gcm_open(keys, _NONCE, bound, sealed, shares)


def pairwise_mask_keys(
    shared: U8, session: bytes, mine: tuple[int, bytes], ids: U64, publics: U8
) -> U8:
    """Return the keys of the masks PRG(s_uv) of a client and its peers (Bonawitz 2017).

    Parameters
    ----------
    shared : uint8 array, shape (m, 32)
        X25519 secret with each peer.
    session : bytes
    mine : (int, bytes)
        Id and public masking key of the client.
    ids : uint64 array, shape (m,)
        Ids of the peers.
    publics : uint8 array, shape (m, 32)
        Public masking keys of the peers.

    Returns
    -------
    uint8 array, shape (m, 16)
    """
    infos = _pairs(_PAIRWISE, mine, ids, publics)
    return derive_each(shared, session, infos, MASK_KEY_BYTES)


def revealed_mask_keys(
    seed: bytes, session: bytes, mine: tuple[int, bytes], ids: U64, publics: U8
) -> U8:
    """Return `pairwise_mask_keys` of a client with a revealed masking seed.

    The server rebuilds the `seed` when the client drops out. The public keys are usable. See
    `pairwise_mask_keys` for the other parameters.
    """
    shared = np.empty_like(publics)
    scalar = np.frombuffer(seed, np.uint8).reshape(1, -1)
    in_slices(
        lambda rows: _fast.x25519(scalar, publics[rows], shared[rows]),
        len(publics),
        alone=_POINTS_ALONE,
    )
    # not `assert`, which python -O removes: of an unusable key anybody knows the mask
    if not all(map(is_usable, map(bytes, publics))):
        raise AssertionError("a public key is unusable, which was checked when it came")
    return pairwise_mask_keys(shared, session, mine, ids, publics)


def self_mask_key(seed: bytes, session: bytes, client_id: int) -> bytes:
    """Return the key of the mask PRG(b_u), 16 bytes, from the seed b_u (Bonawitz 2017)."""
    info = b"secagg/2 self mask" + struct.pack("<Q", client_id)
    hkdf = HKDF(algorithm=SHA256(), length=MASK_KEY_BYTES, salt=session, info=info)
    return hkdf.derive(seed)


def subtracts(u: int, others: U64) -> NDArray[np.bool_]:
    """Return for each client v in `others` if u subtracts its mask with v (Bonawitz 2017, §4).

    Client u subtracts the mask if v < u; then v adds the same mask.
    """
    lower: NDArray[np.bool_] = others < u
    return lower


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


def _pairs(label: bytes, mine: tuple[int, bytes], ids: U64, publics: U8) -> U8:
    """Return HKDF's info for each pair: label, ascending ids, public keys in that order."""
    me, own = np.uint64(mine[0]), np.frombuffer(mine[1], np.uint8)
    above = (ids < me)[:, np.newaxis]  # the peer has the lower id and comes first
    # both clients of a pair must derive the same key, so the order is by id
    both = np.minimum(ids, me), np.maximum(ids, me)
    return _joined(label, *both, np.where(above, publics, own), np.where(above, own, publics))


def _associated_data(session: bytes, sender: int | U64, receiver: int | U64) -> U8:
    """Return the associated data of each message: label, session, both ids, round."""
    return _joined(_SHARES + session, sender, receiver, _SHARE_KEYS_ROUND)


def _joined(label: bytes, first: int | U64, second: int | U64, *rest: bytes | U8) -> U8:
    """Return a row for each pair: the label, both ids and the rest, side by side.

    Ids take eight bytes each. Bytes, a single id and a single row stand in all rows.
    """
    ids = (np.array(one, "<u8").reshape(-1, 1).view(np.uint8) for one in (first, second))
    parts = (label, *ids, *rest)
    arrays = [rows_of([p], len(p)) if isinstance(p, bytes) else p for p in parts]
    count = max((len(array) for array in arrays if len(array) != 1), default=1)
    return np.concatenate(
        [np.broadcast_to(array, (count, array.shape[1])) for array in arrays], axis=1
    )
