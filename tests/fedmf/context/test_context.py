"""Federated context models: gradients, convergence, and the vectors that users send."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedmf.aggregate import FloatSum
from fedmf.context import ContextTrainer, FedFM, FedLR, FedNN
from fedmf.context.trainer import UNIT
from fedmf.data import Features
from fedmf.data.sets.simulated import simulate
from fedmf.errors import SettingError
from watched_sum import Watched

MODELS = [FedLR(), FedFM(k=3, spread=0.5), FedNN(hidden=5)]


def features(n, d, seed):
    matrix = np.random.default_rng(seed).normal(size=(n, d))
    return Features(matrix, tuple(str(j) for j in range(d)))


def small(n_users=8, n_items=12, n_ratings=60):
    ratings = simulate(n_users, n_items, n_ratings, seed=3)
    return ratings, features(n_items, 2, 1), features(n_users, 1, 2)


def fitted(trainer, ratings, items, users):
    return trainer.fit(ratings, items=items, users=users)


def design(ratings, items, users):
    return np.hstack((users.matrix[ratings.users], items.matrix[ratings.items]))


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
@given(st.integers(0, 500))
def test_gradients_are_those_of_half_the_squared_error(model, seed):
    rng = np.random.default_rng(seed)
    theta = model.initial(4, 3.5, rng) + rng.normal(size=model.initial(4, 3.5, rng).size)
    x, values = rng.normal(size=(6, 4)), rng.uniform(1, 5, 6)

    def loss(point):
        return 0.5 * ((model.predict(point, x) - values) ** 2).sum()

    h = 1e-6
    slopes = [(loss(theta + h * e) - loss(theta - h * e)) / (2 * h) for e in np.eye(theta.size)]
    scale = 1 + np.abs(slopes).max()
    np.testing.assert_allclose(model.gradient(theta, x, values), slopes, atol=1e-6 * scale)


def test_fm_prediction_is_the_sum_over_pairs():
    """Rendle's eq. 1 written out, which lemma 3.1 is to compute."""
    rng = np.random.default_rng(0)
    model, x = FedFM(k=2), rng.normal(size=(5, 3))
    theta = rng.normal(size=1 + 3 + 6)
    b, w, v = theta[0], theta[1:4], theta[4:].reshape(3, 2)
    wanted = [
        b + w @ row + sum(v[f] @ v[g] * row[f] * row[g] for f, g in ((0, 1), (0, 2), (1, 2)))
        for row in x
    ]
    np.testing.assert_allclose(model.predict(theta, x), wanted)


def test_nn_prediction_is_as_by_hand():
    """Two units on one feature: 1 + 2·max(0, 3x + 0) − 1·max(0, −x + 4)."""
    theta = np.array([1.0, 2.0, -1.0, 0.0, 4.0, 3.0, -1.0])
    x = np.array([[1.0], [5.0], [-1.0]])
    np.testing.assert_allclose(FedNN(hidden=2).predict(theta, x), [4.0, 31.0, -4.0])


@pytest.mark.parametrize("reg", [pytest.param(0.0, marks=pytest.mark.large), 0.3])
def test_linear_model_converges_to_the_ridge_solution(reg):
    """(Xᵀ X / N + λ) w = Xᵀ (r − r̄) / N of centred columns, the intercept free."""
    ratings, items, users = small()
    trainer = ContextTrainer(FedLR(rate=0.02, reg=reg), rounds=600)
    trainer.fit(ratings, items=items, users=users)
    x, n = design(ratings, items, users), ratings.n_ratings
    mean_x, mean_r = x.mean(axis=0), ratings.values.mean()
    centred = x - mean_x
    w = np.linalg.solve(
        centred.T @ centred / n + reg * np.eye(3), centred.T @ (ratings.values - mean_r) / n
    )
    wanted = np.append(mean_r - w @ mean_x, w)
    np.testing.assert_allclose(trainer.parameters_, wanted, atol=2e-3)
    np.testing.assert_allclose(
        trainer.predict(ratings.users, ratings.items), wanted[0] + x @ w, atol=5e-3
    )


def test_vector_has_one_size_and_hides_the_rating_count():
    """A vector has one size and the number of ratings is in the sum only."""
    ratings, items, users = small()
    watched = Watched()
    ContextTrainer(FedLR(), watched, rounds=1).fit(ratings, items=items, users=users)
    seen = watched.calls[0][1]
    assert {vector.shape for vector in seen.values()} == {(1 + 3 + 1,)}
    sent = {user: vector[-1] * UNIT for user, vector in seen.items()}
    assert sent == dict(enumerate(np.diff(ratings.indptr).tolist()))
    x, error = design(ratings, items, users), 3.5 - ratings.values
    first = ratings.users == 0
    np.testing.assert_allclose(
        seen[0][:-1] * UNIT, [error[first].sum(), *(error[first] @ x[first])]
    )


def test_training_without_ratings_keeps_parameters():
    ratings, items, _ = small()
    nothing = ratings.take(np.zeros(ratings.n_ratings, dtype=bool))
    trainer = ContextTrainer(FedLR(reg=0.5), rounds=2).fit(nothing, items=items)
    assert trainer.parameters_.tolist() == [3.5, 0.0, 0.0]
    assert (len(trainer.history_), trainer.history_.interrupted) == (2, False)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_fit_that_diverges_raises(model):
    ratings, items, users = small()
    wild = replace(model, rate=1e5)
    with pytest.raises(SettingError, match=r"clip.* rate"):
        ContextTrainer(wild, rounds=3).fit(ratings, items=items, users=users)


def test_infinite_parameters_raise():
    ratings, items, users = small()
    wild = FedFM(rate=1e200)
    with pytest.raises(SettingError):
        ContextTrainer(wild, FloatSum(), rounds=9).fit(ratings, items=items, users=users)


def test_features_of_other_data_raise():
    ratings, items, users = small()
    trainer = ContextTrainer(FedLR(), rounds=1)
    with pytest.raises(SettingError, match=r"8 items .* 12"):
        trainer.fit(ratings, items=users)
    with pytest.raises(SettingError, match=r"12 users .* 8"):
        trainer.fit(ratings, items=items, users=items)


def test_features_in_the_place_of_test_ratings_warn():
    ratings, items, users = small()
    with pytest.warns(DeprecationWarning, match=r"1\.1"):
        old = ContextTrainer(FedLR(), rounds=2).fit(ratings, items, users)
    new = fitted(ContextTrainer(FedLR(), rounds=2), ratings, items, users)
    np.testing.assert_array_equal(old.parameters_, new.parameters_)


def test_missing_features_raise():
    with pytest.raises(SettingError, match="items"):
        ContextTrainer(FedLR(), rounds=2).fit(small()[0])
