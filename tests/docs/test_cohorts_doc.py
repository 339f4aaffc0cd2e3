"""docs/how-to/cohorts.md is recomputed: the table of cohorts is the code's."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from secagg import FixedPoint, RoundParams
from secagg.graph import tails
from secagg.protocol.traffic import client_traffic

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "cohorts.md").read_text()
ROW = r"^\| (0\.\S+), (\S+) \| (\d+) \| (\d+) \| (\d+) \| (.*) \| (\d+) kB \|$"
ROWS = re.findall(ROW, TEXT, re.MULTILINE)
CLIENTS = 10**6


def holds(m: int, fraction: str, most: int, bits: int) -> bool:
    """Return whether all cohorts of m clients have at most so many of a fraction of all."""
    marked = math.ceil(Fraction(fraction) * CLIENTS)
    return CLIENTS // m * tails.at_least(CLIENTS, marked, m, most + 1) <= Fraction(1, 2**bits)


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_rows_are_the_smallest_that_hold(row: tuple[str, ...]) -> None:
    corrupt, dropout, *numbers, graph, kilobytes = row
    m, c, d = map(int, numbers)
    for fraction, most, bits in ((corrupt, c, 41), (dropout, d, 31)):
        assert holds(m, fraction, most, bits)
        assert not holds(m, fraction, most - 1, bits)
    params = RoundParams.suggest(m, 10_000, FixedPoint(8.0), corrupt=c / m, dropout=d / m)
    assert graph == f"{params.neighbours or 'all'}, {params.threshold}"
    sent = sum(one.up for one in client_traffic(params).values())
    assert round(sent / 1000) == int(kilobytes)


def test_table_has_its_rows() -> None:
    assert len(ROWS) == 8
