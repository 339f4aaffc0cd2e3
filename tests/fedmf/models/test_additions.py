"""New users and items of trained factors, and exported factors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedmf import Factors, FedALS, FedBPMF, Trainer, load
from fedmf.data import Features
from fedmf.data.splits import random_split
from fedmf.errors import ModelError, SettingError
from fedmf.fcf import CF, FederatedCF, Implicit, views
from fedmf.models.export import export, public_factors

PARTS = random_split(load("simulated"), seed=0)


@pytest.fixture(scope="module")
def model():
    return Trainer(FedALS(k=4), rounds=8).fit(PARTS.train).model_


def rated(user):
    items, values = PARTS.train.of_user(user)
    return PARTS.train.item_ids[items], values


def test_new_user_is_predicted_better_than_by_the_mean_user(model):
    """Fifty users folded in from their training ratings, judged on their test ratings."""
    errors = {"own": [], "mean": []}
    for user in range(50):
        items, values = PARTS.test.of_user(user)
        for name, given in (("own", rated(user)), ("mean", ([], []))):
            one = model.fold_in(*given)
            guesses = one.predict(np.zeros(items.size, int), items)
            errors[name] += list((guesses - values) ** 2)
    assert np.mean(errors["own"]) < 0.95 * np.mean(errors["mean"])


def test_columns_that_all_users_share_stay(model):
    p = np.column_stack((np.ones(model.n_users), model.user_factors))
    q = np.column_stack((np.full(model.n_items, 0.5), model.item_factors))
    biased = Factors.of(p, q, PARTS.train)
    assert biased.fold_in(*rated(0)).user_factors[0, 0] == 1.0


def test_new_implicit_user_takes_the_settings_of_the_file(tmp_path):
    """A film that is left out of the training, as it has few raters, adds no confidence."""
    model = Implicit(k=3, reg=0.5, alpha=5.0, power=0.5)
    trained = FederatedCF(model, rounds=3, min_raters=30).fit(views(PARTS.train)).model_
    assert not trained.item_factors.any(axis=1).all()
    trained.save(tmp_path / "model.fedmf")
    items, values = rated(7)
    again = Factors.load(tmp_path / "model.fedmf").fold_in(items, np.ones(values.size))
    np.testing.assert_allclose(again.user_factors[0], trained.user_factors[7])
    same = trained.fold_in(items, np.ones(values.size), reg=0.5, alpha=5.0)
    assert (same.user_factors == again.user_factors).all()
    assert (
        same.user_factors != trained.fold_in(items, np.ones(values.size), reg=9.0).user_factors
    ).any()
    with pytest.raises(ModelError):
        trained.fold_in(items[:1], [-1.0])
    with pytest.raises(ModelError, match="must be finite"):
        trained.fold_in(items[:1], [np.nan])
    with pytest.raises(ModelError, match="one number for each item, 1 in all"):
        trained.fold_in(items[:1], [1.0, 1.0])
    assert not trained.fold_in([], []).user_factors.any()  # not centred


@pytest.mark.parametrize("power", [0.0, 0.5])
def test_views_of_a_user_explain_the_whole_score(power):
    model = CF(Implicit(k=3, reg=0.5, alpha=5.0, power=power), rounds=3).fit(views(PARTS.train))
    for item in range(0, 500, 50):
        parts = model.contributions(7, item)
        assert parts.sum() == pytest.approx(model.predict([7], [item])[0])
        because, most = model.explain(7, item, n=2)
        order = np.argsort(-parts)[:2]
        assert because.tolist() == model.seen(7)[order].tolist()
        assert most.tolist() == parts[order].tolist()


def test_each_part_is_what_the_view_adds():
    """With W fixed, a score is linear in the preferences of the rated items."""
    trained = CF(Implicit(k=3, alpha=4.0), rounds=3).fit(views(PARTS.train)).model_
    y, seen = trained.item_factors, trained.seen(7)
    w = np.linalg.inv(y.T @ y + 4.0 * y[seen].T @ y[seen] + np.eye(3))
    meant = 5.0 * y[seen] @ w @ y[20]
    np.testing.assert_allclose(trained.contributions(7, 20), meant)


@pytest.mark.parametrize("scale", [None, (1.0, 5.0), (0.0, 100.0)])
def test_ratings_of_a_user_explain_the_new_row(model, scale):
    """The parts sum to the difference from a user without ratings."""
    wide = replace(model, scale=scale)
    items, values = rated(3)
    given = (values - 1) * 25 if scale == (0.0, 100.0) else values
    parts = wide.contributions(3, 20, given)
    own, nobody = (wide.fold_in(*one) for one in ((items, given), ([], [])))
    found = own.predict([0], [20])[0] - nobody.predict([0], [20])[0]
    assert parts.sum() == pytest.approx(found)
    because, most = wide.explain(3, 20, 500, given)
    assert (most > 0).all()
    assert because.size == (parts > 0).sum()
    assert nobody.contributions(0, 3, []).size == 0


@pytest.mark.parametrize("arguments", [(3, 20), (3, 20, 2, [3.0]), (3, 20, 0), (3, 500)])
def test_explanations_of_wrong_arguments_raise(model, arguments):
    with pytest.raises(ModelError):
        model.explain(*arguments)


def test_model_that_is_no_sum_raises():
    with pytest.raises(ModelError):
        FedBPMF(k=2, rounds=4, burn_in=1).fit(PARTS.train).explain(0, 1)


@pytest.mark.parametrize(
    ("items", "ratings"), [([10**9], [3]), ([1, 1], [3, 3]), ([1, 2], [3]), ([1], [np.nan])]
)
def test_wrong_ratings_of_a_new_user_raise(model, items, ratings):
    with pytest.raises(ModelError):
        model.fold_in(items, ratings)
    with pytest.raises(SettingError):
        model.fold_in([1], [3], reg=0)


def linear(n, seed):
    return Features(np.random.default_rng(seed).normal(size=(n, 2)), ("a", "b"))


def test_new_items_follow_from_their_features(model):
    """Rows of Q that are linear in the features are found again."""
    known, new = linear(model.n_items, 0), linear(3, 1)
    weights = np.array([[1.0, 0, 2, 0], [0, -1, 0, 3]])
    made = Factors.of(model.user_factors, known.matrix @ weights + 1, PARTS.train)
    more = made.with_items([9001, 9002, 9003], new, known, penalty=1e-9)
    np.testing.assert_allclose(more.item_factors[-3:], new.matrix @ weights + 1, rtol=1e-6)
    assert more.item_ids[-3:].tolist() == [9001, 9002, 9003]
    assert set(range(model.n_items, model.n_items + 3)) <= set(more.recommend(0, 10**6)[0])


@pytest.mark.parametrize("rated", [0, 3])
def test_new_items_after_a_new_user_raise(model, rated):
    """The link would be that of the user's own items, or of none."""
    guest = model.fold_in(model.item_ids[:rated], np.full(rated, 4.0))
    with pytest.raises(ModelError, match="before fold_in"):
        guest.with_items([9001], linear(1, 1), linear(model.n_items, 0))


