"""Attacks on single records by readers of results, by plans, and by a curious server."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from effort import examples
from secagg import JournalError, ParameterError, RemoteProtocolError, RoundParams
from secagg.session.wire import AttemptName, message_digest, write_name
from secagg.statistics import (
    Category,
    Counts,
    Covariance,
    Histogram,
    Ledger,
    Linear,
    Logistic,
    Moments,
    Number,
    Plan,
    Poisson,
    Quantiles,
    Result,
    Site,
    SitePolicy,
    Study,
    Survival,
    simulate,
)
from secagg.statistics.disclosure import hidden_cells
from secagg.statistics.statistic import Cell, Frame
from secagg.statistics.study import LABEL

ANY = SitePolicy(min_count=1, min_sites=1, records_per_parameter=1)
LEAST = 5


def ran(
    columns: dict[str, Any], statistics: Sequence[Any], table: dict[str, Any], **least: int
) -> Study:
    """Study over a table that is split among four sites."""
    least = {"min_count": LEAST, "min_sites": 1, "records_per_parameter": 1} | least
    study = Study(Plan("attacked", columns, tuple(statistics), **least))
    parts = [{name: list(values)[i::4] for name, values in table.items()} for i in range(4)]
    sites = [Site(part, study.plan, policy=ANY) for part in parts]
    while not study.ended:
        study = study.then(np.sum([site(study.message()) for site in sites], axis=0))
    return study


def result_of(
    columns: dict[str, Any], statistics: Sequence[Any], table: dict[str, Any]
) -> Result:
    return Result.of(ran(columns, statistics, table))


# Counts: linear programs of the test's own over all that readers see.


def bounds(shape: tuple[int, ...], known: Sequence[tuple[Any, int]], goal: Any) -> float:
    """Width of the interval of a sum of cells of a table, of which some sums are known."""
    names = np.arange(np.prod(shape)).reshape(shape)
    row = np.zeros(names.size)
    row[names[goal].ravel()] = 1
    matrix = np.zeros((len(known), names.size))
    for i, (where, _) in enumerate(known):
        matrix[i, np.atleast_1d(names[where]).ravel()] = 1
    counts = [count for _, count in known]
    ends = []
    for sign in (1, -1):
        found = linprog(sign * row, A_eq=matrix, b_eq=counts, method="highs-ds")
        ends.append(sign * found.fun if found.status == 0 else sign * -np.inf)
    return float(ends[1] - ends[0])


tables = st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 8, 20]), min_size=9, max_size=9)


@given(tables)
@examples(60)
def test_no_hidden_cell_follows_from_cells_and_margins(counts: list[int]) -> None:
    cells = np.array(counts).reshape(3, 3)
    table = {
        name: [str(place[axis]) for place, n in np.ndenumerate(cells) for _ in range(n)]
        for axis, name in enumerate("ab")
    }
    columns = {name: Category(list("012")) for name in "ab"}
    statistics = [Counts(("a", "b")), Counts(("a",)), Counts(("b",))]
    result = result_of(columns, statistics, table)
    # the last row and the last column are the missing values
    shape, known, hidden = (4, 4), list[tuple[Any, int]](), list[Any]()
    place = {"0": 0, "1": 1, "2": 2, "(missing)": 3}
    for names, fixed in (("a and b", (0, 1)), ("a", (0,)), ("b", (1,))):
        for *labels, n, _ in result[f"counts of {names}"].rows:
            where: list[Any] = [slice(None)] * 2
            for axis, label in zip(fixed, labels, strict=True):
                where[axis] = place[str(label)]
            if n is None:
                hidden.append(tuple(where))
            else:
                known.append((tuple(where), int(str(n))))
    for name, *rest in result["records"].rows:
        where = [slice(None)] * 2
        where["ab".index(str(name))] = 3
        known += [(tuple(where), int(str(n))) for n in rest[:1] if n is not None]
    ((total, _),) = result["records: all"].rows
    known += [] if total is None else [((slice(None),) * 2, int(str(total)))]
    assert not any(0 < n < LEAST for _, n in known)
    for goal in hidden:
        assert bounds(shape, known, goal) > LEAST


def test_no_integer_table_but_few_fits_a_hidden_cell() -> None:
    table = {"a": list("0" * 12 + "1" * 9), "b": list("0" * 10 + "1" * 2 + "0" * 2 + "1" * 7)}
    columns = {name: Category(list("01")) for name in "ab"}
    result = result_of(columns, [Counts(("a", "b")), Counts(("a",))], table)
    cells = {row[:2]: row[2] for row in result["counts of a and b"].rows}
    rows = dict(row[:2] for row in result["counts of a"].rows)
    fit = [
        c for c in product(range(22), repeat=4)
        if all(cells["01"[i // 2], "01"[i % 2]] in (None, c[i]) for i in range(4))
        and all(rows["01"[i]] in (None, c[2 * i] + c[2 * i + 1]) for i in range(2))
        and sum(c) == 21
    ]  # fmt: skip
    for i in range(4):
        if cells["01"[i // 2], "01"[i % 2]] is None:
            assert max(c[i] for c in fit) - min(c[i] for c in fit) > LEAST


# Sums of values: each study would show the value of one record.

N = 60
X = list(range(20, 20 + N))
G = list("ab" * (N // 2))
NUMBER = Number(0, 100)
FLAG, AB, ABC = Number(0, 1), Category(list("ab")), Category(list("abc"))
Y = [int(x * 7 % 60 < x) for x in X]


def but(values: Sequence[Any], *changed: tuple[int, Any]) -> list[Any]:
    found = list(values)
    for place, value in changed:
        found[place] = value
    return found


def shown(result: Result, name: str) -> list[tuple[Any, ...]]:
    """Rows of which something is published."""
    return [row for row in result[name].rows if row[2] is not None]


@pytest.mark.parametrize(
    ("columns", "statistics", "table", "name", "rows"),
    [
        # a record without a group is the difference of the whole and all groups
        ({"x": NUMBER, "g": AB}, [Moments("x"), Moments("x", by="g")],
         {"x": X, "g": but(G, (7, ""))}, "moments of x by g", 1),
        # the same where another column hides how many records have no group
        ({"x": NUMBER, "g": AB}, [Moments("x"), Moments("x", by="g")],
         {"x": [*X, *[""] * 9], "g": [*but(G, (7, "")), *[""] * 9]}, "moments of x by g", 1),
        # a group of one, and its complement
        ({"x": NUMBER, "g": ABC}, [Moments("x"), Moments("x", by="g")],
         {"x": X, "g": but(G, (7, "c"))}, "moments of x by g", 1),
        # two groupings whose groups differ by one record
        ({"x": NUMBER, "g": AB, "h": AB}, [Moments("x", by="g"), Moments("x", by="h")],
         {"x": X, "g": G, "h": but(G, (7, ""))}, "moments of x by h", 1),
        # two groupings, each with a record that the other lacks
        ({"x": NUMBER, "g": AB, "h": AB}, [Moments("x", by="g"), Moments("x", by="h")],
         {"x": X, "g": but(G, (9, "")), "h": but(G, (7, ""))}, "moments of x by h", 1),
        # a group with a single other value, which follows from the other groups and the whole
        ({"x": NUMBER, "g": ABC}, [Moments("x"), Moments("x", by="g")],
         {"x": but([*X[:40], *[50] * 20], (57, 80)), "g": list("ab" * 20 + "c" * 20)},
         "moments of x by g", 1),
        # the value of the only record inside a range
        ({"x": FLAG}, [Moments("x")], {"x": but([0] * N, (7, 1))}, "moments of x", 0),
        ({"x": NUMBER}, [Moments("x")], {"x": but([999] * N, (7, 5))}, "moments of x", 0),
        # the same in a group that is too small for the rule of dominance
        ({"x": NUMBER}, [Moments("x")], {"x": but([999] * 9, (7, 5))}, "moments of x", 0),
        # a value amid the range that all other records have
        ({"x": NUMBER}, [Moments("x")], {"x": but([50] * N, (7, 80))}, "moments of x", 0),
        ({"x": NUMBER}, [Moments("x")], {"x": but([50] * N, *((i, 30) for i in range(4)))},
         "moments of x", 0),
        ({"x": NUMBER, "g": ABC}, [Quantiles("x", by="g")],
         {"x": X, "g": but(G, (7, "c"))}, "quantiles of x by g", 6),
        # ranks next to each other count the records of each part
        ({"x": NUMBER}, [Quantiles("x", [0.5, 0.52])],
         {"x": X}, "quantiles of x", 0),
        ({"x": NUMBER, "d": AB, "g": ABC}, [Survival("x", "d", [40, 60, 80], by="g")],
         {"x": X, "d": G, "g": but(list("ab" * 15 + "ba" * 15), (7, "c"))},
         "survival of x by g", 1),
        # a bin around a single value
        ({"x": NUMBER}, [Histogram("x", [45, 46])], {"x": X}, "histogram of x", 2),
        # at most four records are below the interval, and two in a hidden bin
        ({"x": NUMBER}, [Histogram("x", [10, 20]), Quantiles("x", [0.07], bins=10)],
         {"x": [1] * 2 + [15] * 8 + X[:50]}, "quantiles of x", 0),
    ],
    ids=["no group", "no group, no value", "group of one", "two groupings", "two gaps",
         "other value in a group", "one event", "one inside", "one of nine", "one differs",
         "four differ", "quantile of one", "ranks", "curve of one", "narrow bin",
         "quantile beside bins"],
)  # fmt: skip
def test_single_records_stay_hidden(
    columns: Any, statistics: Any, table: Any, name: str, rows: int
) -> None:
    assert len(shown(result_of(columns, statistics, table), name)) <= rows


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize(
    ("columns", "statistics", "good", "bad", "named"),
    [
        ({"x": NUMBER, "c": ABC, "y": FLAG}, Linear("y", ("x", "c")),
         {"c": list("abc" * (N // 3))}, {"c": but(G, (7, "c"))}, "c = c"),
        # the intercept is the mean of the first value's records
        ({"x": NUMBER, "c": ABC}, Linear("x", ("c",)),
         {"c": list("abc" * (N // 3))}, {"c": but(list("bc" * (N // 2)), (7, "a"))}, "c"),
        # one event
        ({"x": NUMBER, "y": FLAG}, Logistic("y", ("x",)), {}, {"y": but([0] * N, (7, 1))}, "y"),
        ({"x": NUMBER, "y": FLAG}, Linear("x", ("y",)), {}, {"y": but([1] * N, (7, 0))}, "y"),
        # a range that cuts off all records but one
        ({"x": Number(60, 70), "y": FLAG}, Linear("y", ("x",)), {},
         {"x": but([50] * N, (7, 66))}, "x"),
        ({"x": Number(60, 70), "y": FLAG}, Covariance(("x", "y")), {},
         {"x": but([99] * N, (7, 66))}, "x"),
        # groups and a flag: a regression that is a table of counts
        ({"c": AB, "y": FLAG}, Logistic("y", ("c",)), {}, {"y": but(
            [int(g == "b" and i % 4 == 1) for i, g in enumerate(G)], (2, 1))}, "c"),
        ({"c": AB, "y": FLAG}, Poisson("y", ("c",)), {}, {"y": but(
            [int(g == "a" or i % 4 == 1) for i, g in enumerate(G)], (2, 0))}, "c"),
    ],
)  # fmt: skip
def test_regressions_on_one_record_have_no_result(
    columns: Any, statistics: Any, good: Any, bad: Any, named: str, few: bool
) -> None:
    table = {"x": X, "y": Y, "c": G} | (bad if few else good)
    table = {name: table[name] for name in columns}
    if not few and columns.get("x") == Number(60, 70):
        table["x"] = [60 + i % 11 for i in range(N)]
    result = result_of(columns, [statistics], table)
    assert set(result.problems) == ({statistics.name} if few else set())
    assert not few or named in result.problems[statistics.name]


@pytest.mark.parametrize(
    "larger", [Moments("x"), Covariance(("x", "z")), Logistic("y", ("x",))], ids=str
)
@pytest.mark.parametrize("missing", [0, 1, 4, 5])
def test_a_regression_over_nearly_the_same_records_has_no_result(
    larger: Any, missing: int
) -> None:
    columns = {"x": NUMBER, "y": FLAG, "z": NUMBER, "w": NUMBER}
    table = {"x": X, "y": Y, "z": [x * 7 % 60 for x in X], "w": [x * 11 % 60 for x in X]}
    smaller = Linear("w", ("x", "y", "z"))
    gaps = [""] * missing + table["w"][missing:]
    result = result_of(columns, [larger, smaller], table | {"w": gaps})
    assert (smaller.name in result.problems) == (0 < missing < LEAST)


@pytest.mark.parametrize(
    ("events", "censored", "late", "last"),
    [(9, 0, 7, 0), (1, 8, 7, 0), (9, 1, 7, 0), (9, 6, 7, 0), (9, 0, 2, 0), (9, 0, 2, 20),
     (5, 5, 0, 0)],
)  # fmt: skip
def test_steps_of_survival_have_enough_events_and_censorings(
    events: int, censored: int, late: int, last: int
) -> None:
    # all that leave at times 1 to 3 and 9 of the grid, and after the grid
    times = [t for t in (1, 2, 3) for _ in range(events + censored)] + [9] * late + [10] * last
    dead = ([1] * events + [0] * censored) * 3 + [1] * late + [0] * last
    columns = {"t": Number(0, 10), "d": Category([0, 1])}
    result = result_of(columns, [Survival("t", "d", [1, 2, 3, 9])], {"t": times, "d": dead})
    curve = [float(str(row[0])) for row in result["survival of t: curve"].rows]
    before = 0.0
    time, die = np.array(times), np.array(dead)
    for t in curve:
        assert ((time > before) & (time <= t) & (die == 1)).sum() >= LEAST
        lost = ((time >= before) & (time < t) & (die == 0)).sum()
        assert not 0 < lost < LEAST
        assert not 0 < (time > t).sum() < LEAST
        before = t
    ((_, _, total, _),) = result["survival of t"].rows
    after = ((time > before) & (die == 1)).sum()
    assert (total is None) == bool(0 < after < LEAST or 0 < (die == 0).sum() < LEAST)


@pytest.mark.parametrize(("bins", "steps"), [(10, 2), (20, 1)])
def test_quantiles_are_not_refined_to_a_record(bins: int, steps: int) -> None:
    # parts of ten records are divided, parts of five are not
    study = ran({"x": NUMBER}, [Quantiles("x", bins=bins, steps=20)], {"x": X})
    assert len(study.past) == steps
    for _, _, _, low, high in Result.of(study)["quantiles of x"].rows:
        assert sum(float(str(low)) <= x <= float(str(high)) for x in X) >= LEAST


def test_moments_of_enough_different_records_are_shown() -> None:
    table = {"x": but([50] * N, *((i, 30) for i in range(5)))}
    assert shown(result_of({"x": NUMBER}, [Moments("x")], table), "moments of x")


def test_few_clipped_values_are_not_counted() -> None:
    result = result_of({"x": Number(23, 74)}, [Moments("x")], {"x": X})
    assert result["records"].rows == (("x", 0, None, 5, None),)


def test_earlier_results_hide_groups_of_later_results() -> None:
    columns: dict[str, Any] = {"x": NUMBER, "g": AB}
    table = {"x": [*X, *[""] * 9], "g": [*but(G, (7, "")), *[""] * 9]}
    whole = ran({"x": NUMBER}, [Moments("x")], table)
    groups = ran(columns, [Moments("x", by="g")], table)
    found = [Result.of(groups, earlier) for earlier in ([], [whole])]
    assert [len(shown(result, "moments of x by g")) for result in found] == [2, 1]
    model = ran({"x": NUMBER, "y": FLAG}, [Logistic("y", ("x",))],
                {"x": table["x"], "y": [*but(Y, (7, "")), *Y[:9]]})  # fmt: skip
    found = [Result.of(model, earlier) for earlier in ([], [whole])]
    assert [len(result.problems) for result in found] == [0, 1]


def test_cells_of_earlier_results_are_not_hidden_again() -> None:
    cells = [Cell("t", (i,), (("a", i, i + 1),), n, 4) for i, n in enumerate((2, 9, 6))]
    total = Cell("records", (0,), (), 17, 4)
    frame = Frame({"a": ABC}, LEAST, 1, 1)
    assert hidden_cells(cells[:2], frame, [cells[2], total]) == set(cells[:2])


def test_cells_of_no_table_are_an_error() -> None:
    """Else a linear program without a solution would pass as a wide interval."""
    cells = [Cell("t", (i,), (("a", i, i + 1),), n, 4) for i, n in enumerate((2, 9, 6))]
    total = Cell("records", (0,), (), 12, 4)
    with pytest.raises(ParameterError):
        hidden_cells([*cells, total], Frame({"a": ABC}, LEAST, 1, 1))


def test_a_column_of_which_missing_values_alone_are_counted_has_other_values() -> None:
    missing = Cell("records", (1,), (("a", -1, 0),), 2, 4, closed=True)
    total = Cell("records", (0,), (), 20, 4)
    assert hidden_cells([missing, total], Frame({"a": ABC}, LEAST, 1, 1)) == {missing}


@pytest.mark.parametrize("missing", [0, 1, 4])
def test_tables_of_the_same_records_hide_the_same_groups(missing: int) -> None:
    x = but(X, *((i, "") for i in range(missing)))
    table = {"x": x, "g": list("d" * 24 + "a" * 15 + "b" * 20 + "c")}
    columns, counts = {"x": NUMBER, "g": Category(list("abcd"))}, Counts(("g",))
    moments = Moments("x", by="g")
    alone = result_of({"g": columns["g"]}, [counts], {"g": table["g"]})
    both = result_of(columns, [counts, moments], table)
    assert [row[0] for row in shown(alone, counts.name)] == ["b", "d"]
    assert shown(both, counts.name) == shown(alone, counts.name)
    assert [row[0] for row in shown(both, moments.name)] == ["b", "d"]


def test_earlier_results_stay_in_force() -> None:
    columns = {"a": AB, "b": ABC}
    table = {"a": G, "b": ["abc"[min(i, 2)] if i > 30 else "ab"[i % 2] for i in range(N)]}
    table["b"] = but(["a"] * 30 + ["b"] * 30, (3, "c"))
    margin = ran({"b": ABC, "a": AB}, [Counts(("b",)), Counts(("a",))], table)
    cross = ran(columns, [Counts(("a", "b"))], table)
    place = {"a": 0, "b": 1, "c": 2}
    known = list[tuple[Any, int]]()  # the reader has both results
    for a, n, _ in Result.of(margin)["counts of a"].rows:
        known += [((place[a], slice(None)), n)] if a in place and n is not None else []
    for b, n, _ in Result.of(margin)["counts of b"].rows:
        known += [((slice(None), place[b]), n)] if b in place and n is not None else []
    crossed = Result.of(cross, [margin])["counts of a and b"].rows
    rows = [((place[a], place[b]), n) for a, b, n, _ in crossed if {a, b} <= place.keys()]
    known += [(where, n) for where, n in rows if n is not None]
    for where, n in rows:
        assert n is not None or bounds((2, 3), known, where) > LEAST


def test_earlier_results_are_of_the_same_columns_and_records() -> None:
    first = ran({"x": NUMBER}, [Moments("x")], {"x": X})
    for column, table in ((Number(0, 200), X), (NUMBER, X[1:])):
        other = ran({"x": column}, [Moments("x")], {"x": table})
        with pytest.raises(ParameterError):
            Result.of(other, earlier=[first])
    assert Result.of(first, earlier=[first]).tables == Result.of(first).tables


# The site: plans over a table, and messages.


def planned(name: str, column: Any, statistic: Any, **more: Any) -> Plan:
    return Plan(name, {"x": column} | more, (statistic,))


FIRST = planned("first", NUMBER, Histogram("x", [20, 40, 60]))
BY = planned("by", NUMBER, Moments("x", by="g"), g=ABC)
TIMES = planned("times", NUMBER, Survival("x", "d", [20, 40]), d=AB)


@pytest.mark.parametrize(
    ("known", "plan"),
    [
        (FIRST, planned("range", Number(0, 99), Moments("x"))),
        (FIRST, planned("resolution", Number(0, 100, ".5"), Moments("x"))),
        (FIRST, planned("edges", NUMBER, Histogram("x", [20, 41, 60]))),
        (FIRST, planned("kind", Category(range(9)), Counts(("x",)))),
        (BY, planned("values", NUMBER, Moments("x", by="g"), g=Category(list("abd")))),
        (TIMES, planned("times", NUMBER, Survival("x", "d", [21, 40]), d=AB)),
        (TIMES, planned("times", NUMBER, Histogram("x", [21, 40]))),
    ],
    ids=lambda plan: plan.name,
)
def test_ledger_refuses_plans_whose_difference_is_few_records(
    tmp_path: Path, known: Plan, plan: Plan
) -> None:
    table = {"x": X, "g": G, "d": G}
    path = tmp_path / "ledger"
    Site(table, known, ledger=Ledger(path))(Study(known).message())
    with pytest.raises(ParameterError, match="'g'" if known is BY else "'x'"):
        Site(table, plan, ledger=Ledger(path))
    Site(table, plan)  # another ledger is of another table
    Site(table, known, ledger=Ledger(path))(Study(known).message())
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    with pytest.raises(JournalError):
        Ledger(path)


def test_ledgers_over_a_file_keep_the_answers_of_each_other(tmp_path: Path) -> None:
    path, plans = tmp_path / "ledger", [planned(f"{i}", NUMBER, Moments("x")) for i in range(9)]
    ledgers = [Ledger(path) for _ in plans]
    with ThreadPoolExecutor(len(plans)) as pool:
        list(pool.map(Ledger.answer, ledgers, map(Study, plans)))
    study = Study(plans[0]).then(first_sums(plans[0], {"x": X}))
    for ledger in (ledgers[1], Ledger(path)):
        ledger.answer(study)
    assert all(path.read_text("utf-8").count(plan.digest.hex()) == 1 for plan in plans)
    ledgers[0].answer(Study(FIRST))
    with pytest.raises(RemoteProtocolError) as caught:
        ledgers[1].answer(Study(planned("edges", NUMBER, Histogram("x", [20, 41, 60]))))
    assert caught.value.check == "plan"


MODEL = Plan("model", {"x": NUMBER, "y": FLAG}, (Logistic("y", ("x",)), Quantiles("x")))
TABLE = {"x": X, "y": Y}


def first_sums(plan: Plan = MODEL, table: Any = TABLE, times: int = 3) -> np.ndarray[Any, Any]:
    vector = Study(plan).vector(Site(table, plan).records)
    found: np.ndarray[Any, Any] = vector * times
    return found


def messages() -> dict[str, tuple[list[bytes], str]]:
    """Messages in order, and the check that refuses the last; "" if it is answered."""
    study, other = Study(MODEL), Study(planned("model", NUMBER, Moments("x")))
    sums = first_sums()
    second = study.then(sums)
    third = second.then(second.vector(Site(TABLE, MODEL).records) * 3)
    forged = sums.copy()
    forged[5] += 1
    begin = study.message()
    return {
        "the study": ([begin, second.message(), third.message()], ""),
        "again": ([begin, begin, second.message(), second.message(), begin], ""),
        "another plan": ([other.message()], "plan"),
        "another plan, later": ([begin, other.message()], "plan"),
        "a plan of another name": (
            [Study(Plan("b", MODEL.columns, MODEL.statistics)).message()], "plan"),
        "the first step left out": ([second.message()], "step"),
        "a step left out": ([begin, third.message()], "step"),
        "two sums of a step": ([begin, second.message(), study.then(forged).message()], "step"),
        "another past": ([begin, study.then(forged).message(), third.message()], "step"),
        "too few sums": ([begin, begin.replace(b"\x90", b"\x91\xc4\x00")], "step"),
        "negative sums": ([begin, _spoilt(study, sums, -1, -1)], "step"),
        "sums of more sites": ([begin, _spoilt(study, sums, 6, 1 << 40)], "step"),
        "a record less": (
            [begin, second.message(), _spoilt(second, third.past[1], 0, 179)], "step"),
        "no message": ([b"", ], "step"),
        "other bytes": ([begin + b"\0"], "step"),
        "a longer form": ([begin[:-1] + b"\xdc\0\0"], "step"),
    }  # fmt: skip


def _spoilt(study: Study, sums: Any, place: int, value: int) -> bytes:
    import msgspec

    digits = sums.copy()
    digits[place] = value
    past = [sums.astype("<i8").tobytes() for sums in (*study.past, digits)]
    body = (study.plan.to_bytes(), past)
    return b"secagg/1 statistics" + msgspec.msgpack.encode(body)


@pytest.mark.parametrize("name", messages())
def test_site_answers_the_steps_of_its_plan_only(name: str) -> None:
    asked, check = messages()[name]
    site = Site(TABLE, MODEL)
    for message in asked[:-1]:
        site(message)
    if not check:
        assert site(asked[-1]).dtype == np.int64
        return
    with pytest.raises(RemoteProtocolError) as caught:
        site(asked[-1])
    assert caught.value.check == check


def test_site_answers_no_more_steps_than_planned() -> None:
    plan = Plan("short", {"x": NUMBER, "y": FLAG}, (Logistic("y", ("x",), steps=1),))
    site, study = Site(TABLE, plan), Study(plan)
    while not study.ended:
        study = study.then(site(study.message()) * 3)
    assert len(study.past) == 2
    with pytest.raises(RemoteProtocolError) as caught:
        site(study.message())
    assert caught.value.check == "step"


values = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(-5, 120)), st.sampled_from([0, 1, ""])),
    max_size=9,
)


@given(values, values, st.lists(st.sampled_from(sorted(messages())), min_size=1, max_size=3))
@examples(60)
def test_whether_a_site_answers_does_not_depend_on_its_table(
    mine: Any, others: Any, names: list[str]
) -> None:
    sent = [message for name in names for message in messages()[name][0]]
    answers = []
    for rows in (mine, others):
        site = Site({"x": [x for x, _ in rows], "y": [y for _, y in rows]}, MODEL)
        answers.append([_answer(site, message) for message in sent])
    assert answers[0] == answers[1]


def _answer(site: Site, message: bytes) -> int | str:
    try:
        return site(message).size
    except RemoteProtocolError as error:
        return f"{error.check}: {error}"


@pytest.mark.parametrize("name", ["min_count", "min_sites", "records_per_parameter"])
def test_site_demands_least_counts(name: str) -> None:
    plan = Plan("low", {"x": NUMBER}, (Moments("x"),), **{name: 1})
    with pytest.raises(ParameterError, match=name):
        Site({"x": X}, plan)
    with pytest.raises(ParameterError, match=name):
        simulate(plan, [{"x": X}] * 3, way="plain")
    Site({"x": X}, plan, policy=SitePolicy(**{name: 1}))


def test_a_value_of_one_site_is_no_term() -> None:
    """Else a coefficient would be the mean of a site."""
    draw = np.random.default_rng(3)
    tables = [{"s": [str(i)] * 60, "y": draw.integers(0, 100, 60)} for i in range(4)]
    columns = {"s": Category([str(i) for i in range(4)]), "y": Number(0, 100)}
    result = simulate(Plan("sites", columns, [Linear("y", ["s"])]), tables, way="plain")
    assert "s = 1" in result.problems["linear regression of y"]


# What follows from two statistics of a plan together.

TWO = ["a"] * 30 + ["b"] * 60
LONG = list(range(20, 80)) + list(range(20, 50))


@pytest.mark.parametrize("constant", [0, 50])
def test_a_group_of_few_other_values_takes_another_with_it(constant: int) -> None:
    """Else the whole less the other group would be the sum of the few."""
    x = [constant] * 29 + [87] + LONG[:60]
    statistics = [Moments("x"), Moments("x", by="g")]
    result = result_of({"x": NUMBER, "g": AB}, statistics, {"x": x, "g": TWO})
    assert [row[1:] for row in result["moments of x by g"].rows] == [(None,) * 6] * 2


def test_few_unknown_values_are_no_missing_values() -> None:
    table = {"x": LONG[:60], "c": ["a"] * 30 + ["b"] * 29 + ["rare"]}
    result = result_of({"x": NUMBER, "c": AB}, [Moments("x"), Counts(("c",))], table)
    assert [row[1] for row in result["records"].rows if row[0] == "c"] == [None]
    assert [row[1] for row in result["counts of c"].rows].count(None) >= 2


def test_few_events_of_a_group_hide_the_events_of_all() -> None:
    d = [1] * 11 + [0] * 19 + [1] + [0] * 59  # those of the first group have a point
    columns = {"t": Number(0, 100), "d": Category([0, 1]), "g": AB}
    asked = [Survival("t", "d", range(10, 101, 10), by="g")]
    result = result_of(columns, asked, {"t": LONG, "d": d, "g": TWO})
    assert [row[3] for row in result["survival of t by g"].rows] == [None, None]


def test_covariance_of_flags_is_a_table_of_counts() -> None:
    flag = Number(0, 1)
    table = {"a": [0] * 30 + [1] * 30, "b": [1] + [0] * 44 + [1] * 15}
    result = result_of({"a": flag, "b": flag}, [Covariance(("a", "b"))], table)
    assert "a and b" in result.problems["covariance of a, b"]


@pytest.mark.parametrize(
    ("statistics", "lacking"),
    [
        ((Moments("x", by="g"), Linear("y", ("x",))), {"g": 7}),
        ((Linear("y", ("x",)), Linear("w", ("x",))), {"y": 5, "w": 9}),
    ],
)
def test_sums_over_nearly_the_same_records_have_no_result(
    statistics: Sequence[Any], lacking: dict[str, int]
) -> None:
    table: dict[str, list[Any]] = {
        "x": LONG,
        "g": TWO,
        "y": LONG[::-1],
        "w": LONG[5:] + LONG[:5],
    }
    for name, place in lacking.items():
        table[name] = [*table[name][:place], None, *table[name][place + 1 :]]
    used = {"x", *lacking, *(["y"] if "g" in lacking else [])}
    columns = {name: AB if name == "g" else NUMBER for name in used}
    result = result_of(columns, statistics, {name: table[name] for name in used})
    assert any(name.startswith("linear") for name in result.problems)


def test_a_hidden_cell_has_a_record() -> None:
    """Cells of 1 and 5 with a known sum of 6 lie in an interval of 4, not of 6."""
    values = [str(i) for i in range(4)]
    column = [v for v, n in zip(values, (1, 5, 30, 30), strict=True) for _ in range(n)]
    result = result_of({"c": Category(values)}, [Counts(("c",))], {"c": column})
    assert [row[1] for row in result["counts of c"].rows].count(None) == 3


def round_of(study: Study, n: int, run: bytes = b"session1", **changes: Any) -> RoundParams:
    """Parameters of a step's round, named as a session does."""
    params = RoundParams.suggest(n, study.step.length, study.step.encoding, **changes)
    name = AttemptName(run, 0, 0, bytes(8), message_digest(study.message()))
    return replace(params, session=write_name(b"s", name))


