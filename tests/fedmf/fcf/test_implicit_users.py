"""Implicit feedback by sums over users: few raters, dropouts, aborted sums."""

from __future__ import annotations

import numpy as np
import pytest

from fedmf.aggregate import FloatSum, RoundAborted
from fedmf.data.sets.simulated_views import simulate_views
from fedmf.errors import DataError, SettingError
from fedmf.fcf import CF, FCF, FederatedCF, Implicit
from fedmf.fcf.fcf import gradients
from fedmf.training import Descent
from watched_sum import Watched

BOTH = pytest.mark.parametrize("system", [FCF, FederatedCF])
LOST = RoundAborted("only 2 of 40 are left")


def rare():
    """Views of which some items have one or two."""
    ratings = simulate_views(40, 32, seed=1)
    found = np.bincount(ratings.items, minlength=32)
    keep = np.ones(ratings.n_ratings, dtype=bool)
    for item, left in ((3, 1), (7, 2), (9, 3)):
        keep[np.flatnonzero(ratings.items == item)[left:]] = False
    assert (found[[3, 7, 9]] > 3).all()
    return ratings.take(keep)


def common(ratings):
    """The ratings without those of items 3 and 7."""
    return ratings.take(~np.isin(ratings.items, [3, 7]))


def test_items_with_few_raters_count_as_unrated():
    """Items with few raters are left out as if they were not rated."""
    ratings = rare()
    ours = FederatedCF(Implicit(k=3), rounds=4).fit(ratings)
    theirs = CF(Implicit(k=3), rounds=4).fit(common(ratings))
    np.testing.assert_allclose(ours.model_.item_factors, theirs.model_.item_factors, atol=1e-7)


def test_vectors_do_not_depend_on_items_with_few_raters():
    """The sums treat an item with one rater as an item without raters."""
    ratings, model = rare(), Implicit(k=2)
    watched = Watched()
    (step,) = FCF(model, watched, rounds=1, steps=1).iterate(ratings)
    (counted, ones, *_), (summed, sent, *_) = watched.calls
    assert (counted, summed) == ("count", "sum")
    assert ones[5].tolist() == np.isin(np.arange(32), ratings.of_user(5)[0]).tolist()
    y = model.start(ratings, 0)
    wanted = gradients(step.user_factors, y, model.confidence(common(ratings)), range(40))
    np.testing.assert_allclose([sent[user].reshape(2, 32) for user in range(40)], wanted)


@BOTH
def test_min_raters_1_counts_nothing_and_keeps_all_items(system):
    watched = Watched()
    system(Implicit(k=2), watched, rounds=1, min_raters=1).fit(rare())
    assert {kind for kind, *_ in watched.calls} == {"sum"}


@BOTH
def test_min_raters_above_every_count_raises(system):
    with pytest.raises(DataError, match=r"41 .*min_raters"):
        system(min_raters=41).fit(rare())
    with pytest.raises(SettingError, match="min_raters = 0"):
        system(min_raters=0)


def test_sum_excludes_dropped_out_users():
    ratings = simulate_views(40, 32, seed=1)
    model = Implicit(k=2)
    fcf = FCF(model, FloatSum(), rounds=2, steps=2, min_raters=1, dropout=0.4, seed=5)
    steps = list(fcf.iterate(ratings))
    before = [model.start(ratings, 5)] + [step.item_factors for step in steps]
    there = {step.aggregate.survivors for step in steps}
    assert len(there) == 4  # drawn again for every sum
    for step, y in zip(steps, before, strict=False):
        users = step.aggregate.survivors
        assert 0 < len(users) < 40
        wanted = gradients(step.user_factors, y, model.confidence(ratings), users).sum(axis=0)
        np.testing.assert_allclose(step.aggregate.sum.reshape(2, 32), wanted, atol=1e-12)


def test_step_uses_the_sum_scaled_to_all_users():
    """Otherwise dropouts would increase the weight of the regularisation."""
    ratings, model = simulate_views(40, 32, seed=1), Implicit(k=2, reg=3.0)
    move = Descent(rate=0.001)
    fcf = FCF(model, FloatSum(), optimiser=move, rounds=1, steps=1, dropout=0.4)
    (step,) = fcf.iterate(ratings)
    y = model.start(ratings, 0)
    mean = step.aggregate.sum.reshape(2, 32).T / len(step.aggregate.survivors)
    wanted = y - 0.001 * (-2.0 * 40 * mean + 2.0 * 3.0 * y)
    np.testing.assert_allclose(step.item_factors, wanted, atol=1e-12)


def test_aborted_sum_keeps_the_factors_and_continues():
    """A lost sum leaves the item factors and the training goes on."""
    ratings = simulate_views(40, 32, seed=1)
    fcf = FCF(Implicit(k=2), Watched(LOST, None, LOST), rounds=2, steps=2)
    steps = list(fcf.iterate(ratings))  # a count is lost and repeated, then a sum
    assert [step.aggregate is None for step in steps] == [True, False, False, False]
    np.testing.assert_array_equal(steps[0].item_factors, fcf.model.start(ratings, 0))
    assert (steps[1].item_factors != steps[0].item_factors).any()


def test_aborted_count_is_repeated_with_other_dropouts():
    watched = Watched(LOST, LOST)
    FederatedCF(Implicit(k=2), watched, rounds=3, dropout=0.3).fit(simulate_views(40, 32))
    gone = [tuple(dropouts) for kind, _, dropouts, _ in watched.calls if kind == "count"]
    assert len(set(gone)) == 3


@BOTH
@pytest.mark.parametrize("counted", [0, 1])
def test_fit_with_every_sum_aborted_raises(system, counted):
    outcomes = [None] * counted + [LOST] * 30
    model = system(Implicit(k=2), Watched(*outcomes), rounds=3)
    with pytest.raises(RoundAborted, match=r"2 of 40 .*threshold"):
        model.fit(simulate_views(40, 32, seed=1))
    assert not hasattr(model, "model_")
    assert len(model.aggregation.calls) == (3 if not counted else 31 if system is FCF else 4)
