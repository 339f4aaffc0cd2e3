"""The choice of λ on held-out views, popularity as its floor, and the users without views."""

from __future__ import annotations

import numpy as np
import pytest

from benches.papers.simulated_views import simulate_views
from fedmf import OneShotSum, PaillierSum, PlainSum, SecAggSum
from fedmf.aggregate import RoundAborted
from fedmf.data import from_triples
from fedmf.data.splits import random_split, user_split
from fedmf.errors import DataError, SettingError
from fedmf.fcf import CF, FCF, FederatedCF, Implicit, tuned
from fedmf.fcf.choice import EPOCHS, HELD, REGS, choose
from fedmf.fcf.confidence import POPULAR
from fedmf.fcf.moments import VIEWS
from fedmf.models import Factors
from fedmf.training import ranking
from fedmf.training.measures import Popularity

SUMS = {
    "plain": PlainSum,
    "secagg": SecAggSum,
    "one-shot": OneShotSum,
    "paillier": lambda **how: PaillierSum(trust="key holder", bits=2048, **how),
}


def popular(n_users=200, n_items=60, seed=0):
    """Views that follow popularity alone: nobody has any taste."""
    rng = np.random.default_rng(seed)
    chances = 0.5 * np.exp(-np.arange(n_items) / 12)
    users, items = np.nonzero(rng.random((n_users, n_items)) < chances)
    return from_triples(users, items, np.ones(users.size), scale=(0, 1))


def quick(aggregation=None, **settings):
    return FederatedCF(tuned(4), aggregation, **{"rounds": 2, "block": 2, **settings})


@pytest.mark.parametrize(
    "name",
    [*list(SUMS)[:-1], pytest.param("paillier", marks=pytest.mark.large)],  # real keys
)
def test_choice_and_blocks_are_the_same_under_every_sum(name):
    """One user has no views, and others drop out."""
    ratings = simulate_views(16, 32, seed=1)
    ratings = ratings.take(ratings.users != 3)
    plain, other = (
        quick(kind(**VIEWS), dropout=0.02, min_raters=2).fit(ratings)
        for kind in (PlainSum, SUMS[name])
    )
    digests = [[(one.digest, one.count_digest) for one in of.history_] for of in (plain, other)]
    assert digests[0] == digests[1]
    assert len(digests[0]) == 2 * sum(EPOCHS) + len(REGS) + 4 == plain.expected
    assert any(one.survivors < one.cohort for one in plain.history_)
    assert plain.model_.item_factors.tobytes() == other.model_.item_factors.tobytes()
    assert plain.model_.implicit == other.model_.implicit


def test_training_after_the_choice_is_one_with_that_number():
    ratings = simulate_views(60, 40, seed=1)
    found = quick().fit(ratings).model_
    assert found.implicit.reg in (POPULAR, *REGS)
    set_by_hand = tuned(4).set_params(reg=found.implicit.reg)
    # the numbers of the sums differ, and so do dropouts, if there are any
    again = FederatedCF(set_by_hand, rounds=2, block=2).fit(ratings).model_
    assert found.item_factors.tobytes() == again.item_factors.tobytes()


def test_best_of_the_held_out_views_is_chosen():
    """The sums of the gains, summed again from the users' own models."""
    ratings = simulate_views(60, 40, seed=1)
    system = quick(block=4)
    best, records = choose(system, ratings)
    parts = user_split(ratings, HELD, system.seed)
    start, means = None, []
    for reg, rounds in zip(REGS, EPOCHS[1:], strict=True):
        model = tuned(4).set_params(reg=reg / np.sqrt(1 - HELD))
        start = FederatedCF(model, rounds=rounds).fit(parts.train, start=start).model_
        means.append(ranking(start, parts.test, parts.train, 40).ndcg)
    assert best.model.reg == REGS[int(np.argmax(means))]
    assert system.model.reg is None
    assert [one.round for one in records] == list(range(1, len(records) + 1))


def test_views_without_taste_are_ranked_by_popularity():
    """No other λ is better by two standard errors."""
    parts = random_split(popular(), seed=0)
    model = quick().fit(parts.train).model_
    assert model.implicit.reg == POPULAR
    ours, simple = (
        ranking(one, parts.test, parts.train).ndcg for one in (model, Popularity(parts.train))
    )
    assert ours > simple - 0.005


def test_views_with_taste_are_not():
    parts = random_split(simulate_views(200, 40, seed=1), seed=0)
    model = quick(rounds=4).fit(parts.train).model_
    assert model.implicit.reg < POPULAR
    ours, simple = (
        ranking(one, parts.test, parts.train).ndcg for one in (model, Popularity(parts.train))
    )
    assert ours > simple + 0.1


