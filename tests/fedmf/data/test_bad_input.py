"""Ratings that are not as they should be: a clear error, or what is documented to happen.

Wrong columns are in test_triples; damage in files is in test_lines, test_movielens,
test_lastfm, test_profiles and test_tags.
"""

from __future__ import annotations

import numpy as np
import pytest

from fedmf.aggregate import PlainSum
from fedmf.cli.data import figures
from fedmf.data import Split
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import leave_last, random_split
from fedmf.models import FedMF
from fedmf.training import Trainer


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
