"""Sealing (encryption) of a client's shares for their holders; opening of received shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secagg import shamir
from secagg.client.checks import reject
from secagg.client.states import Advertised, Shared
from secagg.encoding import Entropy
from secagg.protocol import Phase, keys
from secagg.protocol.messages import SEALED_BYTES, SHARE_BYTES
from secagg.shamir.arithmetic import M61


class Sealed(NamedTuple):
    """Shares that a client has sealed, and the keys that it keeps.

    Attributes
    ----------
    sealed : bytes
        A sealed pair of shares for each other holder, in the order of the holders.
    own_share : bytes
        The client's own share of b_u.
    mask_keys, opening : dict of id to bytes
        Key of the pairwise mask, and key that opens received shares, for each other holder.
    """

    sealed: bytes
    own_share: bytes
    mask_keys: dict[int, bytes]
    opening: dict[int, bytes]


def seal_for(
    holders: Mapping[int, tuple[bytes, bytes]],
    own: Advertised,
    seed: bytes,
    me: int,
    session: bytes,
    threshold: int,
    entropy: Entropy,
) -> Sealed:
    """Share b_u, the `seed`, and the seed of s_u among the holders (Bonawitz 2017, round 1).

    `holders` maps ascending ids, client `me` included, to the sealing and the masking key.
    Holder i gets the share at the point i + 1.
    """
    # b comes first: the first half of a share is of b, the second half of s
    limbs = np.concatenate([shamir.to_limbs(seed), shamir.to_limbs(own.mask_pair.seed)])
    points = np.arange(1, len(holders) + 1, dtype=np.uint64)
    rows = shamir.split_limbs(limbs, threshold, points, entropy).astype("<u8").view(np.uint8)
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
    mask_keys, opened_by = (
        dict(zip(peers, _strings(rows), strict=True)) for rows in (masks, opening)
    )
    own_share = rows[~others, :SHARE_BYTES].tobytes()
    return Sealed(sealed.tobytes(), own_share, mask_keys, opened_by)


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


def _strings(rows: NDArray[np.uint8]) -> list[bytes]:
    """Return the rows as strings of bytes."""
    data, width = rows.tobytes(), rows.shape[1]
    return [data[i : i + width] for i in range(0, len(data), width)]


def open_from(
    senders: Sequence[int], sealed: bytes, own: Shared, me: int
) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Open the shares that the other clients of U2 sealed for this client, `me`.

    `sealed` has one sealed pair of shares for each sender, in the order of `senders`.

    Returns
    -------
    self_shares, mask_shares : dict of id to bytes
        Shares of b, this client's own share included, and shares of s, by the owner's id.
    """
    phase = Phase.MASKED_INPUT
    if len(sealed) != SEALED_BYTES * len(senders):
        reject(phase, "length", f"expected one sealed share for each of {len(senders)} senders")
    opened, whole = keys.open_sealed(
        keys.rows_of(own.opening[v] for v in senders),
        own.session,
        np.array(senders, np.uint64),
        me,
        keys.rows_of([sealed], SEALED_BYTES),
    )
    if whole < len(senders):
        why = f"client {senders[whole]}'s sealed share fails authentication"
        reject(phase, "sealed share", why)
    # a peer can seal any bytes, so an authentic share may still be outside the field
    beyond = np.flatnonzero((opened.view("<u8") >= M61).any(axis=1))
    if beyond.size:
        reject(phase, "share", f"client {senders[beyond[0]]}'s share is not a field element")
    self_shares, mask_shares = (
        dict(zip(senders, _strings(half), strict=True))
        for half in (opened[:, :SHARE_BYTES], opened[:, SHARE_BYTES:])
    )
    return {me: own.own_share} | self_shares, mask_shares
