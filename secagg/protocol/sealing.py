"""Sealing (encryption) of shares by the keys of both clients (docs/protocol.md, §5.3 and §5.5).

Two clients agree on two secrets by X25519. The secret of the sealing keys may serve all rounds
of a session, the secret of the masking keys serves one round. In suite hybrid the sender also
encapsulates a secret to the receiver's key of ML-KEM-768. AES-256-GCM seals shares. Each AES
key encrypts one message, so the nonce is always zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg.protocol.keys import KEY_BYTES, TAG_BYTES, U8, U64, derive_each, joined

_NONCE = bytes(12)  # each key seals one message
_SHARE_KEYS_ROUND = b"\1"
_SEAL = b"secagg/4 seal"
_BOX = b"secagg/4 box"
_SHARES = b"secagg/2 shares"


def base_keys(
    shared: U8,
    session: bytes,
    mine: tuple[int, bytes],
    ids: U64,
    publics: U8,
    kems: tuple[U8, U8] | None = None,
) -> tuple[U8, U8]:
    """Return B of a client's messages to its peers, and of the peers' messages to the client.

    The sealing keys may serve many rounds, but the masking keys are of this round. So the
    results are of this round alone, whatever session a server names. A thief of a sealing key
    also needs a masking key of the round, which is forgotten.

    Parameters
    ----------
    shared : uint8 array, shape (m, 64)
        Secret agreed on with each peer: by the sealing keys, then by the masking keys.
    session : bytes
    mine : (int, bytes)
        Id of the client, and the client's public X25519 keys, the sealing key first.
    ids : uint64 array, shape (m,)
        Ids of the peers.
    publics : uint8 array, shape (m, 64)
        Public X25519 keys of the peers in the same order.
    kems : pair of uint8 arrays, shapes (m, 32) and (1, 32), optional
        SHA-256 of the peers' encapsulation keys, and of the client's own. None: suite x25519.

    Returns
    -------
    sending, opening : uint8 arrays, shape (m, 32)
    """
    me, own = np.uint64(mine[0]), np.frombuffer(mine[1], np.uint8)
    above = (ids < me)[:, np.newaxis]  # the peer has the lower id, so its keys come first
    keys = np.where(above, publics, own), np.where(above, own, publics)
    theirs, ours = ([], []) if kems is None else ([kems[0]], [kems[1]])
    to_peers = joined(_SEAL, mine[0], ids, *keys, *theirs)
    to_me = joined(_SEAL, ids, mine[0], *keys, *ours)
    sending, opening = (
        derive_each(shared, session, infos, KEY_BYTES) for infos in (to_peers, to_me)
    )
    return sending, opening


def box_keys(
    bases: U8,
    session: bytes,
    sender: int | U64,
    receiver: int | U64,
    encapsulated: tuple[U8, U8] | None = None,
) -> U8:
    """Return the AES-256 keys of boxes.

    Parameters
    ----------
    bases : uint8 array, shape (m, 32)
        B of each box, from `base_keys`.
    session : bytes
    sender, receiver : int or uint64 array, shape (m,)
        Ids; at least one of the two is an array, if m is not 1.
    encapsulated : pair of uint8 arrays, shape (m, 32), optional
        Secret K of each box, and SHA-256 of its ciphertext. None: suite x25519.

    Returns
    -------
    uint8 array, shape (m, 32)
    """
    if encapsulated is None:
        return derive_each(bases, session, joined(_BOX, sender, receiver), KEY_BYTES)
    secrets, digests = encapsulated
    # the ciphertext enters: less is asked of the KEM than with K alone
    infos = joined(_BOX, sender, receiver, digests)
    return derive_each(np.concatenate([bases, secrets], axis=1), session, infos, KEY_BYTES)


def seal(keys: U8, session: bytes, sender: int, receivers: U64, contents: U8) -> U8:
    """Return a client's contents for its peers, encrypted and authenticated (round 1).

    Parameters
    ----------
    keys : uint8 array, shape (m, 32)
        Key of the box for each peer, from `box_keys`.
    session : bytes
    sender : int
        Id of the client.
    receivers : uint64 array, shape (m,)
        Ids of the peers.
    contents : uint8 array, shape (m, L)

    Returns
    -------
    uint8 array, shape (m, L + 16)
    """
    sealed = np.empty((len(keys), contents.shape[1] + TAG_BYTES), np.uint8)
    bound = _associated_data(session, sender, receivers)
    _fast.gcm_seal(keys, _NONCE, bound, contents, sealed)
    return sealed


def open_sealed(
    keys: U8, session: bytes, senders: U64, receiver: int, sealed: U8
) -> tuple[U8, NDArray[np.bool_]]:
    """Return the contents that `seal` of each sender encrypted, and which rows are authentic.

    Rows with another key, id, session or bytes are not authentic, and have zeros as contents.
    `senders` are the ids of the m peers; see `seal` for the shapes.
    """
    count = len(keys)
    contents = np.zeros((count, sealed.shape[1] - TAG_BYTES), np.uint8)
    authentic = np.ones(count, np.bool_)
    bound = _associated_data(session, senders, receiver)
    # the kernel stops at a row that is not authentic
    start = 0
    while start < count:
        rest = slice(start, count)
        start += _fast.gcm_open(keys[rest], _NONCE, bound[rest], sealed[rest], contents[rest])
        authentic[start : start + 1] = False
        start += 1
    return contents, authentic


def _associated_data(session: bytes, sender: int | U64, receiver: int | U64) -> U8:
    """Return the associated data of each message: label, session, both ids, round."""
    return joined(_SHARES + session, sender, receiver, _SHARE_KEYS_ROUND)
