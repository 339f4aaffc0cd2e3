"""Training of DPEase: settings, and the attack on the released sum."""

import numpy as np
import pytest

from fedmf import DataError, ModelError, RoundAborted, SettingError
from fedmf.aggregate import FloatSum, PlainSum, SecAggSum
from fedmf.attacks import peeled
from fedmf.data.sets.simulated import simulate
from fedmf.ease import DPEase
from fedmf.fcf import views
from watched_sum import Kept

RATINGS = views(simulate(30, 40, 500, seed=3))
SPARSE = simulate(60, 80, 400, seed=3)
FINE = PlainSum(clip=16.0, fractional_bits=24)
"""A grid for next to no noise."""


def made(aggregation=None, **settings):
    entropy = np.random.default_rng(7).bytes
    return DPEase(aggregation, **{"items": 12, "entropy": entropy} | settings)


def test_sum_is_the_scaled_gram_matrix_of_the_most_rated():
    """With next to no noise: all users weigh alike, in the choice of items and in the sum."""
    model = made(FINE, where="central", epsilon=1e6).fit(RATINGS)
    each = 1 / np.sqrt(np.bincount(RATINGS.users, minlength=30))
    counts = np.bincount(RATINGS.items, each[RATINGS.users], minlength=40)
    kept = model.model_.kept
    assert kept.size == 12
    assert counts[kept].min() >= np.delete(counts, kept).max()
    seen = np.zeros((30, 40))
    seen[RATINGS.users, RATINGS.items] = 1
    n = seen[:, kept].sum(axis=1)
    seen *= np.sqrt(0.95 / np.maximum(n * (n + 1) / 2, 1))[:, None] ** 0.5
    np.testing.assert_allclose(model.gram_, (seen.T @ seen)[np.ix_(kept, kept)], atol=0.02)


def test_all_items_take_one_sum_with_the_whole_norm():
    model = made(FINE, items=40, where="central", epsilon=1e6).fit(RATINGS)
    assert len(model.history_) == 1
    assert model.model_.kept.size == 40
    n = np.bincount(RATINGS.users, minlength=30)
    each = 1 / np.sqrt(n * (n + 1) / 2)
    expected = np.bincount(RATINGS.items, each[RATINGS.users], minlength=40)
    np.testing.assert_allclose(np.diag(model.gram_), expected, atol=0.02)


def test_items_take_their_part_of_the_norm():
    """Both messages have a squared norm of 1 together."""
    spy = Kept()
    made(spy, where="central", items=30).fit(RATINGS)
    first, second = ((np.array(tables) ** 2).sum(axis=1) for tables in spy.sums)
    assert first.max() < 0.05
    assert first.min() > 0.049
    assert (first + second).max() <= 1
    assert (first + second).max() > 0.99


def found_by_peeling(model, ratings):
    """Share found by an attacker who scales the sum to the users of each size in turn."""
    sizes = np.unique(np.bincount(ratings.users))
    scales = [np.sqrt(n * (n + 1) / 2) for n in sizes if n]
    return sum(peeled(ratings, model.gram_ * scale) for scale in scales)


@pytest.mark.parametrize(("epsilon", "some"), [(1e6, True), (8.0, False), (2.0, False)])
def test_noise_ends_the_attack_that_knows_the_scale(epsilon, some):
    """With almost no noise the same attack finds profiles."""
    model = made(FINE, items=80, where="central", epsilon=epsilon).fit(SPARSE)
    found = found_by_peeling(model, SPARSE)
    assert found > 0.3 if some else found == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": None},
        {"where": "central", "honest": 0.5},
        {"aggregation": FloatSum()},
    ],
    ids=str,
)
def test_wrong_setting_raises(wrong):
    with pytest.raises(SettingError):
        DPEase(**wrong)


def test_attributes_set_later_are_refused_by_fit():
    model = made(where="central")
    model.epsilon = None
    with pytest.raises(SettingError, match="epsilon"):
        model.fit(RATINGS)


def test_too_few_users_abort_and_leave_nothing():
    model = made(SecAggSum()).fit(RATINGS).set_params(dropout=0.9)
    with pytest.raises(RoundAborted):
        model.fit(RATINGS)
    with pytest.raises(ModelError):
        model.recommend(0)


def test_ratings_without_any_raise():
    with pytest.raises(DataError):
        made().fit(RATINGS.take(np.zeros(RATINGS.n_ratings, dtype=bool)))


@pytest.mark.parametrize(("honest", "dropout"), [(1.0, 0.0), (0.2, 0.0), (0.2, 0.4)])
def test_sigma_is_that_of_all_noise_in_the_sum(honest, dropout):
    """Those beyond the honest add noise, too, which the server removes by its deviation."""
    sums = PlainSum(clip=256)
    settings = {"items": 40, "epsilon": 0.5, "honest": honest, "dropout": dropout}
    model = made(sums, **settings).fit(RATINGS)
    noise = model.gram_[np.triu_indices(40)]
    assert noise.std() == pytest.approx(model.sigma_, rel=0.06)


def test_reg_is_used_and_by_default_follows_the_noise():
    one = made(where="central").fit(RATINGS)
    same = made(where="central", reg=float(one.sigma_ * np.sqrt(12))).fit(RATINGS)
    other = made(where="central", reg=99.0).fit(RATINGS)
    np.testing.assert_allclose(one.model_.weights, same.model_.weights)
    assert np.abs(other.model_.weights).max() < np.abs(one.model_.weights).max()
