"""Round 1 at the client: share the secrets, and seal (encrypt) the shares for their holders."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from secagg import shamir
from secagg.client.checks import reject
from secagg.client.states import Advertised, Shared
from secagg.encoding import Entropy
from secagg.protocol import Phase, keys
from secagg.protocol.messages import SHARE_BYTES, ShareKeys, pack_ids


def seal_for(
    holders: Mapping[int, tuple[bytes, bytes]],
    own: Advertised,
    me: int,
    session: bytes,
    threshold: int,
    hedged: Callable[..., Entropy],
    due: Phase,
) -> tuple[Shared, ShareKeys]:
    """Share b_u and the seed of s_u among the holders (Bonawitz 2017, round 1).

    Parameters
    ----------
    holders : mapping of int to (bytes, bytes)
        Sealing and masking key by ascending id, client `me` included. Holder i gets the share
        at the point i + 1.
    own, me, session, threshold
        State, id, session and t of the client.
    hedged : callable
        Source of random bytes for a purpose: ``Client._hedged``.
    due : Phase
        Phase of the new state.

    Returns
    -------
    Shared, ShareKeys
        New state of the client, and the client's message.
    """
    # b must stay secret when the server rebuilds the masking seed, which cannot hedge b
    seed = hedged(b"b", own.sealing.pair.seed, session)(keys.SEED_BYTES)
    about = struct.pack("<Q", threshold) + pack_ids(tuple(holders))
    coefficients = hedged(b"shares", seed + own.mask_pair.seed, session, about)
    # b comes first: the first half of a share is of b, the second half of s
    limbs = np.concatenate([shamir.to_limbs(seed), shamir.to_limbs(own.mask_pair.seed)])
    points = np.arange(1, len(holders) + 1, dtype=np.uint64)
    shares = shamir.split_limbs(limbs, threshold, points, coefficients)
    rows = shares.astype("<u8").view(np.uint8)
    peers = [v for v in holders if v != me]
    others = np.array([v != me for v in holders])
    ids, half = np.array(peers, np.uint64), keys.KEY_BYTES
    # the sealing key comes first in `publics`, and the secret agreed on with it in `secrets`
    publics = keys.rows_of(key for v in peers for key in holders[v]).reshape(-1, 2 * half)
    secrets = _agreed(peers, holders, own)
    seal_key, mask_key = holders[me]
    sending, opening = keys.seal_keys(secrets, session, (me, seal_key + mask_key), ids, publics)
    masks = keys.pairwise_mask_keys(
        secrets[:, half:], session, (me, mask_key), ids, publics[:, half:]
    )
    sealed = keys.seal(sending, session, me, ids, rows[others])
    state = Shared(
        phase=due,
        session=session,
        seed=seed,
        own_share=rows[~others, :SHARE_BYTES].tobytes(),
        mask_keys=dict(zip(peers, map(bytes, masks), strict=True)),
        opening=dict(zip(peers, map(bytes, opening), strict=True)),
    )
    commitment = keys.commitment(seed, session, me)
    return state, ShareKeys(me, session, commitment, sealed.tobytes())


def _agreed(
    peers: Sequence[int], holders: Mapping[int, tuple[bytes, bytes]], own: Advertised
) -> NDArray[np.uint8]:
    """Return for each peer the secret of both sealing keys, then of both masking keys."""
    joined = list[bytes]()
    for v in peers:
        seal_key, mask_key = holders[v]
        of_seal, of_mask = own.sealing.agree(v, seal_key), own.mask_pair.agree(mask_key)
        if of_seal is None or of_mask is None:
            which = "sealing" if of_seal is None else "masking"
            why = f"client {v}'s {which} key is of low order or not canonical"
            reject(Phase.SHARE_KEYS, "public key", why)
        joined += (of_seal, of_mask)
    return keys.rows_of(joined).reshape(-1, 2 * keys.KEY_BYTES)
