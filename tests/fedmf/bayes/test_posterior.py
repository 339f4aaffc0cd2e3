"""The trained model: its file, new users, new items and export."""

import io
from dataclasses import replace

import numpy as np
import pytest

from fedmf import Factors, FedBPMF, ModelError, Posterior
from fedmf.bayes.sample import Scaling
from fedmf.data.sets.simulated import simulate
from fedmf.models.factors_file import HEADER, kind_of, write_tables

RATINGS = simulate(30, 40, 500, seed=3)


@pytest.fixture(scope="module")
def model():
    return FedBPMF(k=2, rounds=8, burn_in=2, min_raters=1).fit(RATINGS).model_


def test_saved_model_is_loaded_unchanged(model, tmp_path):
    path = tmp_path / "model.fedmf"
    model.save(path)
    assert kind_of(path) == "posterior"
    loaded = Posterior.load(path)
    users, items = np.arange(30), np.arange(30)
    found, saved = (one.predict(users, items, return_std=True) for one in (loaded, model))
    np.testing.assert_array_equal(found, saved)
    assert (loaded.recommend(3)[0] == model.recommend(3)[0]).all()
    with pytest.raises(ModelError):
        Factors.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("items", lambda table: table[:, :-1]),
        ("noise", lambda table: table[:-1]),
        ("users", lambda table: np.full_like(table, np.nan)),
        ("seen_items", lambda table: table + 1000),
        ("scale", lambda table: table[::-1]),
        ("user_ids", lambda table: table.astype(float)),
        ("embedding", lambda table: table[:-1]),
        ("weights", lambda table: -table),
        ("noise", lambda table: 0 * table),
        ("mean", lambda table: table * np.nan),
        ("embedding", lambda table: table * np.nan),
        ("feature_width", lambda table: table[:-1]),
        ("feature_width", lambda table: -table),
    ],
)
def test_inconsistent_tables_raise(model, tmp_path, name, change):
    path = tmp_path / "model.fedmf"
    model.save(path)
    with np.load(_body(path)) as archive:
        tables = {one: archive[one] for one in archive.files if one != "kind"}
    changed = np.asarray(change(tables[name]), order="C")
    write_tables(path, "posterior", tables | {name: changed})
    with pytest.raises(ModelError):
        Posterior.load(path)


def _body(path):
    return io.BytesIO(path.read_bytes()[HEADER.size :])


def test_predictions_have_the_shape_of_the_pairs(model):
    mean, std = model.predict([[0, 1], [2, 3]], [[0, 1], [2, 3]], return_std=True)
    assert mean.shape == std.shape == (2, 2)
    assert (std > 0).all()
    wide = replace(model, public_scale=(0, 8))  # twice as wide as from 1 to 5
    _, twice = wide.predict([[0, 1], [2, 3]], [[0, 1], [2, 3]], return_std=True)
    np.testing.assert_allclose(twice, 2 * std)
    assert model.predict([], []).shape == (0,)
    with pytest.raises(ModelError):
        model.predict([30], [0])


def test_new_user_with_the_ratings_of_a_user_is_predicted_alike(model):
    user = int(np.argmax(np.diff(RATINGS.indptr)))
    items, values = RATINGS.of_user(user)
    new = model.fold_in(RATINGS.item_ids[items], values)
    assert (new.n_users, new.n_items) == (1, 40)
    rest = np.setdiff1d(np.arange(40), items)
    close = new.predict(np.zeros(rest.size, int), rest)
    known = model.predict(np.full(rest.size, user), rest)
    assert np.abs(close - known).mean() < 0.5
    assert np.intersect1d(new.recommend(0, 40)[0], items).size == 0
    assert (model.fold_in(RATINGS.item_ids[items], values).predict(0, 0)) == new.predict(0, 0)
    apart = replace(model, embedding=-model.embedding).fold_in(RATINGS.item_ids[items], values)
    assert (apart.predict(0, 0)) != new.predict(0, 0)
    nobody = model.fold_in([], [])
    assert np.isfinite(nobody.predict(0, 0))


def test_user_without_ratings_has_the_mean_rating_over_rated_pairs():
    """In the training as after it; the mean user's own factors give less, as users choose."""
    ratings = simulate(200, 60, 4000, seed=5)
    train = ratings.take(ratings.users >= 20)
    model = FedBPMF(k=2, rounds=40, burn_in=10).fit(train).model_
    new, absent = model.fold_in([], []).predict_all([0]), model.predict_all(range(20))
    for guesses in (new, absent):
        rated = guesses.mean(axis=0)[train.items]
        assert rated.mean() == pytest.approx(train.values.mean(), abs=0.05)


def test_factors_of_full_rank_predict_as_the_posterior(model):
    """Six draws of rank 2 have an average of rank 12 at most."""
    users, items = np.arange(30), np.arange(10, 40)
    exact = model.factors(12)
    np.testing.assert_allclose(exact.predict(users, items), model.predict(users, items))
    assert model.factors().k == 4  # two factors, and both biases
    assert exact.recommend(4)[0].tolist() == model.recommend(4)[0].tolist()


def test_columns_of_one_value_count_nothing():
    scaling = Scaling.of(np.array([[1.0, 5.0], [3.0, 5.0]]))
    assert scaling.applied(np.array([[2.0, 9.0]])).tolist() == [[0.0, 0.0]]


def test_tables_that_do_not_fit_raise(model):
    few = model.user_ids[:-1]
    for change in ({"samples": ()}, {"user_ids": few}, {"public_scale": (5, 1)}):
        with pytest.raises(ModelError):
            replace(model, **change)