def test_a_step_has_one_sum_over_enough_sites() -> None:
    study = Study(Plan("once", {"x": NUMBER}, [Moments("x")], min_sites=4))
    site = Site({"x": LONG}, study.plan)
    for params in (round_of(study, 4), round_of(study, 9, max_weight=9)):  # t is 3
        with pytest.raises(RemoteProtocolError) as refused:
            site(study.message(), params)
        assert refused.value.check == "sites"
    for _ in range(2):  # another attempt
        site(study.message(), round_of(study, 9))
    with pytest.raises(RemoteProtocolError) as refused:
        site(study.message(), round_of(study, 8, b"session2"))
    assert refused.value.check == "repeated"


def test_forged_sums_without_a_logarithm_are_refused() -> None:
    columns = {"x": NUMBER, "y": FLAG}
    study = Study(Plan("forged", columns, [Logistic("y", ("x",))], min_sites=1))
    site = Site({"x": LONG, "y": [0, 1] * 45}, study.plan, policy=ANY)
    first = study.vector(site.records)
    for place, value in product(range(first.size), (0, 60, 10**6)):
        forged = first.copy()
        forged[place] = value
        message = LABEL + msgspec.msgpack.encode((study.plan.to_bytes(), [forged.tobytes()]))
        with suppress(ParameterError):
            assert Study.of(message).step is not None


def test_a_step_answered_to_helpers_is_asked_again_by_nobody() -> None:
    study, ledger = Study(Plan("again", {"x": NUMBER}, [Moments("x")])), Ledger()
    ledger.answer(study, b"digest of a one-shot sum")
    for other in (b"", b"session1"):
        with pytest.raises(RemoteProtocolError) as refused:
            ledger.answer(study, other)
        assert refused.value.check == "repeated"
    ledger.answer(study, b"digest of a one-shot sum")
