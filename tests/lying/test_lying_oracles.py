"""Two worlds with equal sums and different private numbers: a server cannot tell them apart."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing

import pytest

from lying.doors import DOORS
from lying.mends import ALIKE, VARIED, inputs_unguarded
from lying.oracle import trial
from lying.worlds import PAIRS
from secagg import _fast

pytestmark = [
    pytest.mark.filterwarnings("ignore::secagg.ClippingWarning"),
    pytest.mark.filterwarnings("ignore::secagg.PrecisionWarning"),
    pytest.mark.skipif(not _fast.COMPILED, reason="without kernels it shows the same"),
]
FEW = [pair for pair in PAIRS if pair.name in ("weights", "raises")]
KEYED = [name for name in DOORS if "semi-honest" not in name and name != "helpers"]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


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
