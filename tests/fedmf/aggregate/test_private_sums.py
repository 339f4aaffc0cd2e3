"""Estimators with an ε: their noised sums are the same integers under every aggregation."""

import numpy as np
import pytest

from fedmf import DPFedMF
from fedmf.aggregate import OneShotSum, PaillierSum, SecAggSum
from fedmf.data.sets.simulated import simulate
from fedmf.ease import DPEase
from fedmf.fcf import views
from paillier_keys import keypair

RATINGS = simulate(30, 40, 500, seed=3)
SILENT = 4
WITH_SILENT = RATINGS.take(RATINGS.users != SILENT)


def dpfedmf(aggregation, **noise):
    """Return sums and results of a training in which a user has no rating."""
    fitted = DPFedMF(aggregation, rounds=3, dropout=0.1, **noise).fit(WITH_SILENT)
    return fitted.history_, (fitted.model_.user_factors, fitted.model_.item_factors)


def dpease(aggregation, **noise):
    """Return sums and results of a choice of items and a Gram matrix."""
    fitted = DPEase(aggregation, items=12, dropout=0.1, **noise).fit(views(RATINGS))
    return fitted.history_, (fitted.model_.weights,)


@pytest.mark.parametrize(
    "aggregation",
    [SecAggSum(), OneShotSum(), PaillierSum(trust="key holder", key=keypair())],
    ids=["secagg", "one-shot", "paillier"],
)
@pytest.mark.parametrize("where", ["central", "distributed"])
@pytest.mark.parametrize(("train", "sums"), [(dpfedmf, 3), (dpease, 2)])
def test_secure_sums_have_the_digests_of_plain_sums(train, sums, where, aggregation):
    found = [
        train(
            summing,
            where=where,
            honest=0.5 if where == "distributed" else 1.0,
            entropy=np.random.default_rng(7).bytes,
        )
        for summing in (None, aggregation)
    ]
    (plain, tables), (secure, others) = found
    assert len(plain) == sums
    for one, other in zip(plain, secure, strict=True):
        assert one.digest == other.digest
        assert one.survivors == other.survivors < 30
        assert one.clipped == 0
    for table, other in zip(tables, others, strict=True):
        np.testing.assert_array_equal(table, other)
