"""Each attack finds what it should in the clear, and nothing where sums are secure.

A federation of 24 simulated users is small enough for every user to be a client of the real
protocol. What a guess that knows nothing gets is `chance`, the share of the most frequent
rating; n independent guesses exceed it by four standard deviations once in 30,000 seeds, and
the seeds here are fixed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from fedmf import SecAggSum, attacks
from fedmf.aggregate.aggregation import modulus_bits
from fedmf.attacks import Seen, from_one_round, from_ridge, observed
from fedmf.attacks.observed import (
    grid_of,
    in_the_clear,
    train,
    under_masks,
)
from fedmf.cli import app
from fedmf.data import Catalogue, Split
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.errors import DataError, ModelError, SettingError
from fedmf.masks import MeanMask, RidgeMask
from fedmf.models import PRESETS, FedMF

GRID = np.arange(1.0, 6.0)
REG = 0.1
BITS = modulus_bits(24, SecAggSum().encoding)  # of the ring of the watched sums


@pytest.fixture(scope="module")
def few():
    return simulate(24, 50, 600, seed=1)


@pytest.fixture(scope="module")
def everyone(few):
    return attacks.chosen(few, None, 0)


def guessing(outcome):
    """The most that guesses get, but for once in 30,000 times."""
    return outcome.chance + 4 * np.sqrt(0.25 / outcome.ratings)


def gradients(rng, ratings, k=4, p=None):
    """η_ui of eq. 6, written out, for random Q and p_u."""
    q = rng.normal(size=(len(ratings), k))
    p = rng.normal(size=k) if p is None else p
    e = ratings - q @ p
    return Seen(q, REG * q - np.outer(e, p))


def test_from_two_rounds_finds_the_ratings():
    """Two rounds of gradients are the ratings whatever happened in between."""
    rng = np.random.default_rng(0)
    ratings = np.array([1.0, 5.0, 3.5, 2.0, 4.0])
    found = attacks.from_two_rounds(gradients(rng, ratings), gradients(rng, ratings), REG)
    np.testing.assert_allclose(found, ratings, atol=1e-11)


def test_from_two_rounds_needs_three_items_and_loses_the_sign():
    rng = np.random.default_rng(0)
    two = np.array([2.0, 4.0])
    nothing = attacks.from_two_rounds(gradients(rng, two), gradients(rng, two), REG)
    assert np.isnan(nothing).all()
    low = np.array([-3.0, -1.0, -2.0, 1.0])  # such as masked ratings can be
    found = attacks.from_two_rounds(gradients(rng, low), gradients(rng, low), REG)
    np.testing.assert_allclose(found, -low, atol=1e-11)


@pytest.mark.parametrize("grid", [GRID, np.arange(0.5, 5.5, 0.5)])
def test_from_one_round_finds_ratings_on_a_grid(grid):
    """One round of gradients is the ratings if they are on a grid."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        ratings = rng.choice(grid, 12)
        seen = gradients(rng, ratings)
        rounded = Seen(seen.q, np.rint(seen.eta * 2**16) / 2**16)
        np.testing.assert_array_equal(from_one_round(seen, REG, grid), ratings)
        np.testing.assert_array_equal(from_one_round(rounded, REG, grid), ratings)


def test_length_of_p_decides_between_several_answers():
    """The length of p decides where one item has several answers."""
    rng = np.random.default_rng(5)
    right = 0
    for rating in np.tile(GRID, 10):
        p = rng.normal(size=4)
        seen = gradients(rng, np.array([rating]), p=p)
        right += from_one_round(seen, REG, GRID, float(np.linalg.norm(p)))[0] == rating
    assert right >= 48


@pytest.mark.parametrize("one_round", [False, True])
def test_gradients_leak_in_the_clear_but_not_when_secure(few, everyone, one_round):
    """Gradients leak in the clear and not under secure aggregation."""
    outcome = attacks.leakage(few, everyone, one_round=one_round)
    assert outcome.ratings == 600
    assert outcome.plain == 1.0
    assert 0.05 < outcome.secure < guessing(outcome)  # made-up ratings are right now and then
    assert outcome.summed < guessing(outcome)


