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
        (range(4), (0, 1, 2, 3)),
        (range(4), ("0", "1", "2")),
        (range(4), tuple(np.arange(3))),
        (range(4), np.arange(4)),
        (range(4), pandas.RangeIndex(3)),
        (range(4), (np.int8(0), 1.0, "2")),
        (range(10, 14), [10, 11, 12]),
        ([0, "item", 2.5, None], (0, "item", 2.5)),
        ([0, "item", None, 3], (0, "item", None)),
        ([("a", "user"), ("a", "item"), "r", "t"], (("a", "user"), ("a", "item"), "r")),
        ([1, "1", 2, 3], (1, "1", 2)),
        (YEARS, YEARS[:3]),
        (["user", "item", "rating", "x"], ("user", "item", "rating")),
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
        (range(4), (1, 2, 9), " 9.* 0, 1, 2, 3$"),
        (range(4), (-1, 0, 1), " -1"),
        (range(4), (None, 1, 2), "None"),
        (range(4), ([], 1, 2), "columns"),
        (range(4), (0, 1), "columns"),
        (range(4), (0, 1, 1), "columns"),
        (range(4), 7, "columns"),
        (["7", "242", "3", "9"], ("user", "item", "rating"), "name the columns"),
        (["user", "item", "rating", "rating"], ("user", "item", "rating"), " 3, 4"),
        ([0, 1, 2, 2], (0, 1, 2), " 3, 4"),
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
    ("entries", "message"),
    [
        (np.array([3, 2**63 + 5], np.uint64), r"\[1\] = 9223372036854775813 .*as texts"),
        ([3, 2**70], r"\[1\] = 1180591620717411303424 .*as texts"),
        ([3, -(2**70)], r"\[1\] = -1180591620717411303424 .*as texts"),
        ([uuid.UUID(int=7), uuid.UUID(int=8)], r"\[0\] = UUID.*as texts"),
        ([b"a", b"b"], r"\[0\] = b'a' .*decode"),
        ([True, False], r"\[0\] = True .*convert"),
        ([datetime.date(2024, 5, 31)] * 2, r"\[0\] = datetime.* date .*as texts"),
        (np.array([7, 8], "datetime64[s]"), r"\[0\] = datetime.*as texts"),
        ([decimal.Decimal(7), decimal.Decimal(8)], r"\[0\] = Decimal.*as texts"),
        ([1j, 2j], r"\[0\] = 1j .*as texts"),
        ([1, "a"], r"\[0\] = 1 .*text"),
        ([1.5, 2.0], r"\[0\] = 1\.5 .*texts"),
        ([np.inf, 2.0], r"\[0\] = inf .*texts"),
        ([(1, 2), (3, 4)], "column"),
        ([[1], [2, 3]], "column"),
    ],
)
@pytest.mark.parametrize("side", ["user", "item"])
def test_ids_of_other_types_raise_with_their_remedy(entries, message, side):
    columns = {"user": [1, 2], "item": [3, 4], "rating": [1, 2], side: entries}
    with pytest.raises(DataError, match=f"{side}.*{message}"):
        read_ratings(pandas.DataFrame(columns), scale=(1, 5))
    given = {"users": [1, 2], "items": [3, 4], f"{side}s": entries}
    with pytest.raises(DataError, match=f"{side}s.*{message}"):
        from_triples(**given, values=[1, 2], scale=(1, 5))


@pytest.mark.parametrize(
    ("entries", "ids"),
    [
        (np.array([2, 1], np.uint64), [1, 2]),
        (np.array([2, 1], np.int8), [1, 2]),
        ([2.0, 1.0], [1, 2]),
        (pandas.array([2, 1], dtype="Int64"), [1, 2]),
        (pandas.array([2, 1], dtype="UInt64"), [1, 2]),
        (pandas.Categorical(["b", "a"]), ["a", "b"]),
        (pandas.Categorical([2, 1]), [1, 2]),
        (pandas.array(["b", "a"], dtype="string"), ["a", "b"]),
        (np.array(["b", "a"], dtype=object), ["a", "b"]),
        (np.array([2, 1], dtype=object), [1, 2]),
        (
            [str(uuid.UUID(int=8)), str(uuid.UUID(int=7))],
            [str(uuid.UUID(int=n)) for n in (7, 8)],
        ),
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
        lambda: np.array([1, np.nan], dtype=object),
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
