"""Small versions of the rows that compare secure and plain sums."""

from __future__ import annotations

from functools import partial

import pytest

from benches.papers import secure
from benches.papers.table import Run
from fedmf.aggregate import PaillierSum, PlainSum
from fedmf.data.sets.simulated import simulate
from paillier_keys import keypair

(TABLE, _) = secure.TABLES


@pytest.fixture(autouse=True)
def _tiny(put, monkeypatch):
    """Few users, each the neighbour of all others, and a small key."""
    put(simulate(12, 40, 250, seed=0))
    monkeypatch.setattr(secure, "VIEWERS", 12)
    monkeypatch.setattr(secure, "NEIGHBOURS", None)
    monkeypatch.setattr(secure, "PaillierSum", partial(PaillierSum, key=keypair()))


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row.name)
def test_secure_sums_equal_plain_sums_in_number_and_value(row):
    found = row.run(Run(seed=0))
    assert found.keys() == row.target.keys()
    assert all(target.met(found[metric]) for metric, target in row.target.items()), found
    assert not row.target["sums"].met(found["sums"] - 1), "a missing digest does not pass"


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row.name)
def test_different_sums_are_counted(row, monkeypatch):
    """Half a bit of the fixed point is another sum in every round, but for the raters'."""

    def coarse(*, clip, fractional_bits, **settings):
        return PlainSum(clip=clip, fractional_bits=fractional_bits - 1)

    monkeypatch.setattr(secure, "SecAggSum", coarse)
    monkeypatch.setattr(secure, "PaillierSum", coarse)
    found = row.run(Run(seed=0))
    assert found["sums that differ"] >= found["sums"] - 1 > 0
    assert not row.target["sums that differ"].met(found["sums that differ"])
