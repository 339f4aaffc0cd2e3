"""The simulated ratings: MovieLens' shape, deterministic, and with a structure to be found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fedmf.data import Ratings, load
from fedmf.data.sets.simulated import SHARES, simulate
from fedmf.data.splits import random_split
from fedmf.errors import SettingError


def columns(ratings: Ratings) -> list[NDArray]:
    return [ratings.indptr, ratings.items, ratings.values, ratings.times]


def test_ratings_depend_on_the_seed_only():
    """The same seed gives the same ratings and another seed others."""
    once, again, other = (simulate(40, 60, 1200, seed=seed) for seed in (3, 3, 4))
    assert all(map(np.array_equal, columns(once), columns(again)))
    assert once.catalogue.titles == again.catalogue.titles
    assert not np.array_equal(once.values, other.values)


def test_default_shape_is_that_of_ml_100k():
    ratings = simulate()
    assert (ratings.n_ratings, ratings.n_users, ratings.n_items) == (100_000, 943, 1682)
    per_user = np.diff(ratings.indptr)
    per_item = np.bincount(ratings.items, minlength=ratings.n_items)
    # ml-100k: users 20 / 65 / 737, items 1 / 27 / 583 (least, median, most)
    assert per_user.min() >= 20
    assert 50 < np.median(per_user) < 80
    assert 500 < per_user.max() <= 841
    assert per_item.min() == 1
    assert 18 < np.median(per_item) < 40
    assert 450 < per_item.max() <= 943


def test_ratings_are_integers_as_frequent_as_in_movielens():
    values = load("simulated").values
    found = [np.mean(values == rating) for rating in (1, 2, 3, 4, 5)]
    assert found == pytest.approx(SHARES, abs=0.002)
    assert values.mean() == pytest.approx(3.53, abs=0.01)
    assert values.std() == pytest.approx(1.126, abs=0.01)


def test_users_rate_items_once_at_ascending_times():
    ratings = simulate()
    pairs = ratings.users.astype(np.int64) * ratings.n_items + ratings.items
    assert np.unique(pairs).size == len(ratings)
    steps = np.diff(ratings.times)
    inside = np.diff(ratings.users) == 0
    assert (steps[inside] >= 0).all()
    assert ratings.times.min() >= 875_000_000  # September 1997, as ml-100k
    assert ratings.times.max() < 894_000_000


def test_users_rate_popular_items_early_and_late_alike():
    """Otherwise leave_last would test on other items than it trains on."""
    ratings = simulate()
    popular = np.bincount(ratings.items)[ratings.items]
    first = ratings.indptr[:-1, None] + np.arange(10)
    last = ratings.indptr[1:, None] - 1 - np.arange(10)
    assert popular[last].mean() == pytest.approx(popular[first].mean(), rel=0.05)


def test_items_have_distinct_titles_years_and_genres():
    catalogue = simulate(100, 4000, 20_000).catalogue
    assert len(set(catalogue.titles)) == 4000
    assert ((catalogue.years > 1900) & (catalogue.years < 2000)).all()
    assert all(
        str(year) in title
        for year, title in zip(catalogue.years, catalogue.titles, strict=True)
    )
    per_item = catalogue.genres.sum(axis=1)
    assert (per_item.min(), per_item.max()) == (1, 3)
    assert catalogue.genres.any(axis=0).all()


@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, 1),
        (3, 4, 12),
        (5, 100, 20),
        (50, 10, 120),
        (10, 9, 85),
        (7, 30, 100),
        (5, 100, 102),
    ],
)
def test_possible_shapes_are_met_exactly(shape):
    ratings = simulate(*shape)
    assert (ratings.n_users, ratings.n_items, ratings.n_ratings) == shape
    assert np.diff(ratings.indptr).min() >= min(20, shape[2] // shape[0])
    rated = np.unique(ratings.items).size
    assert rated == min(shape[1], shape[2])


@pytest.mark.parametrize("shape", [(0, 5, 0), (5, 0, 0), (5, 5, 4), (5, 5, 26)])
def test_impossible_shape_raises(shape):
    with pytest.raises(SettingError, match=f"n_ratings = {shape[2]}"):
        simulate(*shape)


def test_negative_seed_raises():
    with pytest.raises(SettingError, match="seed = -1"):
        simulate(seed=-1)


def rmse(predicted: NDArray, ratings: Ratings) -> float:
    return float(np.sqrt(np.mean((predicted - ratings.values) ** 2)))


def half_step(
    other: NDArray, rows: NDArray, columns: NDArray, target: NDArray, n: int, penalty: float
) -> NDArray:
    """Solve the ridge regression of each row on the other side's factors."""
    k = other.shape[1]
    gram = np.tile(penalty * np.eye(k), (n, 1, 1))
    right = np.zeros((n, k))
    seen = other[columns]
    np.add.at(gram, rows, seen[:, :, None] * seen[:, None, :])
    np.add.at(right, rows, seen * target[:, None])
    return np.linalg.solve(gram, right[:, :, None])[:, :, 0]


def test_factors_beat_biases_and_biases_beat_the_users_means():
    ratings = load("simulated")
    split = random_split(ratings, seed=1)
    train, test = split.train, split.test
    n, m = ratings.n_users, ratings.n_items

    mean = train.values.mean()
    user, item = np.zeros(n), np.zeros(m)
    per_user, per_item = (
        np.bincount(x, minlength=y) for x, y in ((train.users, n), (train.items, m))
    )
    users_mean = rmse((np.bincount(train.users, train.values, n) / per_user)[test.users], test)
    for _ in range(10):
        rest = train.values - mean - user[train.users]
        item = np.bincount(train.items, rest, m) / (per_item + 5)
        rest = train.values - mean - item[train.items]
        user = np.bincount(train.users, rest, n) / (per_user + 5)
    biases = rmse(mean + user[test.users] + item[test.items], test)

    rest = train.values - mean - user[train.users] - item[train.items]
    q = np.random.default_rng(0).normal(scale=0.1, size=(m, 4))
    for _ in range(10):
        p = half_step(q, train.users, train.items, rest, n, 4.0)
        q = half_step(p, train.items, train.users, rest, m, 4.0)
    low_rank = (p[test.users] * q[test.items]).sum(axis=1)
    factors = rmse(mean + user[test.users] + item[test.items] + low_rank, test)

    assert factors < biases - 0.08
    assert biases < users_mean - 0.05
    assert 0.88 < biases < 0.98  # as hard as MovieLens for this model


def test_genres_correlate_with_users_tastes():
    ratings = load("simulated")
    genres = ratings.catalogue.genres.astype(float)
    rest = ratings.values - ratings.values.mean()
    by_item = np.bincount(ratings.items, rest) / np.bincount(ratings.items)
    rest = rest - by_item[ratings.items]
    explained = 0.0
    for user in range(ratings.n_users):
        row = slice(ratings.indptr[user], ratings.indptr[user + 1])
        half = (row.start + row.stop) // 2
        x = np.column_stack((np.ones(row.stop - row.start), genres[ratings.items[row]]))
        fit, held = slice(0, half - row.start), slice(half - row.start, None)
        y = rest[row]
        weight = np.linalg.solve(x[fit].T @ x[fit] + 4 * np.eye(x.shape[1]), x[fit].T @ y[fit])
        plain = y[fit].sum() / (y[fit].size + 4)
        explained += float(
            ((y[held] - plain) ** 2).sum() - ((y[held] - x[held] @ weight) ** 2).sum()
        )
    assert explained / len(ratings) > 0.02
