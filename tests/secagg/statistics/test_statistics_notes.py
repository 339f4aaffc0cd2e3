"""Results that say what was clipped or not computed, and their DataFrames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from secagg.statistics import (
    Category,
    Counts,
    Linear,
    Moments,
    Number,
    Plan,
    Privacy,
    Quantiles,
    Result,
    Site,
    Study,
    Survival,
    simulate,
)

X, Z, G = Number(0, 9), Number(0, 9), Category([*"abcd"])


def run(statistics: list[Any], table: dict[str, Any]) -> Result:
    columns = {"x": X, "z": Z, "g": G, "t": Number(0, 60), "d": Category([0, 1])}
    plan = Plan("p", {name: columns[name] for name in table}, statistics)
    return simulate(plan, [table] * 3, way="plain")


def test_statistics_of_clipped_columns_say_so() -> None:
    table = {"x": [*range(10), 40], "z": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]}
    statistics = [Moments("x"), Moments("z"), Quantiles("x"), Linear("z", ("x",))]
    result = run(statistics, table)
    marked = [name for name in result.names if "clipped" in result[name].note]
    assert marked == ["moments of x", "quantiles of x", "linear regression of z"]
    assert result.text().count("clipped") == result._repr_html_().count("clipped") == 3
    assert result["records"].rows[0] == ("x", 0, 0, None, None)  # hidden, since few


@pytest.mark.parametrize(("beyond", "marked"), [(1, False), (400, True)])
def test_clipped_numbers_below_the_noise_mark_no_table(beyond: int, marked: bool) -> None:
    plan = Plan("p", {"x": X}, [Moments("x")], privacy=Privacy(8, "1e-6", 2000))
    study = Study(plan)
    site = Site({"x": [5] * 600 + [40] * beyond}, plan)
    result = Result.of(study.then(3 * study.vector(site.records)))  # without the noise
    assert ("clipped" in result["moments of x"].note) == marked


@pytest.mark.parametrize(
    ("groups", "events"), [("a" * 20, [1] * 20), ("a" * 10 + "b" * 10, [0] * 20)]
)
def test_log_rank_test_that_is_not_computed_says_why(groups: str, events: list[int]) -> None:
    table = {"t": [1, 2] * 10, "d": events, "g": list(groups)}
    result = run([Survival("t", "d", [1, 2], by="g")], table)
    test = result["survival of t by g: log-rank test"]
    assert (test.rows[0][0], test.rows[0][2]) == (None, None)
    assert "no test" in test.note
    assert test.note in result.text()


def test_dataframes_have_numbers_where_cells_are_hidden() -> None:
    table = {"x": [1, 2, 3, 4] * 10, "g": [*"a" * 19, *"b" * 12, *"c" * 8, "d"]}
    result = run([Counts(("g",))], {"g": table["g"]})
    counts = result.to_pandas("counts of g")
    moments = run([Moments("x", by="g")], table).to_pandas("moments of x by g")
    assert counts["records"].isna().any()
    assert counts.dtypes.astype(str).tolist()[1:] == ["Int64", "Int64"]
    assert moments["mean"].dtype == np.float64
    assert moments["mean"].notna().any()
    with_all = result.to_pandas("records: all")
    assert with_all.dtypes.tolist() == [np.int64, np.int64]
    empty = run([Survival("t", "d", [60])], {"t": [1] * 5, "d": [0] * 5})
    curve = empty.to_pandas("survival of t: curve")
    assert (curve.shape, list(curve.columns)) == ((0, 3), ["time", "survival", "se"])
