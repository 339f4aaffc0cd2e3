"""Frames: labels of columns that are no texts, and ids of other types."""

from __future__ import annotations

import datetime
import decimal
import uuid

import numpy as np
import pytest

from fedmf import read_ratings
from fedmf.data import from_triples
from fedmf.errors import DataError

pandas = pytest.importorskip("pandas")
YEARS = pandas.to_datetime(["2020", "2021", "2022", "2023"])
ROWS = [[1, 2, 3, 9], [1, 3, 4, 8]]


@pytest.mark.parametrize(
    ("labels", "columns"),
    [
        (range(4), (0, 1, 2)),
        (range(4), ("0", "1", "2")),
        (range(4), np.arange(4)),
        (range(4), (np.int8(0), 1.0, "2")),
        ([0, "item", 2.5, None], (0, "item", 2.5)),
        ([("a", "user"), ("a", "item"), "r", "t"], (("a", "user"), ("a", "item"), "r")),
        ([1, "1", 2, 3], (1, "1", 2)),
        (YEARS, YEARS[:3]),
    ],
)
def test_labels_of_any_type_are_columns(labels, columns):
    frame = pandas.DataFrame(ROWS)
    frame.columns = pandas.Index(labels, tupleize_cols=False)
    found = read_ratings(frame, columns, scale=(1, 5))
    assert (found.user_ids.tolist(), found.values.tolist()) == ([1], [3, 4])
    assert found.item_ids.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("labels", "columns", "message"),
    [
        (range(4), ("user", "item", "rating"), "'user'.* 0, 1, 2, 3$"),
        (range(4), (None, 1, 2), "None"),
        (range(4), ([], 1, 2), "columns"),
        (["7", "242", "3", "9"], ("user", "item", "rating"), "name the columns"),
        (["USER", "ITEM", "r", "t"], ("user", "item", "r"), "mean 'USER'"),
        ([True, "1", "2", "3"], (0, "1", "2"), " 0"),
    ],
)
def test_labels_that_are_missing_or_twice_raise(labels, columns, message):
    frame = pandas.DataFrame(ROWS)
    frame.columns = pandas.Index(labels)
    with pytest.raises(DataError, match=message):
        read_ratings(frame, columns, scale=(1, 5))


@pytest.mark.parametrize(
    ("entries", "remedy"),
    [
        (np.array([3, 2**63 + 5], np.uint64), r"\[1\].*as texts"),
        ([1, 2**63], r"\[1\].*as texts"),
        ([uuid.UUID(int=7), uuid.UUID(int=8)], "as texts"),
        ([b"a", b"b"], "decode"),
        ([True, False], "convert"),
        (np.array([7, 8], "datetime64[ns]"), "as texts"),
        ([datetime.timedelta(7), datetime.timedelta(8)], "as texts"),
        ([("a", 1), ("b", 2)], "as texts"),
        ([decimal.Decimal(7), decimal.Decimal(8)], "as texts"),
        ([1, "a"], "as a text"),
        ([np.inf, 2.0], "as texts"),
        (np.array([[1, 2], [3, 4]]).tolist(), "column"),
    ],
)
@pytest.mark.parametrize("side", ["user", "item"])
def test_ids_of_other_types_raise_with_their_remedy(entries, remedy, side):
    columns = {"user": [1, 2], "item": [3, 4], "rating": [1, 2], side: entries}
    with pytest.raises(DataError, match=f"{side}.*{remedy}"):
        read_ratings(pandas.DataFrame(columns), scale=(1, 5))
    given = {"users": [1, 2], "items": [3, 4], f"{side}s": entries}
    with pytest.raises(DataError, match=f"{side}s.*{remedy}"):
        from_triples(**given, values=[1, 2], scale=(1, 5))


@pytest.mark.parametrize(
    ("entries", "ids"),
    [
        (np.array([2, 1], np.uint64), [1, 2]),
        ([2.0, 1.0], [1, 2]),
        (pandas.array([2, 1], dtype="Int64"), [1, 2]),
        (pandas.Categorical(["b", "a"]), ["a", "b"]),
        (pandas.array(["b", "a"], dtype="string"), ["a", "b"]),
        (np.array([2, 1], dtype=object), [1, 2]),
    ],
)
def test_ids_of_many_types_are_read(entries, ids):
    columns = {"user": entries, "item": [3, 4], "rating": [1, 2]}
    found = read_ratings(pandas.DataFrame(columns), scale=(1, 5))
    assert (found.user_ids.tolist(), found.values.tolist()) == (ids, [2, 1])