@pytest.fixture(scope="module")
def posterior():
    sampler = FedBPMF(k=2, rounds=4, burn_in=1)
    return sampler.fit(PARTS.train, None, linear(PARTS.train.n_items, 0)).model_


@pytest.mark.parametrize("kind", ["model", "posterior"])
def test_new_items_have_one_form_for_all_models(kind, request):
    """The same call adds items to factors and to draws; a new user rates them by their ids."""
    one = request.getfixturevalue(kind)
    known, new = linear(one.n_items, 0), linear(2, 1)
    more = one.with_items([9001, 9002], new, known)
    assert (more.n_items, more.item_ids[-2:].tolist()) == (one.n_items + 2, [9001, 9002])
    users, items = PARTS.test.users[:9], PARTS.test.items[:9]
    np.testing.assert_array_equal(more.predict(users, items), one.predict(users, items))
    guest = more.fold_in([9001, int(one.item_ids[0])], [5, 4])
    assert guest.n_users == 1
    assert 9001 not in guest.item_ids[guest.recommend(0, guest.n_items)[0]]
    assert 9002 in guest.item_ids[guest.recommend(0, guest.n_items)[0]]


@pytest.mark.parametrize("kind", ["model", "posterior"])
def test_wrong_new_items_raise(kind, request):
    model = request.getfixturevalue(kind)
    known, new = linear(model.n_items, 0), linear(1, 1)
    first = int(model.item_ids[0])
    for ids, features, known_ in ((9001, new, known), ([9001], new.matrix, known)):
        with pytest.raises((ModelError, SettingError)):
            model.with_items(ids, features, known_)
    for ids, features, known_ in [
        ([first], new, known),
        (["x"], new, known),
        ([9001, 9002], new, known),
        ([9001], new, linear(4, 0)),
        ([9001], Features(new.matrix, ("a", "c")), known),
    ]:
        with pytest.raises(ModelError):
            model.with_items(ids, features, known_)


@pytest.mark.parametrize("scale", [None, (1.0, 5.0), (0.5, 4.0), (0.0, 100.0)])
def test_products_of_exported_factors_are_predictions(model, scale, tmp_path):
    one = Factors.of(model.user_factors, model.item_factors, PARTS.train, scale=scale)
    p, q = public_factors(one)
    users, items = PARTS.test.users, PARTS.test.items
    wanted = one.predict(users, items)
    np.testing.assert_allclose((p[users] * q[items]).sum(axis=1), wanted)
    one.export(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["user_factors"], p)
        np.testing.assert_array_equal(found["item_ids"], one.item_ids)
    one.export(tmp_path / "als.npz", "implicit")
    with np.load(tmp_path / "als.npz", allow_pickle=False) as found:
        assert {name: table.dtype for name, table in found.items()} == {
            "user_factors": np.float32,
            "item_factors": np.float32,
        }
        np.testing.assert_allclose(found["item_factors"], q, rtol=1e-6)
    with np.load(tmp_path / "als.ids.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["user_ids"], one.user_ids)


def test_parquet_has_ids_and_factors(model, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    model.export(tmp_path / "model.parquet", "parquet")
    table = parquet.read_table(tmp_path / "model.parquet").to_pydict()
    assert table["side"] == ["user"] * model.n_users + ["item"] * model.n_items
    assert table["id"][: model.n_users] == [str(one) for one in model.user_ids]
    np.testing.assert_array_equal(table["factors"][0], model.user_factors[0])


def test_wrong_exports_raise(model, tmp_path):
    for name, form in (("model", "csv"), ("model.csv", "npz"), ("model.npz", "parquet")):
        with pytest.raises(SettingError):
            export(model, tmp_path / name, form)
    assert export(model, tmp_path / "als.v2", "implicit").name == "als.v2.npz"
    with pytest.raises(ModelError):
        export(model, tmp_path / "none" / "model.npz", "npz")
