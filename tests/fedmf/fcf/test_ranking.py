"""The ranking measures on cases worked by hand, and the splits they are made for."""

from __future__ import annotations

import numpy as np
import pytest

from benches.papers.simulated_views import simulate_views
from fedmf.errors import DataError, ModelError, SettingError
from fedmf.fcf import ranking, user_split
from fedmf.models import Factors

N_ITEMS = 32


def of_pairs(*pairs):
    """Return views of 5 users and 32 items: just these."""
    whole = simulate_views(5, N_ITEMS)
    users, items = np.array(sorted(pairs)).T
    return whole.__class__(
        name="pairs",
        indptr=np.concatenate(([0], np.cumsum(np.bincount(users, minlength=5)))),
        items=items.astype(np.int32),
        values=np.ones(len(pairs)),
        times=np.zeros(len(pairs), dtype=np.int64),
        n_items=N_ITEMS,
        scale=(0.0, 1.0),
        user_ids=whole.user_ids,
        item_ids=whole.item_ids,
        catalogue=whole.catalogue,
    )


def scored(scores, ratings):
    """Return factors that predict scores[i] for every user."""
    return Factors.of(np.ones((5, 1)), np.array(scores, dtype=np.float64)[:, None], ratings)


DESCENDING = 1 - np.arange(N_ITEMS) / 40  # item 0 first


def test_measures_of_a_small_case_are_as_by_hand():
    """User 0: items 1, 2, 3 of 0 to 4 in sight, 1 and 3 and 9 to be found; user 4: item 0.

    User 0 has item 0 hidden, so 1 2 3 4 are recommended: hits at places 1 and 3, P = 2/4,
    R = 2/3, F1 = 4/7, AP = (1/1 + 2/3)/3. User 4: a hit at place 1 of 4, P = 1/4, R = 1,
    F1 = 2/5, AP = 1. Users 1 to 3 have nothing to be found and do not count.
    """
    hidden, test = of_pairs((0, 0), (2, 5)), of_pairs((0, 1), (0, 3), (0, 9), (4, 0))
    found = ranking(scored(DESCENDING, hidden), test, hidden, k=4)
    assert found.precision == pytest.approx((2 / 4 + 1 / 4) / 2)
    assert found.recall == pytest.approx((2 / 3 + 1) / 2)
    assert found.f1 == pytest.approx((4 / 7 + 2 / 5) / 2)
    assert found.map == pytest.approx(((1 + 2 / 3) / 3 + 1) / 2)
    gain, most = 1 + 1 / np.log2(4), 1 + 1 / np.log2(3) + 1 / np.log2(4)
    assert found.ndcg == pytest.approx((gain / most + 1) / 2)
    assert (found.hit_rate, found.coverage) == (1, 5 / N_ITEMS)  # 0 to 4 are recommended
    errors = np.array([1, 3, 9, 0]) / 40
    assert found.rmse == pytest.approx(np.sqrt(np.mean(errors**2)))


def test_measures_without_a_hit_are_zero():
    hidden, test = of_pairs((1, 30)), of_pairs((0, 31))
    found = ranking(scored(DESCENDING, hidden), test, hidden)
    assert (found.precision, found.recall, found.f1, found.map) == (0, 0, 0, 0)
    assert (found.ndcg, found.hit_rate) == (0, 0)


def test_hidden_items_are_no_hits_and_not_covered():
    hidden = of_pairs(*((0, item) for item in range(1, N_ITEMS)))
    found = ranking(scored(DESCENDING, hidden), of_pairs((0, 0), (0, 5)), hidden, k=10)
    assert (found.precision, found.coverage) == (1 / 10, 1 / N_ITEMS)