def test_masked_input_is_independent_of_the_gradient(few):
    """Decoded, y_u is uniform in the ring and as good as independent of η_u."""
    seen = train(PRESETS["paper"].model, few, 1, 0)[0]
    secure = under_masks(seen, {7}, 0)
    sent, gradient = secure.masked[7].reshape(-1), seen.gradients[7].dense()
    n = sent.size
    assert (
        np.abs(np.quantile(sent, [0.25, 0.5, 0.75]) / 2 ** (BITS - 17) - [-0.5, 0, 0.5]).max()
        < 0.15
    )
    assert abs(np.corrcoef(sent, gradient)[0, 1]) < 4 / np.sqrt(n)


def test_difference_of_masked_inputs_is_independent_too(few):
    """Masks that came twice would cancel; in the ring, also where the user rated nothing."""
    rounds = train(PRESETS["paper"].model, few, 2, 0)
    first, second = (
        (under_masks(one, {7}, 0).masked[7] * 2**16).astype(np.int64) for one in rounds
    )
    moved = (first - second) % 2**BITS
    before, after = (
        np.rint(one.gradients[7].dense().reshape(moved.shape) * 2**16).astype(np.int64)
        for one in rounds
    )
    rated = rounds[0].gradients[7].indices
    assert np.mean(moved == (before - after) % 2**BITS) < 0.01
    unrated = np.delete(moved, rated, axis=0).reshape(-1)
    for part in (moved.reshape(-1), unrated):
        n = part.size
        quantiles = np.quantile(part / 2**BITS, [0.25, 0.5, 0.75])
        assert np.abs(quantiles - [0.25, 0.5, 0.75]).max() < 4 * np.sqrt(0.25 / n)


def test_sum_of_the_watched_round_is_that_of_gradients(few):
    """The sum of the watched round is the sum of its gradients."""
    seen = train(PRESETS["paper"].model, few, 1, 0)[0]
    total = np.zeros_like(seen.q)
    for user, rows in seen.gradients.items():
        total[rows.indices] += in_the_clear(seen, user).eta
    np.testing.assert_array_equal(under_masks(seen, (), 0).total, total)


