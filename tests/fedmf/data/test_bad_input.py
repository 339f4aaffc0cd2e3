"""Ratings that are not as they should be: a clear error, or what is documented to happen.

Damage in files is in test_lines, test_movielens, test_lastfm, test_profiles and test_tags.
"""

from __future__ import annotations

import numpy as np
import pytest

from fedmf.aggregate import PlainSum
from fedmf.cli.data import figures
from fedmf.data import Ratings, Split, from_triples
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import leave_last, random_split
from fedmf.errors import DataError
from fedmf.models import FedMF
from fedmf.training import Trainer


def built(users: list[int], items: list[int], values: list[float]) -> Ratings:
    """Return ratings of the items 10, 20 and 30."""
    return from_triples(
        users, items, values, scale=(1, 5), name="own", item_ids=np.array([10, 20, 30])
    )


@pytest.mark.parametrize(
    ("users", "items", "values", "message"),
    [
        ([7, 8, 7], [10, 10, 10], [1, 2, 3], "own: user 7 .*item 10 "),
        ([7, 8, 8], [10, 30, 30], [1, 2, 2], "own: user 8 .*item 30 "),
        ([7, 8], [10, 20], [1, np.nan], r"own: values\[1\] = nan"),
        ([7, 8], [10, 20], [1, np.inf], r"values\[1\] = inf .*1 to 5"),
        ([7, 8], [10, 20], [1, 0], r"values\[1\] = 0\.0 .*1 to 5"),
        (
            [7, 8],
            [10, 40],
            [1, 2],
            r"item 40 .*items\[1\]",
        ),
        (
            [7, 8],
            [10, -1],
            [1, 2],
            r"item -1 .*items\[1\]",
        ),
    ],
)
def test_columns_that_are_no_ratings_raise(users, items, values, message):
    with pytest.raises(DataError, match=message):
        built(users, items, values)


def test_pairs_that_share_one_side_are_no_repeats():
    """The same item by two and two items by one are not repeated."""
    assert len(built([7, 8, 7], [10, 10, 30], [1, 2, 3])) == 3


@pytest.fixture
def gappy() -> Split:
    """Return a split where user 3 and item 5 are in the test part alone."""
    ratings = simulate(12, 20, 120, seed=1)
    test = (ratings.users == 3) | (ratings.items == 5)
    test[::7] = True
    return Split(train=ratings.take(~test), test=ratings.take(test))


def test_training_skips_empty_users_and_items(gappy):
    """Users and items without ratings are in every shape and are predicted."""
    assert gappy.train.of_user(3)[0].size == 0
    assert not (gappy.train.items == 5).any()
    trainer = Trainer(FedMF(k=2), PlainSum(), rounds=3, seed=0)
    factors = trainer.fit(gappy.train, gappy.test)
    assert np.isfinite(factors.predict(np.full(20, 3), np.arange(20))).all()
    assert np.isfinite(factors.predict(np.arange(12), np.full(12, 5))).all()
    assert np.isfinite(trainer.history_.last.test_rmse)


def test_empty_users_and_items_keep_their_features(gappy):
    found = figures(gappy.train)
    assert (found["users"], found["items"]) == (12, 20)
    assert found["per_user"][0] == found["per_item"][0] == 0
    raters = [int((gappy.train.items == item).sum()) for item in range(20)]
    assert raters.count(0) == found["unrated"] >= 1
    assert raters.count(1) == found["singletons"] >= 1
    assert len(item_features(gappy.train)) == 20


def test_splits_keep_empty_users_and_items(gappy):
    for split in (random_split(gappy.train), leave_last(gappy.train, 1)):
        assert split.train.n_users == split.test.n_users == 12
        assert split.train.of_user(3)[0].size == split.test.of_user(3)[0].size == 0
