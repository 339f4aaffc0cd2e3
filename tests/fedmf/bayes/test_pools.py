"""Items with few raters, in buckets whose sums have enough raters."""

import numpy as np
import pytest

from fedmf import FedBPMF, OneShotSum, PlainSum, SecAggSum
from fedmf.bayes.pools import Pools
from fedmf.data import from_triples
from fedmf.data.sets.simulated import simulate
from fedmf.errors import DataError
from fedmf.models.federated import Raters
from watched_sum import Watched

RATINGS = simulate(40, 120, 500, seed=3)
LEAST = 3
COUNTS = np.bincount(RATINGS.items, minlength=120)
FEW = (COUNTS > 0) & (COUNTS < LEAST)


def pools(ratings=RATINGS, counts=COUNTS):
    """Return the pools as a training counts them: first the items, and then the rows."""
    found = Pools.of(Raters(counts, 1.0), LEAST)
    rows = found.ratings(ratings)
    again = Raters(np.bincount(rows.items, minlength=ratings.n_items), 1.0)
    return found.with_counts(again, LEAST)


def fitted(aggregation=None, **settings):
    usual = {"k": 2, "rounds": 6, "burn_in": 4}
    return FedBPMF(aggregation, **usual | settings).fit(RATINGS)


def test_every_row_has_enough_raters():
    found = pools()
    rated = found.ratings(RATINGS)
    raters = np.bincount(rated.items, minlength=120)
    assert (raters == found.counts).all()
    assert ((raters == 0) | (raters >= LEAST)).all()
    assert (found.pooled <= FEW).all()
    assert found.pooled.sum() > FEW.sum() / 2
    many = COUNTS >= LEAST
    assert (found.rows[many] == np.flatnonzero(many)).all()
    assert (found.rows[COUNTS == 0] == -1).all()
    assert (found.items == COUNTS).all()


def test_buckets_are_about_full():
    found = Pools.of(Raters(COUNTS, 1.0), LEAST)
    sizes = np.bincount(found.rows[FEW], COUNTS[FEW], 120)
    sizes = sizes[sizes > 0]
    assert sizes.sum() == COUNTS[FEW].sum()
    assert sizes.min() >= LEAST
    assert sizes.max() < 3 * LEAST


def test_user_has_one_rating_in_a_bucket():
    """User 0 alone rates items 5 to 9: together they still have one rater."""
    triples = [(user, item, 3.0) for user in range(4) for item in range(5)]
    triples += [(0, item, 1.0) for item in range(5, 10)]
    ratings = from_triples(*np.array(triples).T, scale=(1, 5))
    found = Pools.of(Raters(np.bincount(ratings.items), 1.0), LEAST)
    assert found.pooled.sum() == 5
    assert np.bincount(found.ratings(ratings).items).max() == 4
    again = pools(ratings, np.bincount(ratings.items))
    assert again.rows.tolist() == [0, 1, 2, 3, 4, -1, -1, -1, -1, -1]
    assert again.ratings(ratings).n_ratings == 20


@pytest.mark.parametrize("counts", [[4, 4, 0, 2], [4, 4, 4, 0]], ids=["one item", "none"])
def test_few_items_alone_are_left_out(counts):
    found = Pools.of(Raters(np.array(counts), 1.0), LEAST)
    assert not found.pooled.any()
    assert found.rows.tolist() == [i if n == 4 else -1 for i, n in enumerate(counts)]


def test_tables_of_rows_and_means_over_buckets():
    found = Pools(
        counts=np.array([5, 3, 0, 0]),
        share=1.0,
        items=np.array([5, 1, 2, 1]),
        rows=np.array([0, 1, 1, -1]),
    )
    table = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    assert found.of_rows(table).tolist() == [[1, 2], [3, 4], [3, 4], [7, 8]]
    assert found.means(table).tolist() == [[1, 2], [4, 5], [4, 5], [7, 8]]


def test_items_of_a_bucket_have_the_same_factors():
    model = fitted()
    found = pools()
    assert model.history_.last.trained_items == (found.rows >= 0).sum()
    for sample in model.model_.samples:
        assert (sample.items[found.pooled] == sample.items[found.rows[found.pooled]]).all()
    embedding = model.model_.embedding
    assert embedding[found.pooled].any(axis=1).all()
    assert not embedding[found.rows < 0].any()


@pytest.mark.parametrize("aggregation", [SecAggSum(), OneShotSum()], ids=["secagg", "one-shot"])
def test_secure_counts_have_the_digests_of_plain_counts(aggregation):
    plain, secure = (fitted(by, rounds=2, burn_in=1, dropout=0.1) for by in (None, aggregation))
    first, other = plain.history_.rounds[0], secure.history_.rounds[0]
    assert len(first.count_digest.split()) == 2
    assert (first.count_digest, first.digest) == (other.count_digest, other.digest)


def test_no_sum_has_a_row_of_fewer_raters():
    """Neither in the sums of the training nor, but for the counts, before it."""
    watched = Watched()
    fitted(watched, rounds=2, burn_in=1)
    sums = [dense for kind, dense, _, name in watched.calls if b" sum " in name]
    assert len(sums) == 2
    for tables in sums:
        sent = np.stack([table.reshape(-1, 9)[:120] for table in tables.values()])
        raters = (sent[:, :, :-3] != 0).any(axis=2).sum(axis=0)
        assert ((raters == 0) | (raters >= LEAST)).all()
        assert (raters[pools().rows[FEW & (pools().rows >= 0)]] >= LEAST).all()


def test_ratings_without_a_row_raise():
    alone = from_triples(np.arange(4), np.arange(4), np.full(4, 3.0), scale=(1, 5))
    with pytest.raises(DataError):
        FedBPMF(PlainSum(), k=1, rounds=2, burn_in=0, min_raters=5).fit(alone)
