"""Keys of the masks of pairs of clients (Bonawitz 2017, §4; docs/protocol.md, §5.3).

Two clients agree by their masking keys on A. In suite x25519 the mask follows from A alone. In
suite hybrid both clients also contribute a secret p to the mask. Each client derives p from the
masking seed, which the holders share, and sends p in a box. With the masked input a client
leaves p with the server, encrypted by the q of the other client: the deposit. So the server has
p of a survivor only after a rebuild of the seed of the other client, which dropped out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secagg.protocol.keys import (
    KEY_BYTES,
    MASK_KEY_BYTES,
    U8,
    U64,
    KeyPair,
    derive_each,
    digests,
    is_usable,
    joined,
)

CONTRIBUTION_BYTES = 2 * KEY_BYTES
"""Bytes of p and q, one after the other."""
_AGREEMENT = b"secagg/4 agreement"
_PAIRWISE = b"secagg/4 pairwise mask"
_CONTRIBUTION = b"secagg/4 contribution"
_DEPOSIT = b"secagg/4 deposit"
_CHECK = b"secagg/4 check"


def agreements(
    shared: U8, session: bytes, mine: tuple[int, bytes], ids: U64, publics: U8
) -> U8:
    """Return A of a client and each peer, which both clients of a pair derive.

    Parameters
    ----------
    shared : uint8 array, shape (m, 32)
        X25519 secret of the masking keys with each peer.
    session : bytes
    mine : (int, bytes)
        Id and public masking key of the client.
    ids : uint64 array, shape (m,)
        Ids of the peers.
    publics : uint8 array, shape (m, 32)
        Public masking keys of the peers.

    Returns
    -------
    uint8 array, shape (m, 32)
    """
    me, own = np.uint64(mine[0]), np.frombuffer(mine[1], np.uint8)
    above = (ids < me)[:, np.newaxis]  # the peer has the lower id, so its key comes first
    keys = np.where(above, publics, own), np.where(above, own, publics)
    infos = joined(_AGREEMENT, np.minimum(ids, me), np.maximum(ids, me), *keys)
    return derive_each(shared, session, infos, KEY_BYTES)


def contributions(seed: bytes, session: bytes, u: int, ids: U64) -> U8:
    """Return p and q of client u for each peer, from u's masking seed; shape (m, 64)."""
    seeds = np.broadcast_to(np.frombuffer(seed, np.uint8), (len(ids), len(seed)))
    return derive_each(seeds, session, joined(_CONTRIBUTION, u, ids), CONTRIBUTION_BYTES)


def checks(session: bytes, u: int | U64, v: int | U64, both: U8) -> U8:
    """Return the check of u for v of each row of `both`: p_uv and q_uv.

    Parameters
    ----------
    session : bytes
    u, v : int or uint64 array, shape (m,)
        Ids of the contributing clients and of their peers.
    both : uint8 array, shape (m, 64)

    Returns
    -------
    uint8 array, shape (m, 32)
    """
    return digests(joined(_CHECK + session, u, v, both))


def deposits(q: U8, session: bytes, u: int | U64, v: int | U64, p: U8) -> U8:
    """Return p_uv of each row, encrypted by q_vu; or p_uv again, of a deposit in place of `p`.

    `q` and `p` have the shape (m, 32); u, v : int or uint64 array, shape (m,), are the ids of
    the depositing clients and of their peers.
    """
    return p ^ derive_each(q, session, joined(_DEPOSIT, u, v), KEY_BYTES)


class Contributed(NamedTuple):
    """Contributions to the masks of a client and the peers; uint8 arrays, shape (m, 32).

    Attributes
    ----------
    own : array
        p of the client for each peer.
    theirs : array
        p of each peer for the client.
    """

    own: U8
    theirs: U8


def mask_keys(
    agreed: U8, session: bytes, me: int, ids: U64, contributed: Contributed | None = None
) -> U8:
    """Return the keys of the masks PRG(s_uv) of a client and its peers (Bonawitz 2017).

    Parameters
    ----------
    agreed : uint8 array, shape (m, 32)
        A with each peer; see `agreements`.
    session : bytes
    me : int
        Id of the client.
    ids : uint64 array, shape (m,)
        Ids of the peers.
    contributed : Contributed, optional
        Contributions of both clients; None: suite x25519.

    Returns
    -------
    uint8 array, shape (m, 16)
    """
    low, high = np.minimum(ids, np.uint64(me)), np.maximum(ids, np.uint64(me))
    secrets = agreed
    if contributed is not None:
        below = (ids > np.uint64(me))[:, np.newaxis]  # the client has the lower id
        own, theirs = contributed
        first, second = np.where(below, own, theirs), np.where(below, theirs, own)
        secrets = np.concatenate([agreed, first, second], axis=1)
    return derive_each(secrets, session, joined(_PAIRWISE, low, high), MASK_KEY_BYTES)


def revealed_agreements(pair: KeyPair, session: bytes, u: int, ids: U64, publics: U8) -> U8:
    """Return `agreements` of a client with a revealed masking pair.

    The server rebuilds the seed of the `pair` when client u drops out. The public keys are
    usable. See `agreements` for the other parameters.
    """
    # not `assert`, which python -O removes: of an unusable key anybody knows the mask
    if not all(map(is_usable, map(bytes, publics))):
        raise AssertionError("a public key is unusable, which was checked when it came")
    shared = pair.agree(publics)
    return agreements(shared, session, (u, pair.public), ids, publics)


def subtracts(u: int, others: U64) -> NDArray[np.bool_]:
    """Return for each client v in `others` if u subtracts its mask with v (Bonawitz 2017, §4).

    Client u subtracts the mask if v < u; then v adds the same mask.
    """
    lower: NDArray[np.bool_] = others < u
    return lower
