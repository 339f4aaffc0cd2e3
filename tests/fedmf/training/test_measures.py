"""Ranking measures of every recommender, and the choice of the first items."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from fedmf.bayes import FedBPMF
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import DataError, ModelError
from fedmf.fcf import CF, views
from fedmf.masks import FedMMF, LocalHead, MeanMask
from fedmf.models import FedMF
from fedmf.training import History, Ranking, RoundRecord, Trainer, mae, ranking, rmse
from fedmf.training.measures import best

PARTS = random_split(simulate(30, 40, 500, seed=3), seed=0)


def recommenders():
    trainer = Trainer(FedMF(k=3), rounds=2).fit(PARTS.train)
    posterior = FedBPMF(k=2, rounds=4, burn_in=1).fit(PARTS.train).model_
    masked = FedMMF(MeanMask(), Trainer(FedMF(k=3), rounds=2)).fit(PARTS.train)
    head = LocalHead().fit(trainer.model_, PARTS.train)
    return {
        "Trainer": trainer,
        "Factors": trainer.model_,
        "other scale": replace(trainer.model_, scale=(0.0, 100.0)),
        "Posterior": posterior,
        "FedMMF": masked,
        "Combined": head,
        "CF": CF(rounds=2).fit(views(PARTS.train)),
    }


RECOMMENDERS = recommenders()


@pytest.mark.parametrize("name", RECOMMENDERS)
def test_ranking_judges_what_recommend_returns(name):
    model = RECOMMENDERS[name]
    precision, shown = [], set()
    for user in np.flatnonzero(np.diff(PARTS.test.indptr)):
        first = set(model.recommend(int(user), 7)[0].tolist())
        precision.append(len(first & set(PARTS.test.of_user(user)[0].tolist())) / 7)
        shown |= first
    found = ranking(model, PARTS.test, PARTS.train, k=7)
    assert isinstance(found, Ranking)
    assert found.precision == pytest.approx(np.mean(precision))
    assert found.coverage == len(shown) / 40


@pytest.mark.parametrize("name", RECOMMENDERS)
def test_predictions_of_all_items_are_those_of_pairs(name):
    model, users = RECOMMENDERS[name], np.array([4, 0, 29])
    found = model.predict_all(users)
    assert (found.dtype, found.shape) == (np.float64, (3, 40))
    for row, user in zip(found, users, strict=True):
        pairs = model.predict(np.full(40, user), np.arange(40))
        np.testing.assert_allclose(row, pairs, rtol=1e-12)
        assert name == "Posterior" or (row == pairs).all()  # of equal items, too
    for wrong in ([30], [-1], [0.5]):
        with pytest.raises(ModelError):
            model.predict_all(wrong)


few = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0])


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2), elements=few), st.data())
def test_best_is_the_start_of_a_stable_sort(scores, data):
    k = data.draw(st.integers(1, scores.shape[1]))
    assert (best(scores, k) == np.argsort(-scores, axis=1, kind="stable")[:, :k]).all()


def test_errors_of_known_differences():
    ratings, predictions = np.array([4.0, 2.0, 5.0]), np.array([3.0, 4.0, 5.0])
    assert rmse(ratings, predictions) == pytest.approx((5 / 3) ** 0.5)
    assert mae(ratings, predictions) == pytest.approx(1.0)


@pytest.mark.parametrize("error", [rmse, mae])
def test_empty_or_unequal_shapes_raise(error):
    with pytest.raises(DataError, match=r"\(0,\)"):
        error(np.array([]), np.array([]))
    with pytest.raises(DataError, match=r"\(2,\) .*\(1,\)"):
        error(np.array([1.0]), np.array([1.0, 2.0]))


def test_history_is_json_and_has_a_last_round():
    history = History((RoundRecord(round=1, cohort=60), RoundRecord(round=2, cohort=60)))
    saved = json.loads(json.dumps(history.as_dict(), allow_nan=False))
    assert [one["round"] for one in saved["rounds"]] == [1, 2]
    assert (history.last.round, len(history), "rounds 2" in repr(history)) == (2, 2, True)
    with pytest.raises(ModelError):
        _ = History().last
