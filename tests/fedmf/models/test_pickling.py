"""All estimators have one interface, and pickle and copy as their models do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache
from inspect import Parameter, signature
from typing import Any

import numpy as np
import pytest

from fedmf import (
    DPEase,
    FedALS,
    FedBPMF,
    FedMF,
    FedMMF,
    MeanMask,
    ModelError,
    OneShotSum,
    PlainSum,
    SecAggSum,
    SettingError,
    Trainer,
    load,
)
from fedmf.context import ContextTrainer, FedFM, FedLR, FedNN
from fedmf.data.features import item_features
from fedmf.fcf import CF, FCF, FederatedCF, Implicit, views

RATINGS = load("simulated")
WIDE = PlainSum(clip=4096.0, fractional_bits=32)
FEATURES = item_features(RATINGS)


def context(model: Any) -> Any:
    return ContextTrainer(model, rounds=1)


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "cf": lambda: CF(Implicit(k=2), rounds=1),
    "fcf": lambda: FCF(Implicit(k=2), rounds=1),
    "federated cf": lambda: FederatedCF(Implicit(k=2), WIDE, rounds=1),
    "fedmf": lambda: Trainer(FedMF(k=2), rounds=1),
    "secagg": lambda: Trainer(FedMF(k=2), SecAggSum(), rounds=1, cohort=10),
    "one-shot": lambda: Trainer(FedMF(k=2), OneShotSum(), rounds=1, cohort=10),
    "fedals": lambda: Trainer(FedALS(k=2), PlainSum(clip=64.0), rounds=1),
    "fedbpmf": lambda: FedBPMF(k=2, rounds=2, burn_in=1),
    "fedmmf": lambda: FedMMF(MeanMask(), Trainer(FedMF(k=2), rounds=1)),
    "dpease": lambda: DPEase(
        PlainSum(clip=64.0), epsilon=None, reveals_profiles_to_peeling=True
    ),
    "fedlr": lambda: context(FedLR()),
    "fedfm": lambda: context(FedFM(k=2)),
    "fednn": lambda: context(FedNN()),
}


@cache
def fitted(name: str) -> Any:
    model = ESTIMATORS[name]()
    if isinstance(model, ContextTrainer):
        return model.fit(RATINGS, items=FEATURES)
    views_only = isinstance(model, CF | FCF | FederatedCF | DPEase)
    return model.fit(views(RATINGS) if views_only else RATINGS)


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


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    "user",
    ["ada", b"ada", 1.0, True, None, [1], -1, 300, np.array(["3"]), float("nan")],
    ids=str,
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
        with pytest.raises(ModelError):
            call(user)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fit_takes_the_same_first_arguments(name: str) -> None:
    found = signature(type(ESTIMATORS[name]()).fit).parameters
    assert [*found][1:3] == ["train", "test"]
    assert (found["test"].default, found["start"].default) == (None, None)
    assert found["start"].kind is Parameter.KEYWORD_ONLY


FORMER = {FedBPMF: "posterior_", DPEase: "weights_", ContextTrainer: "recommender_"}


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "fedmmf"])
def test_former_name_of_the_model_warns(name: str) -> None:
    model, former = fitted(name), FORMER.get(type(ESTIMATORS[name]()), "factors_")
    with pytest.warns(DeprecationWarning, match=r"1\.1"):
        assert getattr(model, former) is model.model_
    assert not hasattr(ESTIMATORS[name](), former)
    assert not hasattr(model, "other_")


@pytest.mark.parametrize(
    ("kind", "former"),
    [(CF, "epochs"), (FCF, "epochs"), (FederatedCF, "epochs"), (FedBPMF, "sweeps")],
)
def test_former_name_of_the_rounds_warns(kind: Any, former: str) -> None:
    with pytest.warns(DeprecationWarning, match=r"1\.1"):
        model = kind(**{former: 22})
    assert (model.rounds, "rounds" in model.get_params()) == (22, True)
    with pytest.warns(DeprecationWarning, match=r"1\.1"):
        assert model.set_params(**{former: 23}) is model
    with pytest.warns(DeprecationWarning, match=r"1\.1"):
        assert getattr(model, former) == 23


@pytest.mark.parametrize("name", ["cf", "fcf", "federated cf", "fedlr"])
def test_former_function_of_progress_is_called(name: str) -> None:
    done: list[tuple[str, int, int]] = []
    settings = ESTIMATORS[name]().set_params(rounds=2).get_params(deep=False)
    del settings["callbacks"]
    with pytest.warns(DeprecationWarning, match=r"1\.1"):
        model = type(ESTIMATORS[name]())(progress=lambda *of: done.append(of), **settings)
    model.fit(views(RATINGS), **({"items": FEATURES} if name == "fedlr" else {}))
    steps = getattr(model, "steps", 1)
    assert done == [("rounds", number, 2 * steps) for number in range(1, 2 * steps + 1)]
    assert [one.round for one in model.history_] == [number for _, number, _ in done]


@pytest.mark.parametrize("name", ["cf", "dpease", "fedlr"])
def test_start_of_an_estimator_that_does_not_continue_raises(name: str) -> None:
    start = fitted("cf").model_
    with pytest.raises(SettingError, match="start"):
        ESTIMATORS[name]().fit(views(RATINGS), start=start)
