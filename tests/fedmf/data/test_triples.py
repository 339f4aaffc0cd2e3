"""Ratings from columns of any numeric type; an error names the place of a wrong entry."""

from __future__ import annotations

import numpy as np
import pytest

from fedmf.data import from_triples
from fedmf.errors import DataError

USERS, ITEMS, VALUES = [5, 3, 5], [30, 20, 10], [4, 2.5, 5]


def test_columns_alone_make_ratings():
    ratings = from_triples(USERS, ITEMS, VALUES, scale=(1, 5))
    assert (ratings.name, ratings.scale) == ("own ratings", (1.0, 5.0))
    assert (ratings.user_ids.tolist(), ratings.item_ids.tolist()) == ([3, 5], [10, 20, 30])
    assert ratings.users.tolist() == [0, 1, 1]
    assert ratings.items.tolist() == [1, 2, 0]
    assert ratings.values.tolist() == [2.5, 4, 5]
    assert ratings.times.tolist() == [0, 0, 0]
    assert ratings.catalogue.titles == ("10", "20", "30")
    assert ratings.catalogue.genres.shape == (3, 0)


def test_masked_entries_raise():
    users = np.ma.array(USERS, mask=[False, True, False])
    with pytest.raises(DataError, match="users"):
        from_triples(users, ITEMS, VALUES, scale=(1, 5))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint64, np.float32, object])
def test_numbers_of_other_types_are_converted(dtype):
    columns = (np.array(column, dtype) for column in (USERS, ITEMS, VALUES, [7, 8, 9]))
    users, items, values, times = columns
    ratings = from_triples(
        users, items, values, scale=(1, 5), times=times, item_ids=np.array([10, 20, 30], dtype)
    )
    assert (ratings.user_ids.tolist(), ratings.items.tolist()) == ([3, 5], [1, 2, 0])
    assert ratings.values.tolist() == [values[1], values[0], values[2]]
    assert ratings.times.tolist() == [8, 7, 9]
    kinds = (ratings.user_ids, ratings.item_ids, ratings.times, ratings.items, ratings.values)
    assert [column.dtype for column in kinds] == ["i8", "i8", "i8", "i4", "f8"]


@pytest.mark.parametrize(
    ("column", "given", "place"),
    [
        ("users", ["Ada", "", "Cy"], r"users\[1\]"),
        ("users", ["Ada", "Bo\0", "Cy"], r"users\[1\]"),
        ("item_ids", ["10", "20", "30"], "item_ids"),
        ("times", [1, 2, 0.5], r"times\[2\] .*correct it$"),
        ("values", [4, 5, np.nan], r"values\[2\]"),
        ("values", ["4", "5", "5"], r"values\[0\]"),
        ("values", [4, 5, 5.5], r"values\[2\]"),
        ("values", [4, 0.5, 5], r"values\[1\]"),
        ("values", [4, 5], " 3 users, 3 items, 2 values$"),
        ("times", [1, 2], " 3 users, 3 items, 3 values, 2 times$"),
        ("users", [[5, 3, 5]], "users"),
        ("users", [[5], [3, 5]], "users"),
        ("users", "abc", "users"),
        ("item_ids", [10, 20, 20, 30], r"item_ids\[2\]"),
        ("item_ids", [10, 30, 40], r"item 20 .*items\[1\]"),
        ("item_ids", [15, 20, 30], r"item 10 .*items\[2\]"),
        ("scale", 5, "scale = 5"),
        ("catalogue", ("a", "b", "c"), "catalogue"),
    ],
)
def test_wrong_entry_raises_with_its_place(column, given, place):
    right = {"users": USERS, "items": ITEMS, "values": VALUES, "scale": (1, 5)}
    with pytest.raises(DataError, match=place):
        from_triples(**{**right, column: given})
