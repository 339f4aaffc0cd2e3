"""Implicit feedback: features of items from their raters, and of users from their items."""

import numpy as np

from fedmf import FedBPMF, PlainSum
from fedmf.aggregate import RoundAborted
from fedmf.bayes.traits import Traits, profiles, standardised
from fedmf.data.blocks import Block
from fedmf.data.sets.simulated import simulate

RATINGS = simulate(30, 40, 500, seed=3)


def trained(aggregation=None, **settings):
    return FedBPMF(aggregation, **{"k": 2, "rounds": 8, "burn_in": 4} | settings).fit(RATINGS)


def test_items_have_popularity_and_the_mean_of_their_raters():
    """Three items: two raters, one rater, none; p̄ = (1, 0)."""
    q, mean = np.array([[1.0, 2.0], [3.0, 5.0], [8.0, 8.0]]), np.array([1.0, 0.0])
    weighted = np.array([[40.0, 20.0, 10.0], [0.0, 30.0, 20.0], [0.0, 0.0, 0.0]])
    traits = Traits.of(q, np.array([2.0, 1.0, 0.0]), weighted, mean)
    apart = np.array([[30 / 30, 20 / 30], [-20 / 40, 30 / 40], [0.0, 0.0]])
    expected = np.column_stack((np.log([3.0, 2.0, 1.0]), apart))
    np.testing.assert_allclose(traits.items, standardised(expected))
    np.testing.assert_allclose(traits.embedding[:2], standardised(q)[:2])
    assert traits.embedding[2].tolist() == [0.0, 0.0]


def test_columns_of_one_value_are_zero():
    assert standardised(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist() == [[-1, 0], [1, 0]]


def test_profile_is_the_shrunken_mean_of_rated_items():
    embedding = np.arange(80.0).reshape(40, 2)
    whole = profiles(RATINGS, embedding)
    for user in (0, 7):
        items = RATINGS.of_user(user)[0]
        mine = embedding[items].sum(axis=0) / (items.size + 20)
        np.testing.assert_allclose(whole[user], mine)
        alone = profiles(Block.of(RATINGS, np.array([user])), embedding)
        np.testing.assert_array_equal(alone[0], whole[user])
    nobody = Block.of_one(np.zeros(0, dtype=np.int32), np.zeros(0))
    assert profiles(nobody, embedding).tolist() == [[0.0, 0.0]]


def test_implicit_feedback_stays_after_the_burn_in():
    """Round 4 is the last that computes it; with burn_in = 5 it is another."""
    some, more, other = (
        trained(rounds=sweeps, burn_in=burn_in).model_.embedding
        for sweeps, burn_in in ((5, 4), (9, 4), (9, 5))
    )
    np.testing.assert_array_equal(some, more)
    assert (some != other).any()
    assert some.any()


def test_no_implicit_feedback_without_a_burn_in():
    model = trained(burn_in=1).model_
    assert not model.embedding.any()
    assert not any(one.user_link.weights.any() for one in model.samples)


class Failing(PlainSum):
    """Sum that is aborted in the first five rounds."""

    def _add(self, vectors, dropouts, session, encoding):
        if session in [f"fedmf sum {number}".encode() for number in range(1, 6)]:
            raise RoundAborted("as the test wants")
        return super()._add(vectors, dropouts, session, encoding)


def test_implicit_feedback_comes_late_if_the_burn_in_is_aborted():
    model = trained(Failing())
    assert [one.aborted is None for one in model.history_] == [False] * 5 + [True] * 3
    assert model.model_.embedding.any()
    assert model.model_.samples[0].link.weights.shape[0] >= 3
