"""The centralised baseline: grouped steps are those of the sequence, and it learns."""

from __future__ import annotations

import numpy as np
import pytest

from benches.papers.centralised import SVD
from fedmf.data.sets.simulated import simulate
from fedmf.errors import ModelError, SettingError


def one_by_one(train, k, epochs, seed, rate=0.05, reg=0.02, spread=0.1):
    """Do the same updates as a plain loop over the ratings, as Surprise's documentation has."""
    rng = np.random.default_rng(seed)
    p = rng.normal(0.0, spread, size=(train.n_users, k))
    q = rng.normal(0.0, spread, size=(train.n_items, k))
    order = rng.permutation(train.n_ratings)
    b_u, b_i, mu = np.zeros(train.n_users), np.zeros(train.n_items), train.values.mean()
    for _ in range(epochs):
        for j in order:
            u, i = train.users[j], train.items[j]
            e = train.values[j] - (mu + b_u[u] + b_i[i] + q[i] @ p[u])
            b_u[u] += rate * (e - reg * b_u[u])
            b_i[i] += rate * (e - reg * b_i[i])
            p[u], q[i] = (
                p[u] + rate * (e * q[i] - reg * p[u]),
                q[i] + rate * (e * p[u] - reg * q[i]),
            )
    return mu, b_u, b_i, p, q


def test_grouped_steps_equal_sequential_steps():
    train = simulate(15, 20, 120, seed=1)
    model = SVD(k=3, epochs=4, rate=0.05, seed=7).fit(train)
    mu, b_u, b_i, p, q = one_by_one(train, 3, 4, 7)
    assert model.mean_ == pytest.approx(mu)
    np.testing.assert_allclose(model.user_biases_, b_u, atol=1e-12)
    np.testing.assert_allclose(model.item_biases_, b_i, atol=1e-12)
    rated = np.unique(train.items)
    np.testing.assert_allclose(model.user_factors_, p, atol=1e-12)
    np.testing.assert_allclose(model.item_factors_[rated], q[rated], atol=1e-12)
    wanted = mu + b_u[train.users] + b_i[train.items] + (p[train.users] * q[train.items]).sum(1)
    np.testing.assert_allclose(model.predict(train.users, train.items), wanted)


def test_predict_of_unseen_user_is_mean_and_known_bias():
    ratings = simulate(10, 12, 60, seed=3)
    train = ratings.take((ratings.users != 4) & (ratings.items != 5))
    model = SVD(k=2, epochs=2).fit(train)
    users, items = np.array([4, 4, 0]), np.array([5, 6, 5])
    wanted = model.mean_ + np.array([0.0, model.item_biases_[6], model.user_biases_[0]])
    np.testing.assert_allclose(model.predict(users, items), wanted)


def test_fit_that_diverges_raises_and_leaves_no_model():
    train = simulate(15, 20, 120, seed=1)
    model = SVD(k=3, epochs=200, rate=5.0)
    with pytest.raises(SettingError, match="rate of 5"):
        model.fit(train)
    with pytest.raises(ModelError):
        model.predict([0], [0])
