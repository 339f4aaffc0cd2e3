"""Rows and series: each names a case that takes its sizes, and issue 19's ratios are there."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from benches.speed import cases, releases
from benches.speed.rows import ROWS, Row
from benches.speed.scaling import SERIES, THREADS, Series

REQUIRED = {
    "masks": {"tier aesni": (1.9, 3.2)},
    "masking": {"cryptography, numpy": (4, 7)},
    "x25519": {"loop over cryptography": (3.8,)},
    "server-1000": {"release 0.4": (4, 7)},
    "server-100": {"Flower's SecAgg+": (1000,)},
    "session": {"its first round": (1.5,)},
    "ml-100k": {"release 0.4": (2,)},
    "shares-62": {"Python integers, Horner": (50,)},
    "one-shot-x25519": {"before the tiers with VAES": (1.4,)},
    "paillier-2048": {"phe": (10_000,)},
    "paillier-3072": {"phe": (15_000,)},
}
"""Least ratios, on one core and on two."""


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


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.large if case.partition(".")[2] in SLOW else ())
        for name, (case, _) in small().items()
    ],
)
def test_small_case_gives_its_seconds(name: str) -> None:
    case, arguments = small()[name]
    if case.endswith("flint"):
        pytest.importorskip("flint")
    module, _, function = case.partition(".")
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


def test_required_ratios_are_those_of_the_issue() -> None:
    rows = {row.name: row for row in ROWS}
    assert len(rows) == len(ROWS)
    for name, rivals in REQUIRED.items():
        found = {one.label: one.least for one in rows[name].rivals if one.least}
        assert found == rivals, name
    assert rows["import"].most == 0.08


def test_earlier_releases_run_only_cases_written_for_them() -> None:
    old = [one for row in ROWS for one in row.rivals if one.code != releases.PRESENT]
    assert {one.case.partition(".")[0] for one in old} == {"cases"}
