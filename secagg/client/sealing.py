"""Sealing (encryption) of a client's shares for their holders, and opening of received ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from secagg import shamir
from secagg.client.checks import reject
from secagg.client.states import Advertised, Shared
from secagg.encoding import Entropy
from secagg.protocol import Phase, keys
from secagg.protocol.messages import SEALED_BYTES, SHARE_BYTES
from secagg.shamir.field import M61


def seal_for(
    holders: Mapping[int, tuple[bytes, bytes]],
    own: Advertised,
    seed: bytes,
    me: int,
    session: bytes,
    threshold: int,
    entropy: Entropy,
) -> tuple[bytes, bytes, dict[int, bytes]]:
    """Share b_u, the `seed`, and the seed of s_u among the holders (Bonawitz 2017, round 1).

    `holders` maps ascending ids, that of the client `me` included, to sealing and masking key.
    Holder i gets the share at the point i + 1.

    Returns
    -------
    own_share : bytes
        The client's own share of b_u.
    sealed : bytes
        A sealed pair of shares for each other holder, in the order of `holders`.
    opening : dict of id to bytes
        Keys that open the shares which the other holders will send to this client.
    """
    limbs = np.concatenate([shamir.to_limbs(seed), shamir.to_limbs(own.mask_pair.seed)])
    points = np.arange(1, len(holders) + 1, dtype=np.uint64)
    rows = shamir.split_limbs(limbs, threshold, points, entropy).astype("<u8")
    share_of = {v: row.tobytes() for v, row in zip(holders, rows, strict=True)}
    own_share = share_of.pop(me)[:SHARE_BYTES]
    sealed, opening = [], {}
    mine = (me, b"".join(holders[me]))
    for v, shares in share_of.items():
        seal_key, mask_key = holders[v]
        shared = own.sealing.agree(v, seal_key)
        if shared is None:
            reject(Phase.SHARE_KEYS, "public key", f"client {v}'s sealing key is not usable")
        key, opening[v] = keys.seal_keys(shared, session, mine, (v, seal_key + mask_key))
        sealed.append(keys.seal(key, session, me, v, shares))
    return own_share, b"".join(sealed), opening


def open_from(
    senders: Sequence[int], sealed: bytes, own: Shared, me: int
) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Open the shares that the other clients of U2 sealed for this client, `me`.

    `sealed` has one sealed pair of shares for each sender, in the order of `senders`.

    Returns
    -------
    self_shares, mask_shares : dict of id to bytes
        Shares of b, the client's own included, and shares of s, by the id of their owner.
    """
    phase = Phase.MASKED_INPUT
    if len(sealed) != SEALED_BYTES * len(senders):
        reject(phase, "length", f"expected one sealed share for each of {len(senders)} senders")
    self_shares, mask_shares = {me: own.own_share}, {}
    for i, v in enumerate(senders):
        piece = sealed[SEALED_BYTES * i : SEALED_BYTES * (i + 1)]
        opened = keys.open_sealed(own.opening[v], own.session, v, me, piece)
        if opened is None:
            reject(phase, "sealed share", f"client {v}'s sealed share fails authentication")
        if not (np.frombuffer(opened, dtype="<u8") < M61).all():
            reject(phase, "share", f"client {v}'s share is not a field element")
        self_shares[v] = opened[:SHARE_BYTES]
        mask_shares[v] = opened[SHARE_BYTES:]
    return self_shares, mask_shares
