"""Federated context models: gradients, convergence, and the vectors that users send."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedmf.aggregate import FloatSum, PlainSum, RoundAborted, SecAggSum
from fedmf.context import ContextTrainer, FedFM, FedLR, FedNN
from fedmf.context.trainer import UNIT
from fedmf.data import Catalogue, Features, Ratings
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import ModelError, SettingError
from fedmf.training import Adam
from fedmf.training.optimisers import BETA_1, BETA_2
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


@pytest.mark.parametrize("model", MODELS[1:], ids=lambda m: type(m).__name__)
def test_training_lowers_the_error(model):
    ratings, items, users = small()
    trainer = ContextTrainer(model, rounds=60).fit(ratings, items=items, users=users)
    error = ((trainer.predict(ratings.users, ratings.items) - ratings.values) ** 2).mean()
    assert error < 0.95 * ratings.values.var()


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_secure_sums_give_the_same_integers_and_model(model):
    ratings, items, users = small()
    trained = [
        ContextTrainer(model, how, rounds=3, seed=1, cohort=6, dropout=0.2).fit(
            ratings, items=items, users=users
        )
        for how in (PlainSum(), SecAggSum())
    ]
    assert trained[0].digests_ == trained[1].digests_
    assert all(trained[0].digests_)
    np.testing.assert_array_equal(trained[0].parameters_, trained[1].parameters_)


class Spy(PlainSum):
    """A plain sum that keeps what it was given."""

    def sum(self, vectors, *, dropouts, session=b""):
        object.__setattr__(self, "seen", {user: vectors[user].dense() for user in vectors})
        return super().sum(vectors, dropouts=dropouts, session=session)


def test_vector_has_one_size_and_hides_the_rating_count():
    """A vector has one size and the number of ratings is in the sum only."""
    ratings, items, users = small()
    spy = Spy()
    ContextTrainer(FedLR(), spy, rounds=1).fit(ratings, items=items, users=users)
    assert {vector.shape for vector in spy.seen.values()} == {(1 + 3 + 1,)}
    sent = {user: vector[-1] * UNIT for user, vector in spy.seen.items()}
    assert sent == dict(enumerate(np.diff(ratings.indptr).tolist()))
    x, error = design(ratings, items, users), 3.5 - ratings.values
    first = ratings.users == 0
    np.testing.assert_allclose(
        spy.seen[0][:-1] * UNIT, [error[first].sum(), *(error[first] @ x[first])]
    )


def without_ratings():
    return Ratings(
        name="none",
        indptr=np.zeros(4, dtype=np.int64),
        items=np.zeros(0, dtype=np.int32),
        values=np.zeros(0),
        times=np.zeros(0, dtype=np.int64),
        n_items=2,
        scale=(1.0, 5.0),
        user_ids=np.arange(3),
        item_ids=np.arange(2),
        catalogue=Catalogue(
            ("a", "b"), np.zeros(2, dtype=np.int16), np.zeros((2, 0), dtype=np.bool_), ()
        ),
    )


def test_training_without_ratings_keeps_parameters():
    ratings = without_ratings()
    trainer = ContextTrainer(FedLR(reg=0.5), rounds=2).fit(ratings, items=features(2, 1, 0))
    assert trainer.parameters_.tolist() == [3.5, 0.0]


class Aborts(PlainSum):
    """Every round is aborted."""

    def sum(self, vectors, *, dropouts, session=b""):
        raise RoundAborted("gone")


def test_aborted_round_keeps_the_parameters():
    ratings, items, users = small()
    watched = Watched(None, RoundAborted("gone"))
    trainer = ContextTrainer(FedLR(), watched, rounds=2).fit(ratings, items=items, users=users)
    one = ContextTrainer(FedLR(), rounds=1).fit(ratings, items=items, users=users)
    assert trainer.digests_ == (*one.digests_, "")
    assert trainer.parameters_.tolist() == one.parameters_.tolist()


def test_training_whose_sums_are_all_aborted_raises():
    trainer = ContextTrainer(FedLR(), Aborts(), rounds=2)
    with pytest.raises(RoundAborted):
        fitted(trainer, *small())
    assert not hasattr(trainer, "history_")


def test_interrupt_keeps_the_finished_rounds():
    ratings, items, users = small()

    def stop(record):
        if record.round == 2:
            raise KeyboardInterrupt

    trainer = ContextTrainer(FedLR(), rounds=9, callbacks=[stop]).fit(
        ratings, items=items, users=users
    )
    two = ContextTrainer(FedLR(), rounds=2).fit(ratings, items=items, users=users)
    assert trainer.digests_ == two.digests_
    np.testing.assert_array_equal(trainer.parameters_, two.parameters_)


@pytest.mark.parametrize("after", ["history_", "parameters_", "model_"])
def test_interrupt_at_the_end_of_fit_leaves_no_older_data(after):
    class Stopped(ContextTrainer):
        stops = False

        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if self.stops and name == after:
                raise KeyboardInterrupt

    trainer = fitted(Stopped(FedLR(), rounds=1), *small())
    Stopped.stops = True
    with pytest.raises(KeyboardInterrupt):
        fitted(trainer, *small(n_users=9, n_items=14))
    if after == "model_":
        assert (trainer.n_users, trainer.n_items) == (9, 14)
        assert not trainer.interrupted_
    else:
        with pytest.raises(ModelError):
            trainer.predict([0], [0])


def test_recommendations_are_unrated_and_in_order():
    ratings, items, users = small()
    trainer = ContextTrainer(FedLR(), rounds=5).fit(ratings, items=items, users=users)
    found, scores = trainer.recommend(2, k=3)
    assert found.size == 3
    assert not set(found) & set(ratings.of_user(2)[0])
    assert (np.diff(scores) <= 0).all()
    left = np.setdiff1d(np.arange(12), ratings.of_user(2)[0])
    assert scores[0] == trainer.predict(np.full(left.size, 2), left).max()


def test_adam_takes_steps_of_its_rate_against_a_constant_slope():
    """m̂ / √v̂ is the sign then, whatever the slope."""
    theta, move = np.array([1.0, 1.0, 1.0]), Adam(rate=0.1, beta1=BETA_1, beta2=BETA_2).fresh()
    for _ in range(3):
        theta = theta - move(np.array([5.0, -0.01, 0.0]))
    np.testing.assert_allclose(theta, [0.7, 1.3, 1.0], atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FedLR(rate=0.0), r"rate = 0\.0 "),
        (lambda: FedLR(reg=-1.0), r"reg = -1\.0 "),
        (lambda: FedFM(k=0), "k = 0 "),
        (lambda: FedFM(spread=float("inf")), "spread = inf"),
        (lambda: FedNN(hidden=2.0), r"hidden = 2\.0"),
        (lambda: ContextTrainer(FedLR(), rounds=0), "rounds = 0"),
    ],
)
def test_settings_out_of_range_raise_with_their_name(make, message):
    with pytest.raises(SettingError, match=message):
        make()


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


def test_clipped_rating_counts_raise():
    ratings, items, users = small()
    with pytest.raises(SettingError, match="clip"):
        ContextTrainer(FedLR(), PlainSum(clip=2.0**-8), rounds=1).fit(
            ratings, items=items, users=users
        )


def test_fit_of_a_split_raises_with_remedy():
    ratings, items, users = small()
    with pytest.raises(SettingError, match=r"Split: .* split\.train"):
        ContextTrainer(FedLR(), rounds=1).fit(random_split(ratings), items=items, users=users)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_predictions_have_the_shape_of_the_pairs(model):
    ratings, items, users = small()
    trainer = ContextTrainer(model, rounds=1).fit(ratings, items=items, users=users)
    whole = trainer.predict([0, 0, 1, 1, 2, 2], [3, 4, 5, 6, 7, 8])
    table = trainer.predict([[0, 0, 1], [1, 2, 2]], [[3, 4, 5], [6, 7, 8]])
    np.testing.assert_allclose(table.reshape(-1), whole, rtol=1e-12)
    assert trainer.predict(0, 3) == pytest.approx(whole[0])
    assert trainer.predict([], []).shape == (0,)
    with pytest.raises(ModelError):
        trainer.predict([1, 2, 3], [1, 2])


def test_features_of_other_data_raise():
    ratings, items, users = small()
    trainer = ContextTrainer(FedLR(), rounds=1)
    with pytest.raises(SettingError, match=r"8 items .* 12"):
        trainer.fit(ratings, items=users)
    with pytest.raises(SettingError, match=r"12 users .* 8"):
        trainer.fit(ratings, items=items, users=items)


def test_untrained_model_and_unknown_numbers_raise():
    ratings, items, users = small()
    trainer = ContextTrainer(FedLR(), rounds=1)
    with pytest.raises(ModelError):
        trainer.predict([0], [0])
    with pytest.raises(ModelError):
        trainer.recommend(0)
    trainer.fit(ratings, items=items, users=users)
    with pytest.raises(ModelError, match="0 to 7"):
        trainer.predict([8], [0])
    with pytest.raises(ModelError, match="0 to 11"):
        trainer.predict([0], [-1])
    with pytest.raises(ModelError):
        trainer.recommend(0, k=0)
    with pytest.raises(ModelError):
        trainer.recommend(0, k=1.5)
    for user in (8, 1.5, [1, 2]):
        with pytest.raises(ModelError, match="user"):
            trainer.recommend(user)


def test_failed_fit_leaves_no_attributes():
    def stop(record):
        raise RuntimeError("enough")

    ratings, items, users = small()
    trainer = ContextTrainer(FedLR(), rounds=3).fit(ratings, items=items, users=users)
    trainer.callbacks = [stop]
    with pytest.raises(RuntimeError, match="enough"):
        trainer.fit(ratings, items=items, users=users)
    with pytest.raises(ModelError):
        trainer.predict([0], [0])


def test_features_in_the_place_of_test_ratings_warn():
    ratings, items, users = small()
    with pytest.warns(DeprecationWarning, match=r"1\.1"):
        old = ContextTrainer(FedLR(), rounds=2).fit(ratings, items, users)
    new = fitted(ContextTrainer(FedLR(), rounds=2), ratings, items, users)
    np.testing.assert_array_equal(old.parameters_, new.parameters_)


def test_missing_features_raise():
    with pytest.raises(SettingError, match="items"):
        ContextTrainer(FedLR(), rounds=2).fit(small()[0])