def test_measures_do_not_depend_on_the_blocks(monkeypatch):
    ratings = simulate_views(100, 40, seed=1)
    split = user_split(ratings)
    rng = np.random.default_rng(0)
    factors = Factors.of(rng.normal(size=(100, 3)), rng.normal(size=(40, 3)), split.train)
    whole = ranking(factors, split.test, split.train)
    monkeypatch.setattr("fedmf.training.measures.BLOCK", 7 * 40)
    assert ranking(factors, split.test, split.train) == whole


def test_ranking_of_unfit_arguments_raises():
    hidden = of_pairs((0, 0))
    factors = scored(DESCENDING, hidden)
    with pytest.raises(DataError):
        ranking(factors, hidden.take(np.array([], dtype=np.int64)), hidden)
    with pytest.raises(DataError):
        ranking(factors, simulate_views(5, 40), hidden)
    for k in (0, 33, 1.5, "3"):
        with pytest.raises(SettingError, match=f"k = '?{k}'?"):
            ranking(factors, hidden, hidden, k)
    for wrong in (np.nan, np.inf):
        broken = scored(np.where(np.arange(N_ITEMS) == 9, wrong, DESCENDING), hidden)
        with pytest.raises(ModelError):
            ranking(broken, hidden, hidden)


def test_user_split_takes_the_same_share_of_every_user():
    ratings = simulate_views(50, 40, seed=0)
    split = user_split(ratings, 0.2, seed=4)
    inner = user_split(split.train, 0.25, seed=4)
    assert set(np.diff(split.test.indptr)) == {2}
    assert set(np.diff(inner.test.indptr)) == {2}
    assert set(np.diff(inner.train.indptr)) == {4}
    pairs = [
        set(zip(part.users, part.items, strict=True)) for part in (split.train, split.test)
    ]
    assert not pairs[0] & pairs[1]
    assert pairs[0] | pairs[1] == set(zip(ratings.users, ratings.items, strict=True))
    assert (user_split(ratings, 0.2, seed=4).test.items == split.test.items).all()
    assert (user_split(ratings, 0.2, seed=5).test.items != split.test.items).any()


def test_users_share_is_rounded_half_to_even():
    """A users share is rounded to the nearest and halves to even."""
    counts = (1, 2, 3, 6, 10)  # a quarter of which is .25, .5, .75, 1.5, 2.5
    pairs = [(user, item) for user, n in enumerate(counts) for item in range(n)]
    split = user_split(of_pairs(*pairs), 0.25)
    assert np.diff(split.test.indptr).tolist() == [0, 0, 1, 2, 2]
    assert np.diff(split.train.indptr).tolist() == [1, 2, 2, 4, 8]
    for wrong in ({"test_fraction": 1.0}, {"seed": -1}):
        with pytest.raises(SettingError):
            user_split(split.train, **wrong)


def test_simulated_views_are_the_papers():
    """5,000 × 40, 80 % sparse, eight views each, every item viewed (section 5.1)."""
    ratings = simulate_views()
    assert (ratings.n_users, ratings.n_items) == (5000, 40)
    assert set(np.diff(ratings.indptr)) == {8}
    assert ratings.n_ratings == 0.2 * 5000 * 40
    assert np.bincount(ratings.items, minlength=40).min() >= 1
    assert len(set(zip(ratings.users, ratings.items, strict=True))) == ratings.n_ratings
    assert (simulate_views().items == ratings.items).all()
    assert (simulate_views(seed=1).items != ratings.items).any()


def test_views_by_few_users_cover_every_item():
    for seed in range(20):
        ratings = simulate_views(5, 40, seed=seed)
        assert np.bincount(ratings.items, minlength=40).tolist() == [1] * 40
        assert set(np.diff(ratings.indptr)) == {8}


def test_impossible_shapes_raise():
    for n_users, n_items in ((5, 28), (5, 33), (4, 40)):
        with pytest.raises(SettingError, match=f"n_items = {n_items}"):
            simulate_views(n_users, n_items)
    with pytest.raises(SettingError, match="seed"):
        simulate_views(seed=-1)
