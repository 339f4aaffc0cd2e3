"""Clients that random colluders expose, under the defaults and under earlier defaults.

An honest client is exposed if t of its holders collude (E1), or if the honest survivors are
not connected (E2); see `secagg.graph.tails`.
"""

from __future__ import annotations

import numpy as np
import pytest

from secagg import FixedPoint, RoundParams
from secagg.graph import draw
from secagg.graph.assumptions import CORRUPT, DROPOUT, count
from secagg.protocol.suggestion import COMPLETE_UP_TO


def exposed(n: int, k: int | None, t: int, draws: int) -> tuple[float, int]:
    """Return the mean number of clients exposed by E1, and how often E2 happened."""
    rng = np.random.default_rng(n)
    bad, gone = count(CORRUPT, n), count(DROPOUT, n)
    shares = pieces = 0
    for _ in range(draws):
        graph = draw(range(n), k, rng.bytes(32))
        order = rng.permutation(n).tolist()
        colluders, honest = set(order[:bad]), order[bad:]
        held = {u: len(colluders.intersection(graph.holders[u])) for u in honest}
        shares += sum(of_u >= t for of_u in held.values())
        pieces += not graph.is_connected(honest[gone:])
    return shares / draws, pieces


@pytest.mark.parametrize("n", [10, 100, 200, 1000])
@pytest.mark.parametrize(
    "draws", [50, pytest.param(5_000, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_check04_defaults_expose_nobody(n: int, draws: int) -> None:
    params = RoundParams.suggest(n, 1, FixedPoint(1.0))
    assert (params.neighbours is None) == (n <= COMPLETE_UP_TO)
    assert exposed(n, params.neighbours, params.threshold, draws) == (0, 0)


@pytest.mark.parametrize(("n", "k", "t", "expected"), [(10, 4, 2, 1.33), (50, 8, 4, 1.75)])
def test_thresholds_that_were_defaults_expose_clients(
    n: int, k: int, t: int, expected: float
) -> None:
    """Recommended for a twentieth that colludes; the probability of E1 gives the number."""
    shares, _ = exposed(n, k, t, 2_000)
    assert shares == pytest.approx(expected, abs=0.15)
