"""Baselines beside the federated models."""

import numpy as np

from benches.papers import baselines
from benches.papers.baselines import Biases
from benches.papers.table import Run
from fedmf.data import Split, from_triples
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.training import rmse

RATINGS = simulate(40, 30, 500, seed=2)


def test_biases_minimise_the_penalised_squares():
    """At the minimum every derivative is zero."""
    found = Biases.fit(RATINGS, 3.0, 2.0)
    rest = RATINGS.values - found.predict(RATINGS.users, RATINGS.items)
    slopes = np.bincount(RATINGS.users, rest, 40) - 3.0 * found.users
    np.testing.assert_allclose(slopes, 0.0, atol=1e-9)
    slopes = np.bincount(RATINGS.items, rest, 30) - 2.0 * found.items
    np.testing.assert_allclose(slopes, 0.0, atol=1e-4)


def test_items_with_few_raters_have_no_bias():
    raters = np.bincount(RATINGS.items, minlength=30)
    least = int(np.median(raters))
    assert ((Biases.fit(RATINGS, 3.0, 2.0, least).items == 0) == (raters < least)).all()


def test_user_without_training_ratings_gets_the_mean_of_all():
    ratings = from_triples([1, 1, 2], [1, 2, 1], [2.0, 4.0, 5.0], scale=(1, 5))
    split = Split(ratings.take([0, 1]), ratings.take([2]))
    assert baselines.user_means(split, Run(seed=0)).tolist() == [3.0]


def test_setting_is_chosen_without_the_test_ratings():
    """The same training ratings give the same predictions, whatever the test ratings are."""
    split = random_split(RATINGS, seed=0)
    wrong = split.test.with_values(6.0 - split.test.values, RATINGS.scale)
    one = baselines.biases(split, Run(seed=0))
    assert (one == baselines.biases(Split(split.train, wrong), Run(seed=0))).all()
    spread = np.full(split.test.n_ratings, split.train.values.mean())
    assert rmse(split.test.values, one) < rmse(split.test.values, spread)
