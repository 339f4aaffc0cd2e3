"""docs/how-to/collection-sizing.md: all figures follow from the table of measured figures."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from secagg import FixedPoint
from secagg.oneshot import OneShotParams
from secagg.protocol.suites import SuiteName
from secagg.simulate import temporary_journals

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "collection-sizing.md").read_text()


def found(pattern: str, text: str = TEXT) -> list[tuple[str, ...]]:
    return re.findall(pattern, text, re.MULTILINE)


MEASURED = {name: float(value) for name, value in found(r"^\| `(\w+)` \| (\S+) \|")}
SIZES = found(r"^\| (\d+) \| (\d+) \| (\d+) \| (\w+) \| (\d+) \|$")
DERIVED = [
    (title, *row)
    for title, rows in found(r"^\| quantity \| formula \| (.*) \|\n\|.*\n((?:\|.*\n)+)")
    for row in found(r"^\| .* \| `(.+)` \| (.*) \|$", rows)
]
SYMBOL = re.compile(r"(\w) = ([\d^]+)")


@pytest.mark.parametrize("row", DERIVED, ids=lambda row: row[1])
def test_figures_follow_from_the_measured(row: tuple[str, str, str]) -> None:
    title, formula, figures = row
    for column, figure in zip(title.split(" | "), figures.split(" | "), strict=True):
        values = {name: eval(text.replace("^", "**")) for name, text in SYMBOL.findall(column)}  # noqa: S307
        known = {"s": 7474} | MEASURED | values | {"ceil": math.ceil, "max": max}
        exact = eval(formula, known)  # noqa: S307
        assert float(figure) == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("row", SIZES, ids=" ".join)
def test_bytes_of_a_report(row: tuple[str, ...]) -> None:
    n, length, bits, suite, size = row
    chosen: SuiteName = "hybrid" if suite == "hybrid" else "x25519"
    with temporary_journals(2, suite=chosen) as journals:
        params = OneShotParams.suggest(
            int(n), int(length), FixedPoint(8.0), helpers=[one.public for one in journals],
            session=b"size",
        )  # fmt: skip
    assert params.ring.bits == int(bits)
    assert params.layout.report == int(size)


def test_tables_have_their_rows() -> None:
    assert (len(MEASURED), len(SIZES), len(DERIVED)) == (12, 4, 29)
