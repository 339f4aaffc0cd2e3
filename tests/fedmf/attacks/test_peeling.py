"""Peeling of an exact item–item table."""

import numpy as np
import pytest

from fedmf.attacks import from_gram, gram_of, peeled
from fedmf.data import from_triples, load
from fedmf.errors import DataError, SettingError

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
