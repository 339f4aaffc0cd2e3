"""Items with one rater: an exact sum gives that rater away."""

from __future__ import annotations

import numpy as np
import pytest

from fedmf import attacks
from fedmf.attacks import from_gram, from_sum, gram_of, peeled
from fedmf.attacks.observed import chance
from fedmf.data import from_triples, load
from fedmf.data.sets.simulated import simulate
from fedmf.errors import DataError, SettingError

GRID = np.arange(1.0, 6.0)
REG = 0.1


@pytest.fixture(scope="module")
def few():
    return simulate(24, 50, 600, seed=1)


def test_singletons_finds_ratings_of_one_rater_items():
    """Two users, one item in common; the rows of the sum are written out."""
    rng = np.random.default_rng(2)
    q = rng.normal(size=(9, 5))
    truth = np.array([1.0, 5, 4, 2, 2, 3, 5, 1, 3])
    users = (np.array([0, 1, 2, 3, 8]), np.array([4, 5, 6, 7, 8]))
    total, counts = np.zeros_like(q), np.zeros(9, dtype=np.int64)
    for items in users:
        p = rng.normal(size=5)
        total[items] += REG * q[items] - np.outer(truth[items] - q[items] @ p, p)
        counts[items] += 1
    items, found = from_sum(q, total, counts, REG, GRID)
    np.testing.assert_array_equal(items, np.arange(8))
    np.testing.assert_array_equal(found, truth[:8])
    assert np.isnan(from_sum(q, np.zeros_like(q), counts, REG, GRID)[1]).all()


def test_singletons_with_min_raters_3_finds_nothing(few):
    """No ratings are found if trained items need three raters."""
    lone = np.bincount(few.items, minlength=50) == 1
    lonely = few.take(~np.isin(few.items, np.flatnonzero(~lone)[:30]) | (few.users == 3))
    exposed = attacks.singletons(lonely, 1)
    assert exposed.ratings >= 10
    alone = lonely.values[np.bincount(lonely.items, minlength=50)[lonely.items] == 1]
    assert exposed.chance == chance(alone)
    assert exposed.plain == exposed.secure == exposed.summed == 1.0, "a secure sum is a sum"
    kept = attacks.singletons(lonely, 3)
    assert kept.plain == kept.secure == kept.summed == 0.0
    assert kept.ratings == exposed.ratings


def test_singletons_with_dropouts_finds_items_of_3_raters():
    """A fifth of the users drop out; three of the 38 single raters are exposed."""
    some = simulate(24, 80, 240, seed=0)
    exposed = attacks.singletons(some, 3, dropout=0.2, seed=3)
    assert exposed.plain == exposed.secure > 0.0
    assert attacks.singletons(some, 1, dropout=0.2, seed=3).secure > exposed.secure
    gone = np.random.default_rng((3, 3)).random(24) < 0.2
    left = np.bincount(some.items[~gone[some.users]], minlength=80)
    assert exposed.ratings == (left == 1).sum()
    assert attacks.singletons(some, 12, dropout=0.2, seed=3).secure == 0.0


# user 1 alone rates item 1; without user 1, user 2 alone rates item 2; 3 and 4 are alike
USERS = [1, 1, 2, 2, 3, 3, 4, 4]
ITEMS = [1, 2, 2, 3, 3, 4, 3, 4]
CHAIN = from_triples(USERS, ITEMS, np.ones(8), scale=(0, 1))


def test_profiles_are_peeled_one_after_the_other():
    found = from_gram(gram_of(CHAIN))
    assert [profile.tolist() for profile in found] == [[0, 1], [1, 2]]
    assert peeled(CHAIN, gram_of(CHAIN)) == 0.5


def test_users_without_ratings_do_not_count():
    silent = CHAIN.take(CHAIN.users == 0)
    assert peeled(silent, gram_of(silent)) == 1.0
    nothing = CHAIN.take(np.zeros(8, dtype=bool))
    assert peeled(nothing, gram_of(nothing)) == 0.0


@pytest.mark.parametrize("wrong", [np.ones(3), np.ones((2, 3)), np.full((2, 2), np.nan)])
def test_table_that_is_none_raises(wrong):
    with pytest.raises(SettingError):
        from_gram(wrong)


def test_most_users_of_movielens_are_peeled():
    """The figure of an independent prototype is 92.6 % of the users."""
    try:
        ratings = load("ml-100k")
    except DataError:
        pytest.skip("FEDMF_DATA names no ml-100k")
    assert peeled(ratings, gram_of(ratings)) == pytest.approx(0.926, abs=0.002)
