"""All estimators have one interface, and pickle and copy as their models do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import fedmf
from estimators import ESTIMATORS, fit
from fedmf.context import ContextTrainer
from fedmf.data.features import item_features
from fedmf.fcf import CF, FCF, FederatedCF, views
from fedmf.search.scoring import clone

RATINGS = fedmf.load("simulated")
RATINGS = RATINGS.take(RATINGS.users != 7)
FEATURES = item_features(RATINGS)


@cache
def fitted(name: str) -> Any:
    if name == "ties":
        return fedmf.Factors.of(
            np.ones((RATINGS.n_users, 2)), np.ones((RATINGS.n_items, 2)), RATINGS
        )
    if name == "head":
        return fedmf.LocalHead().fit(fitted("fedmf").model_, RATINGS)
    model = ESTIMATORS[name]()
    if isinstance(model, ContextTrainer):
        return model.fit(RATINGS, items=FEATURES)
    return fit(model, RATINGS)


@pytest.mark.parametrize("again", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy])  # noqa: S301
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_is_the_same_after_pickling(
    name: str, again: Callable[[Any], Any]
) -> None:
    model = ESTIMATORS[name]()
    assert list(again(model).get_params()) == list(model.get_params())
    for one in (fitted(name), fitted(name).model_):
        items, scores = again(one).recommend(3, k=5)
        np.testing.assert_array_equal(items, one.recommend(3, k=5)[0])
        np.testing.assert_array_equal(scores, one.recommend(3, k=5)[1])
    assert repr(again(fitted(name).model_)) == repr(fitted(name).model_)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    "user", ["ada", 1.0, True, None, [1], -1, 300, np.array(["3"])], ids=str
)
def test_what_is_no_number_of_a_user_raises(name: str, user: object) -> None:
    model: Any = fitted(name)
    for call in (
        model.recommend,
        model.seen,
        lambda one: model.explain(one, 0),
        lambda one: model.predict(one, 0),
    ):
        if isinstance(user, list) and call not in (model.recommend, model.seen):
            continue
        with pytest.raises(fedmf.ModelError):
            call(user)


@pytest.mark.parametrize("name", [*ESTIMATORS, "head", "ties"])
def test_a_recommender_gives_unseen_items_best_first(name: str) -> None:
    model = fitted(name)
    for user in (0, 7, 23):  # user 7 has no rating
        items, scores = model.recommend(user, model.n_items)
        assert (items.dtype, scores.dtype) == (np.int64, np.float64)
        unseen = np.setdiff1d(np.arange(RATINGS.n_items), RATINGS.of_user(user)[0])
        assert (np.sort(items) == unseen).all()
        guesses = model.predict(np.full(items.size, user), items)
        low, high = model.scale or (-np.inf, np.inf)
        assert (scores == np.clip(guesses, low, high)).all()
        best_first = (np.diff(guesses) < 0) | ((np.diff(guesses) == 0) & (np.diff(items) > 0))
        assert best_first.all()
        few = model.recommend(np.int8(user), 3)
        assert (few[0] == items[:3]).all()
    for wrong in (0, -1, 2.0, True, None):
        with pytest.raises(fedmf.ModelError):
            model.recommend(0, wrong)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_before_fit_raises(name: str) -> None:
    for call in ("predict", "recommend"):
        with pytest.raises(fedmf.ModelError, match="fit"):
            getattr(ESTIMATORS[name](), call)(0, 1)


FORMER = {fedmf.FedBPMF: "posterior_", fedmf.DPEase: "weights_", ContextTrainer: "recommender_"}


@pytest.mark.parametrize(
    "name", [name for name in ESTIMATORS if name not in ("fedmmf", "dpfedmf")]
)
def test_former_name_of_the_model_warns(name: str) -> None:
    model, former = fitted(name), FORMER.get(type(ESTIMATORS[name]()), "factors_")
    with pytest.warns(DeprecationWarning, match=r"1\.1"):
        assert getattr(model, former) is model.model_
    assert not hasattr(ESTIMATORS[name](), former)
    assert not hasattr(model, "other_")


@pytest.mark.parametrize(
    ("kind", "former"),
    [(CF, "epochs"), (FCF, "epochs"), (FederatedCF, "epochs"), (fedmf.FedBPMF, "sweeps")],
)
def test_former_name_of_the_rounds_warns(kind: Any, former: str) -> None:
    with pytest.warns(DeprecationWarning, match=r"1\.1"):
        model = kind(**{former: 22})
    assert (model.rounds, "rounds" in model.get_params()) == (22, True)
    for new, change in (
        (23, model.set_params),
        (24, lambda **to: setattr(model, *to.popitem())),
    ):
        with pytest.warns(DeprecationWarning, match=r"1\.1"):
            change(**{former: new})
        with pytest.warns(DeprecationWarning, match=r"1\.1"):
            assert getattr(model, former) == model.rounds == new


@pytest.mark.parametrize("name", ["cf", "fcf", "federated cf", "fedlr"])
def test_former_function_of_progress_is_called(name: str) -> None:
    done: list[tuple[str, int, int]] = []
    settings = ESTIMATORS[name]().set_params(rounds=2).get_params(deep=False)
    del settings["callbacks"]
    with pytest.warns(DeprecationWarning, match=r"1\.1"):
        model = type(ESTIMATORS[name]())(progress=lambda *of: done.append(of), **settings)
    model = clone(model.set_params(rounds=3)).set_params(rounds=2)
    model.fit(views(RATINGS), **({"items": FEATURES} if name == "fedlr" else {}))
    steps = getattr(model, "steps", 1)
    assert done == [("rounds", number, 2 * steps) for number in range(1, 2 * steps + 1)]
    assert [one.round for one in model.history_] == [number for _, number, _ in done]


@pytest.mark.parametrize("name", ["cf", "dpease", "fedlr"])
def test_start_of_an_estimator_that_does_not_continue_raises(name: str) -> None:
    start = fitted("cf").model_
    with pytest.raises(fedmf.SettingError, match="start"):
        ESTIMATORS[name]().fit(views(RATINGS), start=start)
