"""Rows and series: each names a case that takes its sizes."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from benches.speed import cases, releases
from benches.speed.rows import ROWS, Row
from benches.speed.scaling import SERIES, THREADS, Series


def takes(case: str, arguments: dict[str, object]) -> bool:
    """Return True if a case exists and takes exactly these arguments."""
    module, _, name = case.partition(".")
    function = getattr(import_module(f"benches.speed.{module}"), name)
    inspect.signature(function).bind(**arguments)
    return True


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_cases_take_the_arguments_of_their_row(row: Row) -> None:
    for arguments in (row.arguments, row.quick):
        assert takes(row.case, dict(arguments))
        for rival in row.rivals:
            assert takes(rival.case, {**arguments, **rival.arguments})
    for rival in row.rivals:
        assert len(rival.least) <= len(row.cores)


def small() -> dict[str, tuple[str, dict[str, object]]]:
    """Return case and arguments of each trial, by a name; rivals of other commits left out."""
    found = {}
    for row in ROWS:
        found[row.name] = row.case, dict(row.quick)
        for one in row.rivals:
            if one.code == releases.PRESENT:
                found[f"{row.name}, {one.label}"] = one.case, {**row.quick, **one.arguments}
    return found


SLOW = ("encryption", "encryption_by_phe", "imports")
"""Cases with real keys or fresh interpreters."""
OPTIONAL = {"shares_in_flint": "flint", "logistic_pooled": "statsmodels"}
"""Packages of cases that may be absent."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.large if case.partition(".")[2] in SLOW else ())
        for name, (case, _) in small().items()
    ],
)
def test_small_case_gives_its_seconds(name: str) -> None:
    case, arguments = small()[name]
    module, _, function = case.partition(".")
    if function in OPTIONAL:
        pytest.importorskip(OPTIONAL[function])
    measure = getattr(import_module(f"benches.speed.{module}"), function)(**arguments)
    least = -1 if function == "imports" else 0  # a difference of noisy times
    assert least < measure() < 600


@pytest.mark.parametrize("part", ["client", "server"])
def test_small_simulated_round_gives_its_seconds(part: str) -> None:
    sizes = {"n": 12, "neighbours": 6, "length": 20, "dropout": 0.1}
    assert 0 < cases.round_part(part, **sizes)() < 60


@pytest.mark.parametrize("series", SERIES, ids=lambda one: f"{one.title} over {one.axis}")
def test_series_take_their_points(series: Series) -> None:
    assert list(series.points) == sorted(set(series.points))
    axis = {} if series.axis == THREADS else {series.axis: series.points[0]}
    assert takes(series.case, {**series.arguments, **axis})
