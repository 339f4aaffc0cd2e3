"""Ranking measures of every recommender, and the choice of the first items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from fedmf.bayes import FedBPMF
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split, time_split
from fedmf.errors import ModelError
from fedmf.fcf import CF, views
from fedmf.masks import FedMMF, LocalHead, MeanMask
from fedmf.models import Factors, FedMF
from fedmf.training import Ranking, Trainer, ranking
from fedmf.training.measures import best

PARTS = random_split(simulate(30, 40, 500, seed=3), seed=0)
ONES = np.ones((PARTS.train.n_users, 1))


def scored(scores):
    """Return factors that predict scores[i] for every user."""
    return Factors.of(ONES, np.array(scores, dtype=np.float64)[:, None], PARTS.train)


def of_user(user, items):
    """Return test ratings of one user."""
    indptr = np.where(np.arange(PARTS.test.n_users + 1) > user, len(items), 0)
    return replace(
        PARTS.test,
        indptr=indptr,
        items=np.array(items, dtype=np.int32),
        values=np.full(len(items), 3.0),
        times=np.zeros(len(items), dtype=np.int64),
    )


def test_gain_hits_and_coverage_are_as_by_hand():
    """The user's first four unrated items are 1st to 4th; the 2nd and 4th are to be found."""
    fresh = np.setdiff1d(np.arange(40), PARTS.train.of_user(5)[0])
    test = of_user(5, [int(fresh[1]), int(fresh[3]), int(fresh[9])])
    found = ranking(scored(-np.arange(40)), test, PARTS.train, k=4)
    gain = 1 / np.log2(3) + 1 / np.log2(5)
    most = 1 + 1 / np.log2(3) + 1 / np.log2(4)  # all three of them, first
    assert found.ndcg == pytest.approx(gain / most)
    assert found.hit_rate == 1
    assert found.coverage == pytest.approx(4 / 40)
    assert (found.precision, found.recall) == pytest.approx((2 / 4, 2 / 3))


def test_gain_of_a_full_list_is_1():
    """There are more test items than places."""
    fresh = np.setdiff1d(np.arange(40), PARTS.train.of_user(5)[0])[:6]
    found = ranking(scored(-np.arange(40)), of_user(5, fresh.tolist()), PARTS.train, k=3)
    assert (found.ndcg, found.precision) == (pytest.approx(1), 1)


def test_user_without_a_hit_has_no_hit_and_no_gain():
    fresh = np.setdiff1d(np.arange(40), PARTS.train.of_user(5)[0])
    found = ranking(scored(-np.arange(40)), of_user(5, [int(fresh[-1])]), PARTS.train, k=3)
    assert (found.ndcg, found.hit_rate) == (0, 0)


def test_coverage_counts_no_hidden_item():
    """A user who has rated all but one item is recommended that one."""
    others = np.delete(np.arange(40), 7).tolist()
    found = ranking(scored(np.zeros(40)), of_user(5, [7]), of_user(5, others), k=10)
    assert (found.coverage, found.precision) == (1 / 40, 1 / 10)


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


def test_model_is_measured_on_its_future():
    parts = time_split(simulate(30, 40, 500, seed=3))
    found = ranking(CF(rounds=2).fit(views(parts.train)), parts.test, parts.train)
    assert 0 < found.ndcg < 1