def ridge_of(n, penalty):
    """Return features, ratings, and the residuals of a ridge, from its normal equations."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2, size=(n, 5)).astype(float)
    ratings = rng.choice(GRID, n)
    centred = x - x.mean(axis=0)
    w = np.linalg.solve(centred.T @ centred + penalty * np.eye(5), centred.T @ ratings)
    return x, ratings, ratings - ratings.mean() - centred @ w


@pytest.mark.parametrize("penalty", [0.5, 4.0, 40.0])
def test_from_ridge_undoes_a_mask_of_unknown_penalty(penalty):
    x, ratings, residuals = ridge_of(30, penalty)
    found = from_ridge(residuals, x, ratings.mean(), GRID)
    np.testing.assert_array_equal(found.ratings, ratings)
    assert found.penalty == pytest.approx(penalty)
    assert found.misfit < 1e-9


def test_from_ridge_finds_the_sign_by_the_grid():
    x, ratings, residuals = ridge_of(31, 4.0)
    assert (2 * ratings.mean()) % 1 != 0
    assert from_ridge(-residuals, x, ratings.mean(), GRID).misfit > 0.01


def test_from_ridge_of_equal_ratings_needs_no_penalty():
    found = from_ridge(np.zeros(4), np.eye(4), 3.0, GRID)
    np.testing.assert_array_equal(found.ratings, [3.0] * 4)
    assert np.isnan(found.penalty)


def test_inversion_succeeds_only_in_the_clear(few, everyone):
    """Gradients of masked ratings give the ratings unless sums are secure."""
    outcome = attacks.inversion(few, everyone, RidgeMask(penalty=7.0))
    assert outcome.plain >= 0.97
    assert 0.05 < outcome.secure < guessing(outcome)
    assert outcome.summed < guessing(outcome)


def test_recovery_stretches_masked_ratings_to_the_range():
    """Recovery stretches masked ratings to the range of the ratings."""
    few = simulate(3, 5, 9, seed=0)
    one = few.take(few.users == 0)
    values = np.array([1.0, 3.0, 4.0])
    truth = one.with_values(values[: one.n_ratings], (1.0, 5.0))
    hidden = truth.with_values(np.array([-1.0, 0.5, 1.0])[: one.n_ratings], (-9.0, 9.0))
    # stretched: 1, 3.25, 4; so two of three are exact, and the third is a quarter off
    np.testing.assert_allclose(attacks.recovery(truth, hidden, 0.24), [2 / 3])
    np.testing.assert_allclose(attacks.recovery(truth, hidden, 0.26), [1.0])
    with pytest.raises(SettingError, match="tolerance = 0"):
        attacks.recovery(truth, hidden, 0.0)


def test_ranking_counts_highest_masked_ratings():
    """Ranking counts which of the highest masked ratings are highest."""
    few = simulate(1, 10, 10, seed=0)
    truth = few.with_values(np.linspace(1, 5, 10), (1.0, 5.0))
    order = np.array([0, 1, 3, 2, 4, 5, 9, 7, 8, 6.0])  # the top three are 6, 8, 7
    hidden = few.with_values(order, (0.0, 9.0))
    for top, share in ((0.1, 0.0), (0.3, 2 / 3), (0.31, 1.0), (1.0, 1.0)):
        np.testing.assert_allclose(attacks.ranking(truth, hidden, top), [share])
    with pytest.raises(SettingError, match=r"top = 0\.0"):
        attacks.ranking(truth, hidden, 0.0)


def test_ranking_of_7_per_cent_of_100_items_takes_7():
    """In floats .07 · 100 is a little more than 7."""
    truth = simulate(1, 100, 100, seed=0).with_values(np.arange(100.0), (0.0, 99.0))
    swapped = np.arange(100.0)
    swapped[[92, 93]] = 93.0, 92.0  # the eighth and the seventh from the top
    hidden = truth.with_values(swapped, (0.0, 99.0))
    np.testing.assert_allclose(attacks.ranking(truth, hidden, 0.07), [6 / 7])


@pytest.mark.parametrize("ranked", [False, pytest.param(True, marks=pytest.mark.large)])
def test_recovery_and_ranking_of_masked_inputs_find_nothing(few, everyone, ranked):
    amount = 0.1 if ranked else 0.5
    outcome = attacks.on_masked_ratings(few, everyone, ranked=ranked, amount=amount)
    assert outcome.plain > outcome.chance + 0.1
    # guesses: each user's tenth, rounded up, or all ratings; their mean over users weighs them
    # unevenly, so that the spread is that of the fewest that they can count for
    n = 24 * 2 if ranked else 24 * 20
    spread = np.sqrt(outcome.chance * (1 - outcome.chance) / n)
    assert abs(outcome.secure - outcome.chance) < 4 * spread


def test_chance_shuffles_numbers_within_each_user(few, everyone, monkeypatch):
    """Shuffling a user's equal numbers neither gains nor loses anything."""
    same = [np.full(few.of_user(user)[0].size, float(user)) for user in everyone]
    monkeypatch.setattr(observed, "leaked", lambda view, users, model: same)
    outcome = attacks.on_masked_ratings(few, everyone, ranked=False, amount=0.5)
    assert outcome.secure == pytest.approx(outcome.chance, abs=1e-12)


def test_chosen_draws_users_with_ratings_only(few):
    gone = few.take(few.users != 3)
    assert 3 not in attacks.chosen(gone, None, 0)
    np.testing.assert_array_equal(attacks.chosen(few, 5, 1), attacks.chosen(few, 5, 1))
    for wrong in (0, 25):
        with pytest.raises(SettingError, match="n_users"):
            attacks.chosen(few, wrong, 0)


