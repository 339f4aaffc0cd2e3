"""CF and the exact federated CF, against the normal equations written out in full."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from benches.papers.simulated_views import simulate_views
from fedmf.aggregate import FloatSum, PlainSum, RoundAborted, SecAggSum
from fedmf.data import from_triples
from fedmf.errors import DataError, DataWarning, SettingError
from fedmf.fcf import CF, FCF, FederatedCF, Implicit, views
from fedmf.fcf.confidence import solve
from fedmf.fcf.fcf import gradients
from fedmf.fcf.federated import XY
from fedmf.training import Descent
from watched_sum import Watched


def tiny():
    """Forty views of 32 items by five users; user 2 has none, as after an unlucky split."""
    ratings = simulate_views(5, 32, seed=3)
    return ratings.take(ratings.users != 2)


def dense(ratings, alpha):
    """C and P of eq. 3 and 4 in full, user by user and item by item."""
    c, p = np.ones((2, ratings.n_users, ratings.n_items))
    p[:] = 0
    for user, item, value in zip(ratings.users, ratings.items, ratings.values, strict=True):
        c[user, item] = 1 + alpha * value
        p[user, item] = value > 0
    return c, p


def eq_7(fixed, c, p, reg):
    """(Y Cᵘ Yᵀ + λI)⁻¹ Y Cᵘ p(u), as the paper writes it."""
    return np.array(
        [
            np.linalg.inv(fixed.T @ np.diag(weight) @ fixed + reg * np.eye(fixed.shape[1]))
            @ fixed.T
            @ np.diag(weight)
            @ preference
            for weight, preference in zip(c, p, strict=True)
        ]
    )


def cost(x, y, c, p, reg):
    return (c * (p - x @ y.T) ** 2).sum() + reg * ((x**2).sum() + (y**2).sum())  # eq. 5


@pytest.mark.parametrize(
    ("values", "scale", "left", "warning"),
    [
        ([0, 1, 0, 1], (0, 1), 2, "no view"),
        ([0.0, 0.5, -0.0, 1.0], (0, 1), 2, "no view"),
        ([0, 1e-300, 1, 1], (0, 1), 3, "no view"),
        ([1, 2, 3, 4], (1, 5), 4, None),
        ([-1, 1, 1, 1], (-1, 1), 4, "1 of 4 .* below 0"),
        ([-1e-9, 1, 1, 1], (-1, 1), 4, "1 of 4 .* below 0"),
        ([-5, -4, -3, -2], (-5, -1), 4, "4 of 4 .* below 0"),
        ([0, 1, 1, 0], (-1, 1), 4, None),
        ([-0.0, 1, 1, 1], (-1, 1), 4, None),
    ],
)
def test_label_of_0_is_no_view_and_below_0_is_with_a_warning(values, scale, left, warning):
    """Other libraries take −1 for a dislike."""
    values = np.asarray(values, dtype=np.float64)
    ratings = from_triples(["a", "a", "b", "b"], [1, 2, 1, 3], values, scale=scale)
    with nullcontext() if warning is None else pytest.warns(DataWarning, match=warning):
        found = views(ratings)
    assert found.values.tolist() == [1.0] * left
    viewed = values != 0 if scale[0] == 0 else np.ones(4, np.bool_)
    assert found.items.tolist() == ratings.items[viewed].tolist()
    assert (found.n_users, found.n_items) == (ratings.n_users, ratings.n_items)


def test_labels_of_0_alone_raise():
    ratings = from_triples(["a", "b"], [1, 2], [0, 0], scale=(0, 1))
    with pytest.raises(DataError, match="every rating is 0"):
        views(ratings)


def test_cf_alternates_eq_7_and_eq_9():
    ratings = replace(tiny(), scale=(0.0, 9.0))
    ratings = replace(ratings, values=np.arange(ratings.n_ratings) % 4.0)  # also r = 0
    model = Implicit(k=3, alpha=1.5, reg=0.7)
    c, p = dense(ratings, 1.5)
    y = model.start(ratings, 5)
    x = eq_7(y, c, p, 0.7)
    costs = []
    for found_x, found_y in CF(model, rounds=3, seed=5).iterate(ratings):
        y = eq_7(x, c.T, p.T, 0.7)
        x = eq_7(y, c, p, 0.7)
        np.testing.assert_allclose(found_y, y, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found_x, x, rtol=0, atol=1e-12)
        costs.append(cost(x, y, c, p, 0.7))
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("last", [1, 2])
def test_interrupted_cf_keeps_the_finished_passes(last, monkeypatch):
    ratings, real = tiny(), solve

    def stop(*arguments):
        done.append(arguments)
        if len(done) == 2 * last:  # X of the start, then Y and X of each pass
            raise KeyboardInterrupt
        return real(*arguments)

    done = []
    monkeypatch.setattr("fedmf.fcf.cf.solve", stop)
    model = CF(Implicit(k=2), rounds=9)
    if last == 1:
        with pytest.raises(KeyboardInterrupt):
            model.fit(ratings)
        return
    model.fit(ratings)
    monkeypatch.undo()
    assert (model.history_.interrupted, len(model.history_)) == (True, 1)
    once = CF(Implicit(k=2), rounds=1).fit(ratings).model_
    np.testing.assert_array_equal(model.model_.item_factors, once.item_factors)


@pytest.mark.parametrize(
    ("block", "own", "rest"),
    [
        (2, [8, 12, 18, -2, -3, 2], [[4, 6, 9, 2, 3, 0]]),
        (1, [8, -2, 2], [[4, 6, 9], [2, 3, 0]]),
    ],
)
def test_moments_of_a_user_by_hand(block, own, rest):
    """x = (2, 3), y = (-.25, .5): x · y = 1 and c = 3, so 2 x xᵀ and (2 · 1 − 3) x."""
    ratings = simulate_views(5, 32)
    ratings = ratings.take(np.flatnonzero(ratings.users == 1)[:1])
    item = int(ratings.items[0])
    x = np.array([[9.0, 9.0], [2.0, 3.0], [9.0, 9.0], [9.0, 9.0], [9.0, 9.0]])
    y = np.full((32, 2), 7.0)
    y[item] = -0.25, 0.5
    state = XY(x, y, np.zeros(2))
    system = FederatedCF(Implicit(k=2, alpha=2.0), block=block)
    training = system.training(system.model.confidence(ratings))
    table = training.local_steps(state, None).vector(1).dense().reshape(-1, len(own))
    assert table[item].tolist() == own
    assert table[32:].tolist() == rest
    assert np.count_nonzero(table[:32].any(axis=1)) == 1


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_federated_cf_with_a_power_is_cf(power, centred):
    ratings = simulate_views(60, 40, seed=1)
    model = Implicit(reg=0.1, alpha=3.0, power=power, centred=centred)
    ours = FederatedCF(model, rounds=4, min_raters=1, seed=2).fit(ratings).model_
    theirs = CF(model, rounds=4, seed=2).fit(ratings).model_
    np.testing.assert_allclose(ours.item_factors, theirs.item_factors, rtol=0, atol=1e-7)
    np.testing.assert_allclose(ours.user_factors, theirs.user_factors, rtol=0, atol=1e-7)


def test_penalty_of_an_item_is_scaled_to_all_users():
    """Half of the users drop out; the server scales what it sums, also for λ."""
    ratings = simulate_views(400, 32, seed=1)
    model = Implicit(k=2, reg=0.05, alpha=30.0, power=1.0)
    ours, lost = (
        FederatedCF(model, rounds=6, min_raters=1, dropout=dropout).fit(ratings).model_
        for dropout in (0.0, 0.5)
    )
    size = np.linalg.norm(ours.item_factors)
    assert np.linalg.norm(lost.item_factors) == pytest.approx(size, rel=0.05)


def test_path_in_place_of_ratings_raises():
    with pytest.raises(SettingError, match="train must be Ratings, not str"):
        FederatedCF().fit("ratings.csv")


def test_fcf_with_a_power_raises():
    with pytest.raises(SettingError):
        FCF(Implicit(power=0.5))


def test_federated_cf_gives_the_same_under_secure_sums():
    ratings = simulate_views(8, 32, seed=1)
    fits = [
        FederatedCF(Implicit(k=2), kind(clip=256.0, fractional_bits=32), rounds=2).fit(ratings)
        for kind in (PlainSum, SecAggSum)
    ]
    plain, secure = (fit.model_.item_factors for fit in fits)
    assert plain.tobytes() == secure.tobytes()


def test_clipped_moment_raises():
    with pytest.raises(SettingError, match="clip"):
        FederatedCF(aggregation=PlainSum(clip=2.0**-8), min_raters=1).fit(tiny())


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


def test_sums_too_coarse_for_the_penalty_raise():
    """Rounding may take less than half of λ; the factors would be noise."""
    model, ratings = Implicit(k=8, reg=1.0), simulate_views(400, 32, seed=1)
    with pytest.raises(SettingError, match=r"reg = 1\.0 .*fractional_bits"):
        FederatedCF(model, PlainSum(clip=256.0, fractional_bits=4)).fit(ratings)
    FederatedCF(model, PlainSum(clip=256.0, fractional_bits=12)).fit(ratings)
