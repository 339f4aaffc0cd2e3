"""The type of ratings: its rows, its subsets, and that it cannot be built wrong."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedmf.data import Catalogue, Ratings, from_triples
from fedmf.data.sets.simulated import simulate
from fedmf.errors import DataError

CATALOGUE = Catalogue(
    titles=("Seven (1995)", "Nine (2009)", "Ten"),
    years=np.array([1995, 2009, 0], dtype=np.int16),
    genres=np.array([[True, False], [False, True], [False, False]]),
    genre_names=("Crime", "Musical"),
)


def small() -> Ratings:
    """Return users 3, 5, 8 and items 10, 20, 30; the lines are not in the users' order."""
    return from_triples(
        name="small",
        users=np.array([5, 3, 5, 8, 3]),
        items=np.array([30, 20, 10, 10, 10]),
        values=np.array([4.0, 2.0, 5.0, 1.0, 3.0]),
        times=np.array([7, 9, 7, 1, 2]),
        scale=(1.0, 5.0),
        item_ids=np.array([10, 20, 30]),
        catalogue=CATALOGUE,
    )


def test_rows_are_by_ascending_user_then_file_order():
    """Rows are users by ascending id and within them the files order."""
    ratings = small()
    assert ratings.user_ids.tolist() == [3, 5, 8]
    assert ratings.indptr.tolist() == [0, 2, 4, 5]
    assert ratings.users.tolist() == [0, 0, 1, 1, 2]
    assert ratings.items.tolist() == [1, 0, 2, 0, 0]
    assert ratings.values.tolist() == [2.0, 3.0, 4.0, 5.0, 1.0]
    assert ratings.times.tolist() == [9, 2, 7, 7, 1]
    assert (ratings.n_users, ratings.n_items, ratings.n_ratings, len(ratings)) == (3, 3, 5, 5)
    assert "small" in repr(ratings)
    promised = {"indptr": "i8", "items": "i4", "values": "f8", "times": "i8", "users": "i4"}
    promised |= {"user_ids": "i8", "item_ids": "i8"}
    for field, dtype in promised.items():
        assert getattr(ratings, field).dtype == dtype, field


@pytest.mark.parametrize("user", [-1, 3])
def test_of_user_with_unknown_user_raises(user):
    with pytest.raises(IndexError, match=f"user {user} "):
        small().of_user(user)


def test_of_user_gives_views():
    ratings = small()
    items, values = ratings.of_user(1)
    assert (items.tolist(), values.tolist()) == ([2, 0], [4.0, 5.0])
    assert np.shares_memory(items, ratings.items)


def test_arrays_are_read_only():
    ratings = small()
    with pytest.raises(FrozenInstanceError):
        ratings.name = "other"
    for array in (ratings.values, ratings.users, ratings.catalogue.genres):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_callers_array_stays_writeable():
    years = np.zeros(1, dtype=np.int16)
    Catalogue(("A",), years, np.zeros((1, 0), dtype=np.bool_), ())
    years[0] = 1999


@given(arrays(np.bool_, 60))
def test_take_by_mask_keeps_order_users_and_items(mask):
    ratings = simulate(6, 15, 60)
    part = ratings.take(mask)
    assert part.users.tolist() == ratings.users[mask].tolist()
    assert part.items.tolist() == ratings.items[mask].tolist()
    assert part.values.tolist() == ratings.values[mask].tolist()
    assert part.times.tolist() == ratings.times[mask].tolist()
    assert (part.n_users, part.n_items) == (6, 15)


@given(st.lists(st.integers(0, 59)))
def test_take_by_position_is_take_by_mask(positions):
    ratings = simulate(6, 15, 60)
    part = ratings.take(np.array(positions, dtype=np.int64))
    mask = np.isin(np.arange(60), positions)
    assert part.indptr.tolist() == ratings.take(mask).indptr.tolist()
    assert part.items.tolist() == ratings.items[mask].tolist()


def test_take_of_a_wrong_selection_raises():
    with pytest.raises(IndexError):
        small().take(np.ones(4, dtype=np.bool_))
    with pytest.raises(IndexError):
        small().take(np.array([5]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("indptr", np.array([0, 2, 5])),  # a user too few
        ("indptr", np.array([1, 2, 4, 5])),  # does not begin at 0
        ("indptr", np.array([0, 2, 4, 4])),  # does not reach the end
        ("indptr", np.array([0, 4, 2, 5])),  # descends
        ("items", np.array([1, 0, 2, 0, 3], dtype=np.int32)),
        ("items", np.array([1, 0, 2, 0, 0])),  # int64
        ("values", np.array([2.0, 3.0, 4.0, 5.5, 1.0])),
        ("values", np.array([2.0, 3.0, 4.0, 5.0, 0.5])),
        ("times", np.array([1])),
        ("item_ids", np.array([10, 20])),
        ("catalogue", Catalogue((), np.zeros(0, np.int16), np.zeros((0, 0), np.bool_), ())),
    ],
)
def test_field_that_does_not_fit_raises_with_its_name(field, value):
    with pytest.raises(DataError, match=rf"Ratings\.{field}"):
        replace(small(), **{field: value})


def test_repeated_pair_raises_with_its_ids():
    twice = np.array([1, 1, 2, 0, 0], dtype=np.int32)
    with pytest.raises(DataError, match=r"small: user 3 .*item 20"):
        replace(small(), items=twice)
    apart = np.array([1, 0, 2, 0, 0], dtype=np.int32)  # the same items, of different users
    assert replace(small(), items=apart).n_ratings == 5


def test_catalogue_of_different_lengths_raises():
    with pytest.raises(DataError, match="2 titles"):
        replace(CATALOGUE, titles=("A", "B"))
    with pytest.raises(DataError, match="1 genre names"):
        replace(CATALOGUE, genre_names=("Crime",))
    assert len(CATALOGUE) == 3
