"""A lying server learns nothing at any door, and would learn more without the mends."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice

import pytest

from lying.door import Door
from lying.doors import DOORS
from lying.mends import MENDS
from lying.search import (
    Search,
    alone,
    compare,
    downgrade,
    honest,
    lie,
    lies,
    repeat,
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
NAMES = (
    "take_part",
    "take_part-one-shot",
    "take_part-semi-honest",
    "take_part-one-shot-semi-honest",
    "helpers",
    "flower",
    "flower-one-shot",
    "flower-semi-honest",
    "flower-one-shot-semi-honest",
    "fedmf",
    "flare-executor",
    "flare-filter",
    "flare-executor-semi-honest",
    "flare-filter-semi-honest",
)
"""Doors, also those whose framework is not installed."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Log nothing: clients fail on purpose."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def door_of(name: str) -> Door:
    if name not in DOORS:
        pytest.skip("its framework is not installed")
    return DOORS[name]()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.large] if "semi-honest" in name else [])
        for name in NAMES
    ],
)
def test_lying_server_learns_nothing(name: str) -> None:
    with closing(door_of(name)) as door:
        count = 8 if name == "fedmf" else SHORT  # its messages are those of Flower's door
        check(door, count, [pair for pair in PAIRS if pair.name in QUICK])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_lying_server_learns_nothing_in_more_schedules(name: str) -> None:
    with closing(door_of(name)) as door:
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
    search.check()


@pytest.mark.parametrize("name", MENDS)
def test_mend_taken_out_is_found(name: str) -> None:
    mend = MENDS[name]
    with closing(door_of(mend.door)) as door, mend.taken_out():
        search = Search(door)
        mend.attack(search)
        assert [one for one in search.findings if mend.found(one)], search.findings


@pytest.mark.large
@pytest.mark.parametrize("name", MENDS)
def test_mend_prevents_what_is_found_without_it(name: str) -> None:
    mend = MENDS[name]
    with closing(door_of(mend.door)) as door:
        search = Search(door)
        mend.attack(search)
    assert search.findings == []


def test_honest_server_gets_the_sum_of_all() -> None:
    """The checker accepts an honest sum at a door that binds what its training reads."""
    with closing(door_of("take_part")) as door:
        search = Search(door)
        honest(search)
        assert search.findings == []
