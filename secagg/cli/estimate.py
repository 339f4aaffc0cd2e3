"""Estimate of a round's time on this machine: its primitives are timed and counted, not run.

The counts are of the work that grows with clients or elements; docs/parameters.md has them.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from secagg import _fast, shamir
from secagg.bench.timing import mean_seconds
from secagg.protocol import RoundParams, keys
from secagg.protocol.masks import MaskSum
from secagg.protocol.messages import SHARE_BYTES, SHARE_LIMBS
from secagg.server.recovery import Recovery

__all__ = ["Seconds", "estimate"]

_ELEMENTS, _SHARES = 1 << 18, 512  # longer vectors, and more holders, are timed on so many
_MASKS = 8  # are expanded together, and so are timed at once


class Seconds(NamedTuple):
    """Seconds of one client and of the server over the round, on one core of this machine."""

    client: float
    server: float


def estimate(params: RoundParams, dropped: int) -> Seconds:
    """Time the primitives for these parameters, for less than a second, and count them.

    `dropped` clients drop out after sharing their keys, the costliest moment.
    """
    n, others = params.n_clients, params.holders - 1
    agree, make_pair, check, seal = _keys()
    mask, take = _vectors(params)
    share, rebuild = _shares(params, dropped)
    client = 2 * make_pair + others * (2 * agree + 2 * seal + mask) + mask + take + share
    survivors = n - dropped
    # what the survivors do not ask of the server: a dropped client's masks with the dropped
    pairs = dropped * others * survivors / max(1, n - 1)
    server = (
        n * 2 * check
        + survivors * (take + rebuild + mask)
        + dropped * (rebuild + make_pair)
        + pairs * (agree + mask)
    )
    return Seconds(client, server)


def _keys() -> tuple[float, float, float, float]:
    """Time an agreement with its derivation, a key pair, a check of a key, and a sealing."""
    mine, theirs = keys.KeyPair.generate(os.urandom), keys.KeyPair.generate(os.urandom)
    session, shares = os.urandom(keys.SEED_BYTES), os.urandom(2 * SHARE_BYTES)

    def agree() -> None:
        shared = mine.agree(theirs.public)
        keys.pairwise_mask_key(shared or b"", session, (0, mine.public), (1, theirs.public))

    return (
        mean_seconds(agree),
        mean_seconds(lambda: keys.KeyPair.generate(os.urandom)),
        mean_seconds(lambda: keys.is_usable(mine.public)),
        mean_seconds(lambda: keys.seal(session, session, 0, 1, shares)),
    )


def _vectors(params: RoundParams) -> tuple[float, float]:
    """Time a mask, and packing or unpacking and adding, on vectors of the round's length."""
    ring, size = params.ring, min(params.elements, _ELEMENTS)
    values, total = ring.zeros(size), ring.zeros(size)
    masks = MaskSum()
    for i in range(_MASKS):
        masks.add(os.urandom(16), negate=bool(i % 2))
    packed = _fast.pack_bits(values, ring.bits)

    def take() -> None:
        _fast.unpack_bits(packed, ring.bits, values)
        ring.add_into(total, values)

    scale = params.elements / size
    mask = mean_seconds(lambda: masks.apply(total, ring)) / _MASKS
    ring.reduce(total)
    return scale * mask, scale * mean_seconds(take)


def _shares(params: RoundParams, dropped: int) -> tuple[float, float]:
    """Time sharing two secrets among the holders, and rebuilding one from what is left."""
    # large cohorts are timed in small: threshold and holders in the same proportion
    scale = max(1.0, params.holders / _SHARES)
    holders, t = int(params.holders / scale), max(1, int(params.threshold / scale))
    answered = max(t, round(holders * (1 - dropped / params.n_clients)))
    points = np.arange(1, holders + 1, dtype=np.uint64)
    secret = os.urandom(keys.SEED_BYTES)
    limbs = np.tile(shamir.to_limbs(secret), 2)
    rows = shamir.split_limbs(limbs, t, points, os.urandom)[:, :SHARE_LIMBS]
    shares = {i: np.ascontiguousarray(row) for i, row in enumerate(rows[:answered])}
    ids = list(range(holders))
    reused = Recovery(t)

    def rebuild() -> None:
        # on the complete graph all secrets have the same holders, and so the same weights
        recovery = reused if params.neighbours is None else Recovery(t)
        recovery.rebuild(0, ids, shares, lambda found: found == secret)

    split = mean_seconds(lambda: shamir.split_limbs(limbs, t, points, os.urandom))
    # a polynomial's values at all points; a matrix of answers by t, and where it is not kept,
    # the t² operations of each of its rows
    power = 2 if params.neighbours is None else 3
    return split * scale**2, mean_seconds(rebuild) * scale**power