@pytest.mark.parametrize("column", ["user", "item", "rating", "time"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: [1.0, np.nan],
        lambda: np.array([1, None], dtype=object),
        lambda: np.array([1, pandas.NA], dtype=object),
        lambda: pandas.array([1, None], dtype="Int64"),
        lambda: pandas.array([1.0, None], dtype="Float64"),
        lambda: pandas.Categorical([1, None]),
        lambda: pandas.Categorical(["1", None]),
        lambda: ["1", ""],
        lambda: pandas.array(["1", None], dtype="string"),
        lambda: pandas.to_datetime([1, None]),
    ],
)
def test_missing_entry_raises_with_its_row(column, make):
    columns = {"user": [1, 2], "item": [3, 4], "rating": [1, 2], "time": [1, 2]}
    with pytest.raises(DataError, match=f"row 1: {column} is empty"):
        read_ratings(
            pandas.DataFrame({**columns, column: make()}), tuple(columns), scale=(1, 5)
        )


FLOAT_IDS = [
    np.array([2.0**60, 7.0]),
    np.array([7.0, -(2.0**53)]),
    np.array([2.0**24, 7], np.float32),
    np.array([1e30, 7], np.float32),
    np.array([2048, 7], np.float16),
    pandas.Series([2**60 + 1, 2**60 + 2, None]).to_numpy()[:2],
]


@pytest.mark.parametrize("ids", FLOAT_IDS)
@pytest.mark.parametrize("column", ["user", "item"])
def test_float_ids_that_stand_for_several_integers_raise(ids, column):
    frame = pandas.DataFrame({"user": [1, 2], "item": [7, 8], "rating": [3, 4]})
    frame[column] = ids
    with pytest.raises(DataError, match=f"{column}.*2\\^"):
        read_ratings(frame, scale=(1, 5))


@pytest.mark.parametrize(
    ("kind", "largest"), [("f2", 2047), ("f4", 2**24 - 1), ("f8", 2**53 - 1)]
)
def test_smaller_float_ids_are_integers(kind, largest):
    ids = np.array([largest, largest - 1], kind)
    frame = pandas.DataFrame({"user": ids, "item": [7, 8], "rating": [3, 4]})
    assert read_ratings(frame, scale=(1, 5)).user_ids.tolist() == [largest - 1, largest]


@pytest.mark.parametrize("dtype", ["Int128", "UInt128"])
def test_integers_of_128_bits_are_read(dtype):
    """They are those of polars, as numpy has none."""
    polars = pytest.importorskip("polars")
    if not hasattr(polars, dtype):
        pytest.skip(f"polars has no {dtype}")
    columns = {"user": [5, 2**62], "item": [4, 3], "rating": [1, 2], "time": [10**9, 3]}
    schema = dict.fromkeys(columns, getattr(polars, dtype))
    found = read_ratings(polars.DataFrame(columns, schema), tuple(columns), scale=(1, 5))
    assert (found.user_ids.tolist(), found.item_ids.tolist()) == ([5, 2**62], [3, 4])
    assert (found.values.tolist(), found.times.tolist()) == ([1, 2], [10**9, 3])
    for column, entry in (("user", 2**63), ("rating", 2**90), ("time", 2**64), ("item", None)):
        frame = polars.DataFrame(columns | {column: [1, entry]}, schema)
        with pytest.raises(DataError, match=column):
            read_ratings(frame, tuple(columns), scale=(1, 5))


@pytest.mark.parametrize(
    ("dtype", "entry"),
    [
        ("Decimal", decimal.Decimal("1.5")),
        ("List", [1]),
        ("Duration", datetime.timedelta(1)),
        ("Time", datetime.time(1)),
        ("Date", datetime.date(2024, 5, 31)),
        ("Binary", b"a"),
    ],
)
def test_columns_of_polars_that_are_no_ids_raise(dtype, entry):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"user": [entry] * 3, "item": [4, 5, 6], "rating": [1, 2, 3]})
    assert str(frame["user"].dtype).startswith(dtype)
    with pytest.raises(DataError, match="user"):
        read_ratings(frame, scale=(1, 5))
