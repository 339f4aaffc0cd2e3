"""The one interface of all recommenders: fit, predict and recommend."""

from __future__ import annotations

import numpy as np
import pytest

from fedmf.context import ContextTrainer, FedLR
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.errors import ModelError
from fedmf.fcf import CF, FCF, FederatedCF, Implicit
from fedmf.masks import FedMMF, LocalHead, MeanMask
from fedmf.models import Factors, FedMF
from fedmf.models.recommender import Estimator, Recommender
from fedmf.training import Trainer

RATINGS = simulate(24, 40, 300, seed=5)
SILENT = simulate(24, 40, 300, seed=5).take(RATINGS.users != 7)  # user 7 has no rating
IMPLICIT = Implicit(k=3)
ESTIMATORS = [
    Trainer(FedMF(k=3), rounds=2),
    FedMMF(MeanMask(), Trainer(FedMF(k=3), rounds=2)),
    ContextTrainer(FedLR(), rounds=2),
    CF(IMPLICIT, rounds=2),
    FCF(IMPLICIT, rounds=1, steps=2),
    FederatedCF(IMPLICIT, rounds=2),
]


def named(made):
    return type(made).__name__


def fitted(estimator):
    if isinstance(estimator, ContextTrainer):
        return estimator.fit(SILENT, items=item_features(SILENT))
    return estimator.fit(SILENT)


def recommenders():
    yield from map(fitted, ESTIMATORS)
    trainer = ESTIMATORS[0]
    yield trainer.model_
    yield LocalHead().fit(trainer.model_, SILENT)
    yield Factors.of(np.ones((24, 2)), np.ones((40, 2)), SILENT)  # nothing but ties


@pytest.fixture(scope="module", params=range(len(ESTIMATORS) + 3))
def recommender(request):
    return list(recommenders())[request.param]


def test_recommender_gives_unseen_items_best_first(recommender):
    assert isinstance(recommender, Recommender)
    assert (recommender.n_users, recommender.n_items) == (24, 40)
    for user in (0, 7, 23):
        items, scores = recommender.recommend(user, 40)
        assert (items.dtype, scores.dtype) == (np.int64, np.float64)
        unseen = np.setdiff1d(np.arange(40), SILENT.of_user(user)[0])
        assert (np.sort(items) == unseen).all()
        guesses = recommender.predict(np.full(items.size, user), items)
        low, high = recommender.scale or (-np.inf, np.inf)
        assert (scores == np.clip(guesses, low, high)).all()
        best_first = (np.diff(guesses) < 0) | ((np.diff(guesses) == 0) & (np.diff(items) > 0))
        assert best_first.all()
        few = recommender.recommend(np.int8(user), 3)
        assert (few[0] == items[:3]).all()
        assert (few[1] == scores[:3]).all()


@pytest.mark.parametrize("wrong", [-1, 24, 1.0, True, [3], "3", None])
def test_recommender_of_an_unknown_user_raises(recommender, wrong):
    with pytest.raises(ModelError, match="user"):
        recommender.recommend(wrong)


@pytest.mark.parametrize("wrong", [0, -1, 2.0, True, None])
def test_recommender_of_no_items_raises(recommender, wrong):
    with pytest.raises(ModelError, match="k = "):
        recommender.recommend(0, wrong)


@pytest.mark.parametrize(
    ("users", "items"), [([0, 1], [0]), ([24], [0]), ([0], [40]), ([-1], [0]), ([0.0], [0])]
)
def test_predict_of_unknown_pairs_raises(recommender, users, items):
    with pytest.raises(ModelError):
        recommender.predict(users, items)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_estimator_before_fit_raises(estimator):
    fresh = type(estimator)(**estimator.get_params(deep=False))
    for call in (lambda: fresh.predict([0], [0]), lambda: fresh.recommend(0)):
        with pytest.raises(ModelError, match="fit"):
            call()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_fit_adds_attributes_with_an_underscore_only(estimator):
    assert isinstance(estimator, Estimator)
    fresh = type(estimator)(**estimator.get_params(deep=False))
    before = dict(vars(fresh))
    assert fitted(fresh) is fresh
    added = set(vars(fresh)) - set(before)
    assert added
    assert all("_" in (name[0], name[-1]) for name in added)
    assert {name: vars(fresh)[name] for name in before} == before
