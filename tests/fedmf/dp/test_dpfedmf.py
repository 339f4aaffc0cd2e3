"""DPFedMF: messages of norm 1, and items from released sums alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedmf import DPFedMF, LocalHead, ModelError, RoundAborted, SettingError
from fedmf.aggregate import FloatSum, PlainSum, SecAggSum
from fedmf.aggregate.noisy import noise_multiplier
from fedmf.aggregate.vectors import Aggregate
from fedmf.data.internal import internal
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.dp import effects
from fedmf.training import rmse
from watched_sum import Kept

RATINGS = simulate(30, 40, 500, seed=3)
SILENT = 4
TRAIN = RATINGS.take(RATINGS.users != SILENT)
LARGE = random_split(simulate(300, 60, 9000, seed=1), seed=0)


def made(aggregation=None, **settings):
    entropy = np.random.default_rng(7).bytes
    return DPFedMF(aggregation, **{"rounds": 3, "entropy": entropy} | settings)


@given(seed=st.integers(0, 10_000), count=st.integers(5, 60))
@settings(max_examples=20)
def test_message_of_every_round_has_norm_1_or_no_number(seed, count):
    """In exact integers on the grid, for users with one rating, with many, and without any."""
    ratings = simulate(5, 20, count, seed=seed)
    spy = Kept()
    made(spy, where="central").fit(ratings)
    rated = np.bincount(ratings.users, minlength=5)
    assert len(spy.sums) == 3
    for tables in spy.sums:
        sent = (np.array(tables) * 2**16).astype(int)
        squares = np.array([sum(int(one) ** 2 for one in table) for table in sent])
        assert squares.max() <= 2**32
        assert (squares[rated > 0] > 0.99 * 2**32).all()
        assert not squares[rated == 0].any()


def test_messages_are_residuals_and_marks_of_the_rated_items():
    spy = Kept()
    model = made(spy, where="central", rounds=1).fit(TRAIN)
    start = effects.first(internal(TRAIN), TRAIN.scale).factors
    for user in (0, 9, SILENT):
        items, values = TRAIN.of_user(user)
        table = np.zeros((40, 2))
        guesses = start.predict(np.full(items.size, user), items)
        table[items] = np.column_stack((values - guesses, np.full(items.size, effects.MARK)))
        norm = np.linalg.norm(table) or 1.0
        np.testing.assert_allclose(
            spy.sums[0][user].reshape(40, 2), table / norm, atol=2.0**-15
        )
    assert model.history_.last.survivors == 30


def released(seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=80)
    return Aggregate(numbers, np.zeros(80, dtype=np.int64), tuple(range(30)), 0)


def test_items_follow_from_released_sums_and_public_numbers_alone():
    """Two data sets with nothing in common but users, items and features."""
    other = simulate(30, 40, 700, seed=8)
    other = replace(other, catalogue=TRAIN.catalogue)
    found = []
    for ratings in (TRAIN, other):
        training = effects.Effects(ratings, None, np.ones((40, 0)), lambda left, of: 2.0)
        state = effects.first(training.ratings, ratings.scale)
        for seed in range(3):
            steps = training.local_steps(state, None)
            state = training.server_step(state, steps, released(seed))
        found.append(state)
    one, two = found
    np.testing.assert_array_equal(one.factors.item_factors, two.factors.item_factors)
    assert not np.array_equal(one.factors.user_factors, two.factors.user_factors)
    assert (one.rounds, one.variance) == (3, 12.0)
    total = sum(released(seed).sum for seed in range(3))
    np.testing.assert_allclose(one.sums[:, :2].reshape(-1), total)


def test_users_solve_their_ridge():
    rng = np.random.default_rng(1)
    items = effects.rows_of(rng.normal(0, 0.4, 40), rng.normal(size=40))
    found = effects.solved(items, internal(TRAIN))
    for user in (0, 7, SILENT):
        rated, values = TRAIN.of_user(user)
        x, rest = items[rated, 1:], values - items[rated, 0]
        own = np.linalg.solve(x.T @ x + np.diag(effects.RIDGE), x.T @ rest)
        np.testing.assert_allclose(found[user], [1, *own], atol=1e-9)


def test_estimate_is_the_posterior_mean():
    """Exact where much is known, and the regression on the features where nothing is."""
    rng = np.random.default_rng(2)
    m, noise = 400, 0.05
    features = rng.normal(size=(m, 1))
    b = 0.5 * features[:, 0] + rng.normal(0, 0.1, m)
    held = np.where(np.arange(m) < 200, 30.0, 0.0)
    base = np.where(held > 0, rng.normal(size=m), 0.5 * features[:, 0])
    means = np.column_stack((held * (b - base), effects.MARK * held, base))
    found, popularity = effects.estimated(means, noise, features)
    np.testing.assert_allclose(found[:200], b[:200], atol=1e-3)
    np.testing.assert_allclose(found[200:], 0.5 * features[200:, 0], atol=0.1)
    assert popularity[:200].min() > popularity[200:].max()
    coarse, _ = effects.estimated(means * (1, 1, 0), 1e6, features)
    assert np.abs(coarse).max() < 1e-3


def test_an_item_of_many_ratings_does_not_decide_for_all_others():
    """In the regression an effect counts by its spread around it, however well it is known."""
    item = np.arange(200)
    known, feature = (item == 7) | (item == 8), (item % 2 == 1).astype(float)
    b = np.where(item == 7, 1.0, 0.0)
    held = np.where(known, 3000.0, np.where(item < 150, 30.0, 0.0))
    means = np.column_stack((held * b, effects.MARK * held, np.zeros(200)))
    found, _ = effects.estimated(means, 0.05, feature[:, None])
    assert np.abs(found[150:]).max() < 0.2
    assert found[7] == pytest.approx(1.0, abs=1e-3)


def test_little_noise_is_better_than_much_and_a_head_is_better_than_none():
    errors = []
    for epsilon in (0.01, 1.0, 1e4):
        model = made(where="central", epsilon=epsilon, rounds=5).fit(LARGE.train, LARGE.test)
        errors.append(model.history_.last.test_rmse)
        head = LocalHead().fit(model.model_, LARGE.train)
        guesses = head.predict(LARGE.test.users, LARGE.test.items)
        assert rmse(LARGE.test.values, guesses) < errors[-1]
    assert errors == sorted(errors, reverse=True)
    nothing = effects.first(internal(LARGE.train), LARGE.train.scale).factors
    guesses = nothing.predict(LARGE.test.users, LARGE.test.items)
    # effects of noise alone are shrunk, and do no more harm than two useless columns
    assert errors[0] < rmse(LARGE.test.values, guesses) + 0.03
    assert errors[2] < rmse(LARGE.test.values, guesses) - 0.02


@pytest.mark.parametrize(("honest", "dropout"), [(1.0, 0.0), (0.2, 0.0), (0.2, 0.4)])
def test_variance_is_that_of_all_noise_in_the_sums(honest, dropout, monkeypatch):
    """The server weighs the sums by it: more users than needed add more noise."""
    known, server_step = [], effects.Effects.server_step

    def watched(self, state, steps, total):
        after = server_step(self, state, steps, total)
        exact = sum(steps.vector(user).dense() for user in total.survivors)
        known.append((after.variance - state.variance, np.var(total.sum - exact)))
        return after

    monkeypatch.setattr(effects.Effects, "server_step", watched)
    made(PlainSum(clip=256), honest=honest, dropout=dropout, epsilon=0.5, rounds=12).fit(TRAIN)
    stated, found = np.array(known).sum(axis=0)
    assert found == pytest.approx(stated, rel=0.15)
    # each of 12 sums has the noise for 12, or more
    least = 12 * noise_multiplier(0.5, 1e-5, 12) ** 2
    assert stated == pytest.approx(least) if honest == 1 else stated > 1.5 * least


def test_aborted_rounds_change_nothing():
    model = made(honest=0.9, dropout=0.12, rounds=12, seed=2).fit(TRAIN)
    aborted = [one.aborted is not None for one in model.history_]
    assert 0 < sum(aborted) < 12
    for before, after in zip(model.history_, model.history_.rounds[1:], strict=False):
        same = before.train_rmse == after.train_rmse
        assert same == (after.aborted is not None)


def test_too_few_users_abort_and_leave_nothing():
    model = made(SecAggSum()).fit(TRAIN).set_params(dropout=0.9)
    with pytest.raises(RoundAborted):
        model.fit(TRAIN)
    with pytest.raises(ModelError):
        model.predict([0], [0])


def test_interrupt_keeps_the_finished_rounds():
    def stop(record):
        if record.round == 2:
            raise KeyboardInterrupt

    model = made(callbacks=[stop]).fit(TRAIN)
    assert (len(model.history_), model.history_.interrupted) == (2, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": None},
        {"epsilon": 0.0},
        {"delta": 1.0},
        {"rounds": 0},
        {"where": "local"},
        {"where": "central", "honest": 0.5},
        {"aggregation": FloatSum()},
    ],
    ids=str,
)
def test_wrong_setting_raises(wrong):
    with pytest.raises(SettingError):
        DPFedMF(**wrong)


def test_start_is_refused():
    with pytest.raises(SettingError):
        made().fit(TRAIN, start=made().fit(TRAIN).model_)
