"""A lying server learns nothing at any door, and would learn more without the mends.

In two worlds with equal sums and different private numbers a server sees the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice

import pytest

from lying.door import Door
from lying.doors import DOORS
from lying.mends import ALIKE, MENDS, VARIED, inputs_unguarded
from lying.oracle import trial
from lying.search import (
    Search,
    alone,
    compare,
    downgrade,
    honest,
    lie,
    lies,
    repeat,
    spend,
    together,
)
from lying.worlds import PAIRS, QUICK, Pair
from secagg import _fast

pytestmark = [
    pytest.mark.filterwarnings("ignore::secagg.ClippingWarning"),
    pytest.mark.filterwarnings("ignore::secagg.PrecisionWarning"),
    pytest.mark.skipif(not _fast.COMPILED, reason="without kernels it shows the same"),
]
SHORT, LONG = 20, 400
"""Lies at a door; those about what its training reads come first."""


FEW = [pair for pair in PAIRS if pair.name in ("weights", "raises")]
KEYED = [
    name
    for name in DOORS
    if "semi-honest" not in name and name not in ("helpers", "collector", "browser")
]
"""Doors of many rounds; over HTTP, 10,000 rounds take too long."""
KNOWN = [name for name, mend in MENDS.items() if mend.door in DOORS]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Log nothing: clients fail on purpose."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.large] if "semi-honest" in name else [])
        for name in DOORS
    ],
)
def test_lying_server_learns_nothing(name: str) -> None:
    with closing(DOORS[name]()) as door:
        # their messages are those of Flower's door, and of the collector's
        count = 8 if name in ("fedmf", "browser") else SHORT
        check(door, count, [pair for pair in PAIRS if pair.name in QUICK])


@pytest.mark.slow
@pytest.mark.parametrize("name", DOORS)
def test_lying_server_learns_nothing_in_more_schedules(name: str) -> None:
    with closing(DOORS[name]()) as door:
        check(door, LONG, PAIRS)


def check(door: Door, count: int, pairs: Iterable[Pair]) -> None:
    search = Search(door)
    known = lies(search, honest(search))
    told = [*islice(alone(known), count), *islice(together(known), count // 8)]
    lie(search, told[::2], ["the victim"])
    lie(search, told[1::2], ["all but the victim"])
    lie(search, told[::10], ["everybody"])
    compare(search, pairs)
    repeat(search)
    downgrade(search)
    spend(search, count // 5)
    search.check()


@pytest.mark.parametrize("name", KNOWN)
def test_mend_taken_out_is_found(name: str) -> None:
    mend = MENDS[name]
    with closing(DOORS[mend.door]()) as door, mend.taken_out():
        search = Search(door)
        mend.attack(search)
        assert [one for one in search.findings if mend.found(one)], search.findings


@pytest.mark.large
@pytest.mark.parametrize("name", KNOWN)
def test_mend_prevents_what_is_found_without_it(name: str) -> None:
    mend = MENDS[name]
    with closing(DOORS[mend.door]()) as door:
        search = Search(door)
        mend.attack(search)
    assert search.findings == []


def test_server_has_no_advantage_in_a_few_rounds() -> None:
    with closing(DOORS["take_part-one-shot"]()) as door:
        found = trial(door, 60, pairs=FEW)
    assert found.advantage() <= 0.5, found.by_pair()


def test_server_has_the_advantage_in_a_few_rounds_without_the_mends() -> None:
    with closing(DOORS["take_part-one-shot"]()) as door, inputs_unguarded():
        found = trial(door, 60, pairs=FEW)
    assert found.advantage() >= 0.9, found.by_pair()


@pytest.mark.slow
@pytest.mark.parametrize("name", KEYED)
def test_server_has_no_advantage(name: str) -> None:
    """Without a difference, the advantage has a standard deviation of .012."""
    with closing(DOORS[name]()) as door:
        found = trial(door, 10_000)
    assert found.advantage() <= 0.03, found.by_pair()


@pytest.mark.slow
@pytest.mark.parametrize("name", KEYED)
def test_server_has_the_advantage_without_the_mends(name: str) -> None:
    varied = VARIED - ALIKE.get(name, frozenset())
    with closing(DOORS[name]()) as door, inputs_unguarded():
        found = trial(door, 400, pairs=[pair for pair in PAIRS if pair.name in varied])
    assert found.advantage() >= 0.9, found.by_pair()
