"""`ItemWeights`: scores, new users, and files."""

from dataclasses import replace

import numpy as np
import pytest

from fedmf import Factors, ModelError
from fedmf.data.sets.simulated import simulate
from fedmf.ease import DPEase, ItemWeights
from fedmf.fcf import views
from fedmf.models.factors_file import kind_of

RATINGS = views(simulate(30, 40, 500, seed=3))


@pytest.fixture(scope="module")
def model():
    entropy = np.random.default_rng(7).bytes
    return DPEase(items=25, where="central", entropy=entropy).fit(RATINGS).model_


def table(model):
    pairs = np.divmod(np.arange(model.n_users * model.n_items), model.n_items)
    return model.predict(*pairs).reshape(model.n_users, model.n_items)


def test_scores_are_the_rated_items_times_the_weights(model):
    x = np.zeros((30, 40))
    x[RATINGS.users, RATINGS.items] = 1
    expected = np.zeros((30, 40))
    expected[:, model.kept] = x[:, model.kept] @ model.weights
    np.testing.assert_allclose(table(model), expected, atol=1e-12)
    assert (expected != 0).any(axis=0).sum() == 25
    assert (model.ranks, model.n_users, model.n_items) == (True, 30, 40)


def test_factors_have_the_same_scores(model):
    factors = model.factors()
    assert isinstance(factors, Factors)
    assert factors.ranks
    np.testing.assert_allclose(table(factors), table(model), atol=1e-12)
    np.testing.assert_array_equal(factors.seen(4), model.seen(4))


def test_new_user_with_the_items_of_a_user_has_their_scores(model):
    ids = RATINGS.item_ids[RATINGS.of_user(5)[0]]
    for new in (model.fold_in(ids[::-1]), model.fold_in(ids, np.ones(ids.size))):
        np.testing.assert_array_equal(table(new)[0], table(model)[5])
        assert new.n_users == 1
        np.testing.assert_array_equal(new.recommend(0, 5)[0], model.recommend(5, 5)[0])
    assert not table(model.fold_in([])).any()


def test_saved_model_is_loaded_as_it_was(model, tmp_path):
    path = tmp_path / "model.fedmf"
    model.save(path)
    assert kind_of(path) == "item weights"
    loaded = ItemWeights.load(path)
    np.testing.assert_array_equal(table(loaded), table(model))
    np.testing.assert_array_equal(loaded.item_ids, model.item_ids)
    with pytest.raises(ModelError):
        Factors.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"weights": np.ones((3, 3))},
        {"weights": np.full((25, 25), np.nan)},
        {"kept": np.arange(25, dtype=np.int32)[::-1]},
        {"kept": np.arange(20, 45, dtype=np.int32)},
        {"seen_indptr": np.zeros(3, np.int64)},
        {"seen_items": np.full(RATINGS.n_ratings, 40, np.int32)},
    ],
    ids=["shape", "nan", "order", "range", "users", "seen"],
)
def test_file_with_wrong_tables_raises(model, change, tmp_path):
    path = tmp_path / "model.fedmf"
    broken = object.__new__(ItemWeights)
    vars(broken).update(vars(model) | change)
    broken.save(path)
    with pytest.raises(ModelError):
        ItemWeights.load(path)


def test_tables_that_do_not_fit_raise(model):
    with pytest.raises(ModelError):
        replace(model, user_ids=model.user_ids[:-1])
    with pytest.raises(ModelError):
        replace(model, kept=model.kept.reshape(5, 5))


def test_contributions_of_the_rated_items_sum_to_the_score(model):
    scores = model.predict_all([4])[0]
    for item in range(model.n_items):
        parts = model.contributions(4, item)
        assert parts.shape == model.seen(4).shape
        assert parts.sum() == pytest.approx(scores[item])
    because, added = model.explain(4, int(scores.argmax()))
    assert np.isin(because, model.seen(4)).all()
    assert (added > 0).all()
