"""The simulated ratings: MovieLens' shape, deterministic, and with a structure to be found."""

from __future__ import annotations

import numpy as np
import pytest

from fedmf.data import load
from fedmf.data.sets.simulated import SHARES, appeal, simulate
from fedmf.data.splits import random_split
from fedmf.errors import SettingError
from fedmf.models import Factors
from fedmf.training import ranking
from fedmf.training.measures import Popularity


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


def test_users_rate_items_at_ascending_times():
    ratings = simulate()
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


def test_choices_are_as_predictable_as_those_of_movielens():
    """Popular items have a P@10 of .190 on ml-100k, and a model of .330 leaves room above."""
    found = []
    for seed in range(2):
        split = random_split(simulate(seed=seed), seed=0)
        truth = Factors.of(*appeal(943, 1682, seed), split.train)
        models = (Popularity(split.train), truth)
        found.append([ranking(one, split.test, split.train).precision for one in models])
    popular, best = np.mean(found, axis=0)
    assert popular == pytest.approx(0.19, abs=0.02)
    assert best == pytest.approx(0.355, abs=0.02)


def test_appeal_does_not_depend_on_the_number_of_ratings():
    """The demo has it beside ratings that were drawn elsewhere."""
    users, items = appeal(300, 500)
    assert (users.shape, items.shape) == ((300, 5), (500, 5))
    for n_ratings in (6000, 20_000):
        ratings = simulate(300, 500, n_ratings)
        chosen = (users[ratings.users] * items[ratings.items]).sum(axis=1)
        assert chosen.mean() > (users @ items.T).mean() + 1
    other, _ = appeal(300, 500, seed=1)
    assert not np.array_equal(users, other)


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
    [(1, 1, 1), (3, 4, 12), (5, 100, 20), (50, 10, 120), (10, 9, 85), (5, 100, 102)],
)
def test_possible_shapes_are_met_exactly(shape):
    ratings = simulate(*shape)
    assert (ratings.n_users, ratings.n_items, ratings.n_ratings) == shape
    assert np.diff(ratings.indptr).min() >= min(20, shape[2] // shape[0])
    rated = np.unique(ratings.items).size
    assert rated == min(shape[1], shape[2])


@pytest.mark.parametrize("shape", [(0, 5, 0), (5, 0, 0), (5, 5, 4), (5, 5, 26), (5, 5, 9, -1)])
def test_impossible_shape_or_seed_raises(shape):
    with pytest.raises(SettingError):
        simulate(*shape)


def test_appeal_of_an_impossible_seed_raises():
    with pytest.raises(SettingError):
        appeal(5, 5, seed=-1)