def test_user_without_views_has_the_mean_of_the_users(tmp_path):
    """In training, and later by fold_in; the order is nearly that of popularity."""
    ratings = popular()
    silent = 7
    ratings = ratings.take(ratings.users != silent)
    model = quick(FederatedCF().aggregation, rounds=6).fit(ratings).model_
    row = model.user_factors[silent]
    assert row.any()
    np.testing.assert_array_equal(row, model.centre)
    model.save(tmp_path / "model.fedmf")
    again = Factors.load(tmp_path / "model.fedmf")
    np.testing.assert_array_equal(again.fold_in([], []).user_factors[0], row)
    counts = np.bincount(ratings.items, minlength=ratings.n_items)
    first = np.argsort(-(model.item_factors @ row))[:5]
    assert set(first) == set(np.argsort(-counts)[:5])


@pytest.mark.parametrize("block", [1, 2, 3])
def test_blocks_reach_the_factors_of_whole_sums(block):
    """Columns come back to their places after each round only if the block divides k."""
    ratings = simulate_views(60, 40, seed=1)
    model = Implicit(k=4, reg=2.0, alpha=5.0, power=0.5, centred=True)
    whole, parts = (
        FederatedCF(model, rounds=60, block=b, min_raters=1).fit(ratings) for b in (4, block)
    )
    scores = [one.predict_all(np.arange(60)) for one in (whole, parts)]
    np.testing.assert_allclose(*scores, rtol=0, atol=0.05)
    assert len(parts.history_) == 60 * -(-4 // block)


def test_message_does_not_grow_with_the_square_of_k():
    """Beyond 2,000 items 8 factors at once: 45 numbers per item, and rows for all items."""
    system = FederatedCF(tuned())
    assert (system.at_once(2000), system.at_once(2001)) == (32, 8)
    ratings = simulate_views(400, 2400, seed=1)
    for k in (32, 64):
        model = tuned(k).set_params(reg=1.0)
        training = FederatedCF(model).training(model.confidence(ratings))
        rows, width = training.local_steps(training.start, None).shape
        assert width == 8 * 9 // 2 + 8 + 1
        assert (rows - 2400) * width >= k * (k + 1) // 2 + k


def test_settings_without_a_number_for_reg_raise_elsewhere():
    ratings = simulate_views(60, 40, seed=1)
    with pytest.raises(SettingError):
        CF(tuned(2)).fit(ratings)
    for wrong in ({"reg": None}, {"centred": True}):
        with pytest.raises(SettingError):
            FCF(Implicit(**wrong))


def test_ctrl_c_in_the_choice_leaves_nothing_fitted():
    def stop(record):
        if record.round == 5:
            raise KeyboardInterrupt

    system = quick(callbacks=[stop])
    with pytest.raises(KeyboardInterrupt):
        system.fit(simulate_views(60, 40, seed=1))
    assert not hasattr(system, "model_")


class Failing(PlainSum):
    """Plain sum that is aborted in sums of the choice, by their numbers."""

    lost = ()

    def sum(self, vectors, *, dropouts, session=b""):
        if session in [f"fedmf implicit choice sum {one}".encode() for one in self.lost]:
            raise RoundAborted("as the test wants")
        return super().sum(vectors, dropouts=dropouts, session=session)


@pytest.mark.parametrize("number", [1, 6])
def test_training_of_the_choice_is_repeated_if_it_has_no_sum(monkeypatch, number):
    """Popularity and the second λ have one sum each."""
    ratings = simulate_views(60, 40, seed=1)
    whole = quick(PlainSum(**VIEWS), block=4).fit(ratings)
    monkeypatch.setattr(Failing, "lost", (number,))
    other = quick(Failing(**VIEWS), block=4).fit(ratings)
    assert [one.round for one in other.history_ if one.aborted is not None] == [number]
    assert len(other.history_) == len(whole.history_) + 1
    assert other.model_.item_factors.tobytes() == whole.model_.item_factors.tobytes()


def test_choice_without_any_sum_raises(monkeypatch):
    monkeypatch.setattr(Failing, "lost", range(1, 99))
    with pytest.raises(RoundAborted):
        quick(Failing(**VIEWS)).fit(simulate_views(60, 40, seed=1))


def test_items_that_all_are_held_out_once_are_ranked_by_popularity():
    """Three items of three raters each: of those who do not hold one out, two are left."""
    everybody = from_triples(*np.divmod(np.arange(9), 3), np.ones(9), scale=(0, 1))
    left = user_split(everybody, HELD, 12).train
    assert np.bincount(left.items).tolist() == [2, 2, 2]
    model = quick(seed=12).fit(everybody).model_
    assert model.implicit.reg == POPULAR
    assert model.item_factors.any(axis=1).all()
    with pytest.raises(DataError):
        quick(min_raters=4).fit(everybody)
