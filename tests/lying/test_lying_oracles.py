"""Two worlds with equal sums and different private numbers: a server cannot tell them apart."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing

import pytest

from lying.doors import DOORS
from lying.oracle import Trial, trial
from lying.search import Learnt
from lying.worlds import PAIRS, QUICK
from secagg import _fast

pytestmark = [
    pytest.mark.filterwarnings("ignore::secagg.ClippingWarning"),
    pytest.mark.skipif(not _fast.COMPILED, reason="without kernels it shows the same"),
]
REASON = "B2: whether and how clients answer depends on private numbers"
FAILURES = ("raises", "nan", "infinite", "shape", "no weight", "float weight", "no metric")
BOUNDS = ("weights 3+7, 5+5", "metrics 3+1, 2+2", "elements 6+2, 4+4")
TODAY = {"weights", "weight above the own", "metrics", *BOUNDS, *FAILURES}
"""Pairs that a server tells apart today."""
KEYED = [name for name in DOORS if "semi-honest" not in name and name != "helpers"]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.xfail(strict=True, raises=Learnt, reason=REASON)
def test_server_has_no_advantage_in_a_few_rounds() -> None:
    """In 100 rounds, the advantage of a guess is below .35 but for one in 2,000 runs."""
    with closing(DOORS["take_part-one-shot"]()) as door:
        check(trial(door, 100, pairs=[pair for pair in PAIRS if pair.name in QUICK]), 0.35)


def check(found: Trial, bound: float) -> None:
    if found.advantage() > bound:
        raise Learnt(found.by_pair())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.xfail(strict=True, reason=REASON)) for n in KEYED],
)
def test_server_has_no_advantage(name: str) -> None:
    """In 10,000 rounds, the advantage of a guess is below .03 but for one in 700 runs."""
    with closing(DOORS[name]()) as door:
        check(trial(door, 10_000), 0.03)


@pytest.mark.slow
@pytest.mark.parametrize("name", KEYED)
def test_server_has_the_advantage_without_the_mends(name: str) -> None:
    with closing(DOORS[name]()) as door:
        pairs = [pair for pair in PAIRS if pair.name in TODAY]
        found = trial(door, 400, pairs=pairs)
    assert found.advantage() >= 0.9, found.by_pair()
