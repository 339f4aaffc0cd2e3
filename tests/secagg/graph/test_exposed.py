"""Clients that random colluders expose, under the defaults and under earlier defaults.

Colluders and dropouts with random ids are at random places of the ring, so each draw fills a
ring. An honest client is exposed if t of its neighbours collude (E1), or if honest
survivors are cut off from the largest part of the others (E2); see `secagg.graph.tails`.
"""

from __future__ import annotations

import numpy as np
import pytest

from secagg import FixedPoint, RoundParams
from secagg.graph.graph import CORRUPT, DROPOUT, count
from secagg.protocol.suggestion import COMPLETE_UP_TO

BLOCK = 2_000
HONEST, COLLUDES, GONE = 0, 1, 2


def windows(flags: np.ndarray, size: int) -> np.ndarray:
    """Return the number of flags in each circular run of `size` places, by its last place."""
    ahead = np.concatenate((flags[:, -size:], flags), axis=1)
    total = np.cumsum(ahead, axis=1, dtype=np.int32)
    return total[:, size:] - total[:, :-size]


def exposed_by_shares(ring: np.ndarray, k: int | None, t: int) -> int:
    """Return the number of honest clients of whose holders t or more collude (E1)."""
    colludes = ring == COLLUDES
    if k is None or k >= ring.shape[1] - 1:
        held = np.broadcast_to(colludes.sum(axis=1)[:, None], ring.shape)
    else:  # k/2 places on either side, and the place itself, which counts for colluders only
        held = np.roll(windows(colludes, k + 1), -(k // 2), axis=1)
    return int(((held >= t) & ~colludes).sum())


def exposed_by_pieces(ring: np.ndarray, k: int | None) -> int:
    """Return the number of honest survivors outside the largest connected part (E2)."""
    if k is None or k >= ring.shape[1] - 1:
        return 0
    missing = ring != HONEST
    ends = (windows(missing, k // 2) == k // 2) & ~np.roll(missing, -1, axis=1)
    cut = 0
    for places, last in zip(missing, ends, strict=True):
        if last.sum() < 2:  # one gap leaves a path
            continue
        after = np.sort(np.flatnonzero(last)) + 1
        parts = np.split(np.roll(~places, -after[0]), after[1:] - after[0])
        sizes = [int(part.sum()) for part in parts]
        cut += sum(sizes) - max(sizes)
    return cut


def exposed(n: int, k: int | None, t: int, draws: int, seed: int) -> tuple[float, float]:
    """Return the mean number of clients exposed by E1 and by E2, of `draws` random rings."""
    rng = np.random.default_rng([seed, n])
    bad, gone = count(CORRUPT, n), count(DROPOUT, n)
    kinds = np.repeat(np.array([HONEST, COLLUDES, GONE], np.int8), [n - bad - gone, bad, gone])
    shares = pieces = done = 0
    while done < draws:
        size = min(BLOCK, draws - done)
        ring = rng.permuted(np.broadcast_to(kinds, (size, n)), axis=1)
        shares += exposed_by_shares(ring, k, t)
        pieces += exposed_by_pieces(ring, k)
        done += size
    return shares / draws, pieces / draws


@pytest.mark.parametrize("n", [10, 50, 100, 200, 1000])
@pytest.mark.parametrize(
    "draws", [2_000, pytest.param(100_000, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_check04_defaults_expose_nobody(n: int, draws: int) -> None:
    params = RoundParams.suggest(n, 1, FixedPoint(1.0))
    assert (params.neighbours is None) == (n <= COMPLETE_UP_TO)
    assert exposed(n, params.neighbours, params.threshold, draws, seed=1) == (0, 0)


@pytest.mark.parametrize(("n", "k", "t", "expected"), [(10, 4, 2, 1.33), (50, 8, 4, 1.75)])
def test_former_defaults_expose_clients(n: int, k: int, t: int, expected: float) -> None:
    """Recommended for a twentieth that colludes; the probability of E1 gives the number."""
    shares, _ = exposed(n, k, t, 20_000, seed=2)
    assert shares == pytest.approx(expected, abs=0.05)


def test_parts_are_the_connected_parts_of_the_ring() -> None:
    """Two gaps of two cut three survivors off if neighbours are two places away."""
    ring = np.array(
        [[0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 1], [0, 0, 0, 1, 2, 0, 1, 0, 0, 2, 0]], np.int8
    )
    assert exposed_by_pieces(ring, 4) == 3
    assert exposed_by_pieces(ring, None) == 0
    assert exposed_by_pieces(np.roll(ring, 1, axis=1), 4) == 3
