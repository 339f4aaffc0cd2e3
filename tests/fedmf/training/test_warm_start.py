"""Training that continues from earlier factors: more rounds, ratings, users and items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedmf import FedALS, FedBPMF, FedMF, Trainer, from_triples
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import ModelError
from fedmf.fcf import FCF, FederatedCF, Implicit, views
from fedmf.models.warm import warm

SPLIT = random_split(simulate(24, 40, 500, seed=5), seed=1)
RATINGS = SPLIT.train
VIEWS = views(RATINGS)
RATING_MODELS = {
    "ridge": FedMF(k=3),
    "biases": FedMF(k=3, biases=True),
    "paper": FedMF(k=3, rate=0.005, update="paper"),
    "als": FedALS(k=3),
}


def same(one, other):
    np.testing.assert_array_equal(one.user_factors, other.user_factors)
    np.testing.assert_array_equal(one.item_factors, other.item_factors)


@pytest.mark.parametrize("name", RATING_MODELS)
def test_ten_rounds_and_ten_more_equal_twenty(name):
    """Without sampling and dropouts, a round depends on the factors before it alone."""
    model = RATING_MODELS[name]
    whole = Trainer(model, rounds=20).fit(RATINGS, SPLIT.test)
    half = Trainer(model, rounds=10)
    first = half.fit(RATINGS).model_
    again = half.fit(RATINGS, SPLIT.test, start=first)
    same(again.model_, whole.model_)
    assert again.history_.last.test_rmse == whole.history_.last.test_rmse
    assert len(again.history_) == 10


@pytest.mark.parametrize("kind", [FederatedCF, FCF])
def test_epochs_and_more_epochs_equal_all_epochs(kind):
    """FCF restarts its optimiser in each epoch."""
    whole = kind(Implicit(k=3), rounds=4).fit(VIEWS).model_
    half = kind(Implicit(k=3), rounds=2)
    same(half.fit(VIEWS, start=half.fit(VIEWS).model_).model_, whole)


def grown():
    """Return the ratings of other users and fewer items, whose numbers are therefore others."""
    keep = (RATINGS.users > 2) & (RATINGS.items > 3)
    users = [*RATINGS.user_ids[RATINGS.users[keep]].tolist(), 900, 900]
    items = [*RATINGS.item_ids[RATINGS.items[keep]].tolist(), 5, 901]
    return from_triples(users, items, [*RATINGS.values[keep], 4.0, 2.0], scale=(1, 5))


def test_users_and_items_are_matched_by_their_ids():
    earlier = Trainer(FedMF(k=3), rounds=3).fit(RATINGS).model_
    new = grown()
    drawn = np.full((new.n_users, 3), 7.0), np.full((new.n_items, 3), 8.0)
    found = warm(*drawn, earlier, new)
    known = (earlier.user_ids, earlier.user_factors), (earlier.item_ids, earlier.item_factors)
    for table, start, ids, (old, rows) in zip(
        found, drawn, (new.user_ids, new.item_ids), known, strict=True
    ):
        for number, one in enumerate(ids.tolist()):
            place = np.flatnonzero(old == one)
            wanted = rows[place[0]] if place.size else start[number]
            np.testing.assert_array_equal(table[number], wanted)
    assert (found[0] == 7).any()
    assert (found[1] == 8).any()
    assert (drawn[0] == 7).all()


@pytest.mark.parametrize("wrong", ["columns", "kind", "ids", "type"])
def test_start_that_does_not_fit_raises(wrong):
    earlier = Trainer(FedMF(k=3), rounds=1).fit(RATINGS).model_
    start = {
        "columns": Trainer(FedMF(k=2), rounds=1).fit(RATINGS).model_,
        "kind": replace(earlier, ranks=True),
        "ids": replace(earlier, item_ids=earlier.item_ids.astype(str)),
        "type": earlier.item_factors,
    }[wrong]
    trainer = Trainer(FedMF(k=3), rounds=1)
    with pytest.raises(ModelError):
        trainer.fit(RATINGS, start=start)
    assert not hasattr(trainer, "model_")
    if wrong == "ids":
        with pytest.raises(ModelError):
            FedBPMF(k=2, rounds=2, burn_in=1).fit(RATINGS, start=start)
    if wrong == "kind":
        with pytest.raises(ModelError):
            FederatedCF(Implicit(k=3), rounds=1).fit(VIEWS, start=earlier)


def test_start_without_a_scale_is_for_ratings_from_1_to_5():
    """Factors of 0.4 are in the units of their ratings."""
    old = replace(Trainer(FedMF(k=3), rounds=1).fit(RATINGS).model_, scale=None)
    Trainer(FedMF(k=3), rounds=1).fit(RATINGS, start=old)
    tenfold = RATINGS.with_values(RATINGS.values * 10, (10.0, 50.0))
    with pytest.raises(ModelError):
        Trainer(FedMF(k=3), rounds=1).fit(tenfold, start=old)
