"""Damaged plans and tables: errors that name field or row, without a value of the table."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from frames import leaks
from secagg import ParameterError, SecAggError
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
    Site,
    SitePolicy,
    Study,
    Survival,
    simulate,
)

TOML = """
name = "trial"
[columns.age]
low = 0
high = 100
[columns.sex]
values = ["f", "m"]
[[statistics]]
kind = "moments"
column = "age"
by = "sex"
"""


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('name = "trial"', "", "name"),
        ('name = "trial"', 'name = ""', "name"),
        ('name = "trial"', "name = 3", "name"),
        ('name = "trial"', 'name = "a\\u0007"', "name"),
        ('name = "trial"', 'name = "t"\nmin_count = 0', "min_count"),
        ('name = "trial"', 'name = "t"\nmin_sites = "3"', "min_sites"),
        ('name = "trial"', 'name = "t"\nrecords_per_parameter = 1.5', "records_per_parameter"),
        ('name = "trial"', 'name = "t"\nmin_counts = 5', "min_counts"),
        ('name = "trial"', "name = trial", "line 2"),
        ('name = "trial"', 'name = "t"\noperator = ""', "operator"),
        ('name = "trial"', 'name = "t"\noperator = 3', "operator"),
        ('name = "trial"', f'name = "t"\ndeletion = "{201 * "x"}"', "deletion"),
        ('name = "trial"', 'name = "t"\ndeletion = "a\\u0007"', "deletion"),
        ("high = 100", "", "'age'"),
        ("low = 0", "", "'low'"),
        ("high = 100", "high = 0", "'age'"),
        ("high = 100", 'high = "ten"', "high"),
        ("high = 100", "high = nan", "high"),
        ("high = 100", "high = true", "high"),
        ("high = 100", "high = 1e99", "high"),
        ("high = 100", "high = [1]", "'age'"),
        ("high = 100", "high = 100\nresolution = 0", "'age'"),
        ("high = 100", "high = 100\nresolution = 7", "'age'"),
        ("high = 100", "high = 100\nresolution = 1e-9", "'age'"),
        ("low = 0\nhigh = 100", 'low = "1e18"\nhigh = "1000000000000000100"', "'age'"),
        ("high = 100", "high = 100\nunit = 3", "unit"),
        ('["f", "m"]', "[]", "'sex'"),
        ('["f", "m"]', '["f", "f"]', "'sex'"),
        ('["f", "m"]', '"fm"', "'sex'"),
        ('["f", "m"]', "{ f = 1 }", "'sex'"),
        ('["f", "m"]', '["f", ""]', "'sex'"),
        ('["f", "m"]', '[1, "1"]', "'sex'"),
        ('values = ["f", "m"]', "", "'sex'"),
        ("[columns.sex]", "[columns.sex]\nlow = 0", "low"),
        ("[columns.age]", "[column.age]", "column"),
        ("moments", "maximum", "statistic 1"),
        ("moments", "mean", "statistic 1"),
        ('kind = "moments"', "", "statistic 1"),
        ('kind = "moments"', "kind = 7", "statistic 1"),
        ('column = "age"', "", "column"),
        ('column = "age"', 'column = "sex"', "sex"),
        ('column = "age"', 'column = "ages"', "ages"),
        ('column = "age"', "column = 3", "3"),
        ('by = "sex"', "", "sex"),
        ('by = "sex"', 'by = "age"', "age"),
        ('by = "sex"', "by = 4", "4"),
        ('by = "sex"', "by = []", "statistic 1"),
        ('by = "sex"', 'bins = 9\nby = "sex"', "bins"),
        ('by = "sex"', f'by = "sex"\n{TOML[TOML.index("[[") :]}', "moments of age by sex"),
        ("[[statistics]]", "[statistics]", "statistics"),
        ("[columns.age]\nlow = 0\nhigh = 100", "[columns]\nage = 5", "'age'"),
    ],
)  # fmt: skip
def test_damaged_plans_name_the_field(old: str, new: str, named: str) -> None:
    assert old in TOML
    Plan.from_toml(TOML)
    with pytest.raises(ParameterError) as caught:
        Plan.from_toml(TOML.replace(old, new))
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("statistic", "named"),
    [
        (lambda: Histogram("x", []), "histogram of x"),
        (lambda: Histogram("x", [0]), "histogram of x"),
        (lambda: Histogram("x", [5, 4]), "histogram of x"),
        (lambda: Histogram("x", [0.5]), "histogram of x"),
        (lambda: Histogram("x", [11]), "histogram of x"),
        (lambda: Histogram("x", ["a"]), "edge"),
        (lambda: Histogram("x", "15"), "edges"),
        (lambda: Histogram("x", 5), "edges"),
        (lambda: Quantiles("x", 0.5), "shares"),
        (lambda: Quantiles("x", []), "shares"),
        (lambda: Quantiles("x", [1]), "shares"),
        (lambda: Quantiles("x", [0.5, "x"]), "share"),
        (lambda: Quantiles("x", bins=1), "bins"),
        (lambda: Quantiles("x", steps=0), "steps"),
        (lambda: Covariance(("x",)), "columns"),
        (lambda: Covariance(("x", "x")), "columns"),
        (lambda: Covariance(("x", "c")), "c"),
        (lambda: Counts(()), "columns"),
        (lambda: Counts(("x",)), "x"),
        (lambda: Counts(5), "columns"),
        (lambda: Linear("x", ()), "x"),
        (lambda: Linear("x", ("x",)), "x"),
        (lambda: Linear("x", ("b", "b")), "b"),
        (lambda: Linear("c", ("x",)), "c"),
        (lambda: Logistic("x", ("c",)), "x"),
        (lambda: Logistic("c", ("x",)), "c"),
        (lambda: Logistic("b", ("x",), steps=51), "steps"),
        (lambda: Poisson("half", ("x",)), "half"),
        (lambda: Survival("x", "b", []), "grid"),
        (lambda: Survival("x", "b", [2, 1]), "grid"),
        (lambda: Survival("x", "b", "12"), "grid"),
        (lambda: Survival("x", "b", [0.5]), "survival of x"),
        (lambda: Survival("x", "c", [1]), "c"),
        (lambda: Survival("x", "b", [1], by="b"), "b"),
        (lambda: 5, "statistic"),
    ],
)
def test_invalid_statistics_name_the_field(statistic: Any, named: str) -> None:
    columns = {
        "x": Number(0, 10),
        "half": Number(0, 1, "0.5"),
        "b": Category(["n", "y"]),
        "c": Category(range(3)),
    }
    with pytest.raises(ParameterError) as caught:
        Plan("p", columns, (statistic(),))
    assert named in str(caught.value)


VALUE = "7319value"
PLAN = Plan("t", {"x": Number(0, 100), "g": Category(["a", "b"])}, (Moments("x", by="g"),))
GOOD = {"x": [1, 2, 3], "g": ["a", "b", "a"]}


def csv(text: str, encoding: str = "utf-8") -> Any:
    def write(folder: Path) -> Path:
        (folder / "t.csv").write_bytes(text.encode(encoding))
        return folder / "t.csv"

    return write


def parquet(content: bytes | dict[str, Any]) -> Any:
    def write(folder: Path) -> Path:
        path = folder / "t.parquet"
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            pl.DataFrame(content).write_parquet(path)
        return path

    return write


def table(**changes: Any) -> Any:
    return lambda _: GOOD | changes


@pytest.mark.parametrize(
    ("source", "named"),
    [
        (csv(f"x,g\n1,a\n{VALUE},b\n"), "'x', row 2"),
        (csv(f"x;g\n1;a\n{VALUE};b\n"), "'x', row 2"),
        (csv(f"x,g\n1,a\n\n2,a\n{VALUE},b\n"), "'x', row 3"),
        (csv("x,g\n1,a\n\n2,b,3\n"), "row 2"),
        (csv("x\n1,a\n"), "row 1"),
        (csv(f"x,g\n1,a\n2,b,{VALUE}\n"), "row 2"),
        (csv(f"x,g\n1,a\n{VALUE}\n"), "row 2"),
        (csv(f'x,g\n1,a\n2,"{VALUE}\n'), "line 3"),
        (csv(f'x,g\n1,a\n2,"{VALUE}"b\n'), "line 3"),
        (csv("x,x,g\n1,1,a\n"), "'x'"),
        (csv("x,h\n1,a\n"), "'g'"),
        (csv(f"{VALUE},b\n1,a\n"), "'g', 'x'"),  # a file without a header
        (csv(""), "'g', 'x'"),
        (csv("x,g\n1,a\n2,ä\n", "latin-1"), "row 2, column 'g' is no UTF-8"),
        (csv("x,g,größe\n1,a,1\n", "latin-1"), "header, column 'gr\\udcf6"),
        (csv("x,g\n1,a\ninf,b\n"), "'x', row 2"),
        (csv("x,g\n1,a\n1_000,b\n"), "'x', row 2"),
        (csv("x,g\n1,a\n1e999,b\n"), "'x', row 2"),
        (csv('x,g\n1,a\n"2,5",b\n'), "'x', row 2: the number has a comma"),
        (csv("x;g\n1.000,5;a\n"), "'x', row 1: the number has a comma"),
        (lambda folder: folder / "none.csv", "none.csv"),
        (lambda folder: folder, "cannot be read"),
        (parquet(VALUE.encode()), "t.parquet"),
        (parquet({"x": [1.5, None], "h": ["a", "b"]}), "'g'"),
        (parquet({"x": ["1", VALUE], "g": ["a", "b"]}), "'x', row 2"),
        (table(x=[1, 2]), "'x': 2"),
        (table(x=[1, VALUE, 3]), "'x', row 2"),
        (table(x=[1, 2, [3]]), "'x', row 3"),
        (table(x=[1, 2, 10**400]), "'x', row 3"),
        (table(x=[1, 2, 3 + 1j]), "'x', row 3"),
        (table(x=np.array([1, np.inf, np.nan])), "'x', row 2"),
        (table(x=np.array([1, 2, 3], "M8[ns]")), "'x'"),
        (table(x=np.array([1, 2, 3], "m8[s]")), "'x'"),
        (table(x=np.array([1, 2, 3 + 1j])), "'x', row 1"),
        (table(x=np.ones((3, 2))), "'x'"),
        (table(x=np.float64(3)), "'x'"),
        (table(x=VALUE), "'x'"),
        (table(x=7), "'x'"),
        (table(x=[1, 2, datetime(2020, 1, 1)]), "'x', row 3"),
        (table(x=[1, b"2", 3]), "'x', row 2"),
        (table(x=[1, 2, np.ones(2)]), "'x', row 3"),
        (table(g=7), "'g'"),
        (lambda _: {"x": [1]}, "'g'"),
        (lambda _: [[1, "a"]], "list"),
        (lambda _: None, "NoneType"),
        (lambda _: pd.DataFrame({"x": [1, VALUE], "g": ["a", "b"]}), "'x', row 2"),
        (lambda _: pd.DataFrame([[1, 2, "a"]], columns=["x", "x", "g"]), "'x'"),
        (lambda _: pd.DataFrame({"x": pd.to_datetime(["2020-01-01"]), "g": "a"}), "'x', row 1"),
        (lambda _: pd.DataFrame({"x": pd.Categorical(["1", VALUE]), "g": "a"}), "'x', row 2"),
        (lambda _: pd.DataFrame({"y": [1]}), "'g', 'x'"),
        (lambda _: pl.DataFrame({"x": ["1", VALUE], "g": ["a", "b"]}), "'x', row 2"),
        (lambda _: pl.DataFrame({"x": [[1], [2]], "g": ["a", "b"]}), "'x', row 1"),
        (lambda _: pl.DataFrame({"x": [1]}), "'g'"),
        (lambda _: pl.LazyFrame(GOOD), "LazyFrame"),
        (lambda _: pa.table({"x": ["1", VALUE], "g": ["a", "b"]}), "'x', row 2"),
        (lambda _: pa.table([[1], [2], ["a"]], names=["x", "x", "g"]), "'x'"),
    ],
)
def test_damaged_tables_name_column_and_row(source: Any, named: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError) as caught:
        Site(source(tmp_path), PLAN)
    assert named in str(caught.value)
    assert VALUE not in str(caught.value)


@pytest.mark.parametrize("wrong", ["table", "plan", "message"])
def test_frames_of_errors_have_no_table(wrong: str) -> None:
    secret = 0x11223344
    plan = Plan("t", {"x": Number(0, 2**31 - 1)}, (Moments("x"),))
    table = {"x": [1, secret, *([VALUE] if wrong == "table" else [])]}
    call = partial(Site, table, plan)
    if wrong == "plan":
        call = partial(simulate, replace(plan, min_count=1), [table] * 3)
    elif wrong == "message":
        call = partial(Site(table, plan), b"")
    with pytest.raises(SecAggError) as caught:
        call()
    assert leaks(caught.value, [secret.to_bytes(4, "little")], __name__) == []


def test_nothing_is_sent_before_all_tables_are_read() -> None:
    steps = list[int]()
    tables = [GOOD, GOOD, {**GOOD, "x": [1, 2, "three"]}]
    with pytest.raises(ParameterError):
        simulate(PLAN, tables, way="plain", progress=lambda step, _: steps.append(step))
    assert steps == []


def test_equal_tables_of_all_libraries_have_equal_records(tmp_path: Path) -> None:
    values = {"x": [1.5, None, 250, -3], "g": ["a", "b", None, "other"]}
    frames: list[Any] = [
        values,
        pd.DataFrame(values),
        pd.DataFrame(values).convert_dtypes(),
        pl.DataFrame(values, strict=False),
        pa.table(values),
        {"x": np.array([1.5, np.nan, 250, -3]), "g": np.array(values["g"], object)},
        {"x": ["1.5", "NA", " 250 ", "-3"], "g": ["a", " b", "", "other"]},
        {"x": [Decimal("1.5"), pd.NA, np.int64(250), -3.0], "g": values["g"]},
        {"x": [1.5, Decimal("sNaN"), 250, -3], "g": ["a", "b", None, np.ones(2)]},
        {"x": np.ma.array([1.5, 9, 250, -3], mask=[0, 1, 0, 0]), "g": values["g"]},
        pd.DataFrame(values).assign(column_names=1, collect=2),
    ]
    pl.DataFrame(values, strict=False).write_parquet(tmp_path / "t.parquet")
    pd.DataFrame(values).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "u.csv").write_text("\ufeffg;x\na;1.5\nb;\n;250\nother;-3\n", encoding="utf-8")
    frames += [tmp_path / "t.parquet", str(tmp_path / "t.csv"), tmp_path / "u.csv"]
    records = [Site(frame, PLAN).records for frame in frames]
    points = [{k: v.tolist() for k, v in found.points.items()} for found in records]
    assert all(found == points[0] for found in points)
    first = records[0]
    assert first.points["x"].tolist() == [2, -1, 100, 0]
    assert first.points["g"].tolist() == [0, 1, -1, -1]
    for found in records:
        assert (found.unknown["g"], found.below["x"].sum(), found.above["x"].sum()) == (1, 1, 1)


names = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=9)
names = names.filter(str.isprintable)
numbers = st.builds(
    lambda low, step, units: Number(low * step, (low + units) * step, step),
    st.integers(-50, 50),
    st.sampled_from([Decimal(1), Decimal("0.1"), Decimal("0.0025"), Decimal(1000)]),
    st.integers(1, 50),
).filter(lambda column: column.units > 3)
categories = st.builds(Category, st.lists(names.map(str.strip).filter(bool), min_size=2,
                                          max_size=4, unique=True))  # fmt: skip


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    x, z, g, h = draw(st.lists(names, min_size=4, max_size=4, unique=True))
    columns = {x: draw(numbers), z: draw(numbers), g: draw(categories), h: Category(["n", "y"])}
    edges = [columns[x].start + columns[x].step * i for i in (1, 3)]
    edges = [Decimal(edge.numerator) / edge.denominator for edge in edges]
    by = draw(st.sampled_from([None, g]))
    every: list[Any] = [
        Moments(x, by=by),
        Histogram(x, edges, by=by),
        Quantiles(x, (0.5, "0.25"), draw(st.integers(2, 9)), draw(st.integers(1, 9)), by=by),
        Counts((g, h)),
        Covariance((x, z)),
        Linear(x, (z, g)),
        Logistic(h, (x, g), draw(st.integers(1, 15))),
        Survival(x, h, edges, by=by),
    ]
    asked = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    fields = [value for one in asked for value in vars(one).values()]
    used = {
        name for value in fields for name in (value if isinstance(value, tuple) else (value,))
    }
    kept = {name: column for name, column in columns.items() if name in used}
    texts = {name: draw(st.none() | names) for name in ("operator", "deletion")}
    least = draw(st.integers(1, 99)), draw(st.integers(1, 9))
    return Plan(draw(names), kept, asked, *least, **texts)


@given(plans())
@examples(200)
def test_plans_come_back_from_all_forms(plan: Plan) -> None:
    forms = [
        Plan.from_toml(plan.to_toml()),
        Plan.from_json(plan.to_json()),
        Plan.from_bytes(plan.to_bytes()),
        Study.of(Study(plan).message()).plan,
        Plan(plan.name, dict(reversed(plan.columns.items())), list(plan.statistics),
             plan.min_count, plan.min_sites, operator=plan.operator, deletion=plan.deletion),
    ]  # fmt: skip
    for found in forms:
        assert found == plan
        assert hash(found) == hash(plan)
        assert found.to_bytes() == plan.to_bytes()
        assert found.digest == plan.digest
        assert str(found) == str(plan)
    described = json.loads(plan.to_bytes())
    spaced = json.dumps(described, ensure_ascii=False, sort_keys=True).encode()
    for other in (spaced, plan.to_bytes() + b"\n", b"\xff" + plan.to_bytes(), b"[]", b"1", b""):
        with pytest.raises(ParameterError):
            Plan.from_bytes(other)


@given(plans(), plans())
@examples(60)
def test_plans_are_equal_where_the_bytes_are(one: Plan, other: Plan) -> None:
    assert (one == other) == (one.to_bytes() == other.to_bytes())
    assert (one == other) == (one.digest == other.digest)


@pytest.mark.parametrize(
    ("name", "text"),
    [("p.toml", TOML), ("p.json", Plan.from_toml(TOML).to_json()), ("p", TOML)],
)
def test_plans_are_read_from_files(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert Plan.read(tmp_path / name) == Plan.from_toml(TOML)
    (tmp_path / name).write_text(text[:-3], encoding="utf-8")
    for path in (tmp_path / name, tmp_path / "none", tmp_path):
        with pytest.raises(ParameterError):
            Plan.read(path)


def test_a_plan_in_json_has_each_field_once() -> None:
    text = PLAN.to_json().replace('"min_count": ', '"min_count": 50, "min_count": ')
    with pytest.raises(ParameterError, match="min_count"):
        Plan.from_json(text)


def test_operator_and_deletion_are_in_bytes_and_text_if_set() -> None:
    texts = {"operator": "the registry's computing centre", "deletion": "after 3 months"}
    plan = replace(PLAN, **texts)
    assert {name: json.loads(plan.to_bytes())[name] for name in texts} == texts
    assert all(text in str(plan) and text not in str(PLAN) for text in texts.values())
    assert not texts.keys() & json.loads(PLAN.to_bytes()).keys()
    assert plan.digest != PLAN.digest


def test_thirty_digits_of_a_number_are_in_the_bytes() -> None:
    low = "1.23456789012345678901234567891"
    assert Number(low, "2.23456789012345678901234567891").low == low


def test_integers_with_gaps_and_a_value_named_none() -> None:
    columns = {"c": Category([0, 1, "None"])}
    site = Site({"c": ["0.0", "1.0", None, "None"]}, Plan("c", columns, [Counts(("c",))]))
    assert site.records.points["c"].tolist() == [0, 1, -1, 2]


def test_times_after_the_range_are_censored_at_the_last_time() -> None:
    columns = {"t": Number(0, 60), "d": Category([0, 1])}
    plan = Plan("t", columns, [Survival("t", "d", (30, 60))], min_sites=1)
    table = {"t": [20] * 20 + [100] * 20, "d": [1] * 40}
    result = simulate(plan, [table] * 3, way="plain", policy=SitePolicy(min_sites=1))
    assert result["survival of t"].rows == ((120, 3, 60, 30.0),)