def test_ratings_off_any_grid_raise(few):
    np.testing.assert_array_equal(grid_of(few), GRID)
    whole = few.with_values(
        few.values, (0.5, 5.0)
    )  # no rating is a half, though the scale has halves
    np.testing.assert_array_equal(grid_of(whole), np.arange(0.5, 5.5, 0.5))
    quarters = few.with_values(few.values / 4, (0.25, 1.25))
    thirds = few.with_values(few.values / 3 + 1, (1.0, 3.0))
    same = few.with_values(np.full(few.n_ratings, 3.0), (3.0, 3.4))
    boundless = few.with_values(few.values, (-np.inf, np.inf))
    for wrong in (quarters, thirds, same, boundless):
        with pytest.raises(DataError):
            attacks.leakage(wrong, [0])
        with pytest.raises(DataError):
            attacks.singletons(wrong, 1)


@pytest.mark.parametrize(
    "attack",
    [
        attacks.leakage,
        partial(attacks.inversion, mask=RidgeMask()),
        partial(attacks.on_masked_ratings, ranked=True, amount=0.1),
    ],
)
def test_attack_on_unknown_or_silent_users_raises(few, attack):
    gone = few.take(few.users != 3)
    for wrong in ([], [3], [600], [0.5]):
        with pytest.raises((SettingError, ModelError), match="user"):
            attack(gone, wrong)
    with pytest.raises(SettingError, match=r"split\.train"):
        attack(Split(few, few), [0])
    with pytest.raises(SettingError, match="seed = -1"):
        attack(few, [0], seed=-1)


@pytest.mark.parametrize("update", ["paper", "ridge"])
def test_leakage_of_a_model_with_biases_raises(few, update):
    """Its gradients have one column less than its Q, and no attack solves for b_u."""
    model = FedMF(biases=True, min_raters=1, update=update)
    with pytest.raises(SettingError, match="biases"):
        attacks.leakage(few, [0], model=model)
    with pytest.raises(SettingError, match="mask"):
        attacks.inversion(few, [0], MeanMask())


@pytest.mark.large
def test_side_information_can_be_passed_where_the_data_has_none(few, monkeypatch):
    nothing = Catalogue(
        ("",) * 50, np.zeros(50, np.int16), np.zeros((50, 0), dtype=np.bool_), ()
    )
    bare = replace(few, catalogue=nothing)
    known = item_features(few)
    users = attacks.chosen(few, 5, 0)
    with pytest.raises(DataError):
        attacks.inversion(bare, users, RidgeMask())
    given = attacks.inversion(bare, users, RidgeMask(), features=known)
    assert given == attacks.inversion(few, users, RidgeMask())
    monkeypatch.setattr("fedmf.attacks.trials.known_features", lambda ratings: known)
    assert given == attacks.inversion(bare, users, RidgeMask())  # the default, as for Last.fm


@pytest.mark.parametrize(("kind", "n_attacks"), [("one-round", 1), ("singletons", 2)])
def test_command_prints_a_table_or_json(monkeypatch, kind, n_attacks):
    monkeypatch.setattr("fedmf.cli.attack.load", lambda name: simulate(6, 9, 40, seed=0))
    common = ("attack", "--kind", kind, "--users", "5")
    table, document = (CliRunner().invoke(app, [*common, *more]) for more in ([], ["--json"]))
    assert (table.exit_code, document.exit_code) == (0, 0), table.output + document.output
    one, *more = json.loads(document.stdout)["attacks"]
    assert len(more) == n_attacks - 1
    assert set(one) == {"attack", "plain", "secure", "summed", "chance", "ratings"}
    assert f"{one['plain']:.2%}" in table.stdout
    assert ("use --data ml-100k" in table.stderr) == (kind == "singletons")


# user 1 alone rates item 1; without user 1, user 2 alone rates item 2; 3 and 4 are alike
