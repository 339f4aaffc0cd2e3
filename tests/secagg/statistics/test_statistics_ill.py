"""Ill-conditioned studies end in problems that name columns, never in absurd numbers."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import ParameterError
from secagg.statistics import (
    Category,
    Counts,
    Covariance,
    Histogram,
    Linear,
    Logistic,
    Moments,
    Number,
    Plan,
    Poisson,
    Quantiles,
    Result,
    SitePolicy,
    Survival,
    simulate,
)

ANY = SitePolicy(min_count=1, min_sites=1, records_per_parameter=1)
N = 120
COLUMNS: dict[str, Any] = {
    "x": Number(-100, 1000),
    "z": Number(-100, 1000),
    "fine": Number(-1000, 1000, "0.000001"),
    "near": Number(-1000, 1000, "0.000001"),
    "c": Category(["a", "b", "c"]),
    "d": Category(["no", "yes"]),
    "y": Number(0, 1),
    "k": Number(0, 10**9),
}
TABLE: dict[str, list[Any]] = {
    "x": [i * 37 % 101 for i in range(N)],
    "z": [i * i % 89 for i in range(N)],
    "fine": [i * 37 % 101 for i in range(N)],
    "near": [i * 37 % 101 + 1e-6 * (i % 2) for i in range(N)],
    "c": [("a", "b", "c")[i // 3 % 3] for i in range(N)],
    "d": [("no", "yes")[i * 7 % 5 % 2] for i in range(N)],
    "y": [int(i * 53 % 97 > 40) for i in range(N)],
    "k": [i * 53 % 7 for i in range(N)],
}


def run(statistics: list[Any], changes: dict[str, list[Any]], **least: int) -> Result:
    """Result over four sites; all numbers of the result are finite."""
    names = {name for name in COLUMNS for one in statistics if name in _names(one)}
    columns = {name: COLUMNS[name] for name in names}
    least = {"min_count": 1, "min_sites": 1, "records_per_parameter": 1} | least
    plan = Plan("ill", columns, tuple(statistics), **least)
    whole = {name: (TABLE | changes)[name] for name in names}
    tables = [{name: list(v)[i::4] for name, v in whole.items()} for i in range(4)]
    result = simulate(plan, tables, way="plain", policy=ANY)
    assert json.loads(result.to_json())
    assert "nan" not in str(result).lower().split()
    for name in result.names:
        for row in result[name].rows:
            assert all(not isinstance(v, float) or math.isfinite(v) for v in row)
    return result


def _names(statistic: Any) -> set[str]:
    values = vars(statistic).values()
    return {n for v in values for n in (v if isinstance(v, tuple) else (v,))}


MODELS: dict[str, Any] = {
    "linear": lambda *x: Linear("fine", x),
    "logistic": lambda *x: Logistic("y", x),
    "poisson": lambda *x: Poisson("k", x),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("x", "changes", "named"),
    [
        (("x", "z"), {}, ()),
        (("x", "z"), {"z": [2 * x + 3 for x in TABLE["x"]]}, ("x", "z")),
        (("x", "z", "d"), {"z": [x + 7 * (d == "yes") for x, d in
                                 zip(TABLE["x"], TABLE["d"], strict=True)]}, ("x", "z", "d")),
        (("c", "d"), {"d": [("no", "yes")[c == "b"] for c in TABLE["c"]]}, ("c = b", "d")),
        (("x", "z"), {"z": [7] * N}, ("z",)),
        (("x", "c"), {"c": ["a", "b"] * (N // 2)}, ("c = c",)),
        (("x", "c"), {"c": ["c", "b"] * (N // 2)}, ("c = c",)),
        (("x", "c"), {"c": ["b"] * N}, ("c = b",)),
        (("x", "c"), {"c": [""] * N}, ("x", "c")),
        (("x", "z"), {"x": TABLE["x"][:2] + [""] * (N - 2)}, ("x", "z")),
        (("x", "near"), {"x": [round(v) for v in TABLE["near"]]}, ("x", "near")),
        (("x", "near"), {"near": [1e-6 * (i % 2) for i in range(N)]}, ("near",)),
    ],
    ids=["sound", "collinear", "three collinear", "same groups", "constant", "empty group",
         "empty reference", "one group", "no records", "two records", "nearly collinear",
         "nearly constant"],
)  # fmt: skip
def test_designs_without_a_solution(
    model: str, x: tuple[str, ...], changes: dict[str, Any], named: tuple[str, ...]
) -> None:
    noise = [v + i * i % 13 for i, v in enumerate(TABLE["fine"])]
    statistic = MODELS[model](*x)
    result = run([statistic], {"fine": noise, "near": TABLE["near"]} | changes)
    if model == "linear" and "near" in named:
        named = ()  # exact sums tell the two apart
    assert (statistic.name in result.problems) == bool(named)
    assert all(name in result.problems[statistic.name] for name in named)


@pytest.mark.parametrize(
    ("statistic", "changes", "named"),
    [
        # the outcome is the same for all, or follows exactly
        (Linear("fine", ("x",)), {"fine": [5.0] * N}, "fine"),
        (Linear("fine", ("x",)), {"fine": [2 * x + 0.25 for x in TABLE["x"]]}, "fine"),
        (Logistic("y", ("x",)), {"y": [1] * N}, "y"),
        (Logistic("y", ("x",)), {"y": [0] * N}, "y"),
        (Logistic("d", ("x",)), {"d": ["no"] * N}, "d"),
        (Poisson("k", ("x",)), {"k": [0] * N}, "k"),
        # complete separation, and quasi-separation
        (Logistic("y", ("x",)), {"y": [int(x > 50) for x in TABLE["x"]]}, "x"),
        (Logistic("y", ("x", "z")), {"y": [
            int(x > z) for x, z in zip(TABLE["x"], TABLE["z"], strict=True)]}, "x, z"),
        (Logistic("y", ("x",)), {"y": [
            int(x > 50 or (x == 50 and i % 2)) for i, x in enumerate(TABLE["x"])]}, "x"),
        (Logistic("y", ("x", "c")), {"y": [
            y | (c == "b") for y, c in zip(TABLE["y"], TABLE["c"], strict=True)]}, "c = b"),
        (Logistic("y", ("z", "d")), {"y": [
            y & (d == "no") for y, d in zip(TABLE["y"], TABLE["d"], strict=True)]}, "d = yes"),
        (Poisson("k", ("z", "c")), {"k": [
            k * (c != "c") for k, c in zip(TABLE["k"], TABLE["c"], strict=True)]}, "c = c"),
        (Poisson("k", ("x",)), {"k": [int(x == 100) for x in TABLE["x"]]}, "x"),
    ],
)  # fmt: skip
def test_outcomes_without_a_solution(statistic: Any, changes: Any, named: str) -> None:
    result = run([statistic], changes)
    assert named in result.problems[statistic.name]
    assert f"{statistic.name} has no result" in _error(result, statistic.name)


def _error(result: Result, name: str) -> str:
    with pytest.raises(ParameterError) as caught:
        result[name]
    return str(caught.value)


@pytest.mark.parametrize("kind", MODELS)
def test_regressions_need_records_for_each_parameter(kind: str) -> None:
    noise = [v + i * i % 13 for i, v in enumerate(TABLE["fine"])]
    statistic = MODELS[kind]("x", "z")
    for factor in (N // 3, N // 3 + 1):
        result = run([statistic], {"fine": noise}, records_per_parameter=factor)
        assert (statistic.name in result.problems) == (3 * factor > N)


LARGE = [10**9 - i % 3 if i % 2 else i % 4 for i in range(N)]


@pytest.mark.parametrize(
    "k", [LARGE, [10**9 - i % 2 for i in range(N)], [i * 999 for i in range(N)]]
)
def test_counts_of_any_size_have_finite_coefficients(k: list[int]) -> None:
    run([Poisson("k", ("x", "c")), Linear("k", ("x", "c")), Moments("k")], {"k": k})


EMPTY = {name: [""] * N for name in TABLE}
ALL: list[Any] = [
    Moments("x"),
    Moments("z", by="c"),
    Counts(("c", "d")),
    Histogram("x", [10, 50], by="c"),
    Quantiles("x", by="c"),
    Covariance(("x", "z")),
    Linear("fine", ("x", "c")),
    Logistic("y", ("x", "c")),
    Poisson("k", ("x", "c")),
    Survival("x", "d", [5, 50, 100], by="c"),
]


@pytest.mark.parametrize(
    "changes",
    [
        EMPTY,
        {name: [] for name in TABLE},
        {name: values[:1] for name, values in TABLE.items()},
        {"x": [1000] * N},
        {"x": [-100] * N, "z": [7] * N},
        {"c": ["c"] * N},
        {"c": [""] * N},
        {"d": ["no"] * N},
        {"d": ["yes"] * N, "x": [50] * N},
        {"d": [""] * N},
    ],
    ids=["all missing", "no records", "one record", "all at the end", "constant columns",
         "one group", "no group", "no event", "all events at once", "no outcomes"],
)  # fmt: skip
@pytest.mark.parametrize("least", [1, 5])
def test_all_statistics_of_poor_tables_are_finite(changes: Any, least: int) -> None:
    run(ALL, changes, min_count=least)


rows = st.lists(
    st.tuples(
        st.sampled_from([-100, 0, 1, 2, 1000, ""]),
        st.sampled_from([0, 1, 5, ""]),
        st.sampled_from(["a", "b", "c", "?"]),
        st.integers(0, 1),
        st.sampled_from([0, 1, 2, 10**9]),
        st.sampled_from([0.0, 1e-6, 2e-6, 1000.0]),
    ),
    max_size=40,
)


@given(rows)
@examples(100)
def test_random_poor_tables_are_finite_or_have_problems(found: Any) -> None:
    names = ("x", "z", "c", "y", "k", "near")
    changes = dict(zip(names, map(list, zip(*found, strict=True)), strict=False))
    columns = {name: changes.get(name, []) for name in names}
    statistics = [
        Linear("x", ("near", "c")),
        Logistic("y", ("x", "near", "c"), steps=9),
        Poisson("k", ("x", "z", "near"), steps=9),
        Covariance(("x", "z", "near")),
    ]
    result = run(statistics, columns)
    for name, problem in result.problems.items():
        assert any(column in problem for column in names), (name, problem)
