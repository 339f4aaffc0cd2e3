"""Claims in the names of rows are true: dropouts, and the split of the thesis."""

from __future__ import annotations

import re

import numpy as np
import pytest

from benches.papers import attacks, bpmf, secure, thesis
from benches.papers.table import MODULES, Run, find_table
from fedmf import attacks as library
from fedmf.aggregate import OneShotSum, PlainSum
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split

RATINGS = simulate(24, 20, 240, seed=0)
QUICK = Run(seed=0, quick=True)


@pytest.fixture(autouse=True)
def _few_ratings(put, monkeypatch):
    put(RATINGS)
    monkeypatch.setattr(secure, "VIEWERS", 24)


DROPOUT = re.compile(r"(\d+)% dropout")


@pytest.mark.parametrize(
    ("row", "share"),
    [
        pytest.param(row, said[1] != "0", id=f"{key}: {row.name}")
        for key, module in MODULES.items()
        for row in find_table(module, key).rows
        if (said := DROPOUT.search(f"{row.name}; {find_table(module, key).title}"))
    ],
)
def test_dropouts_happen_only_in_rows_named_so(row, share, monkeypatch):
    """Under plain sums: the secure ones of a row take the same schedule, and are slow."""
    lost = []

    def watched(self, vectors, *rest):
        total = add(self, vectors, *rest)
        lost.append(len(vectors) - len(total.survivors))
        return total

    add = PlainSum._add
    monkeypatch.setattr(PlainSum, "_add", watched)
    for module in (bpmf, secure):
        monkeypatch.setattr(
            module, "SecAggSum", lambda neighbours, **encoding: PlainSum(**encoding)
        )
    monkeypatch.setattr(OneShotSum, "_add", watched)
    row.run(QUICK)
    assert lost
    assert any(lost) == share


def test_thesis_split_tests_the_last_three_ratings():
    """The test part has the last three ratings of each user."""
    split = thesis.thesis_split()
    assert np.bincount(split.test.users, minlength=24).tolist() == [3] * 24
    assert split.train.n_ratings == RATINGS.n_ratings - 3 * 24
    for user in range(24):
        here, there = (part.times[part.users == user] for part in (split.train, split.test))
        assert here.max() <= there.min()


def test_thesis_row_reports_different_sums(monkeypatch):
    (row,) = (one for one in thesis.TABLE.rows if "secure aggregation" in one.name)
    assert not row.target["same sums"].met(0.99)
    monkeypatch.setattr(thesis, "SecAggSum", lambda: PlainSum(fractional_bits=4))
    assert row.run(QUICK)["same sums"] == 0


@pytest.mark.parametrize("row", attacks.TABLE.rows, ids=lambda row: row.name)
def test_attacks_use_training_ratings_singletons_use_all(row, monkeypatch):
    """An item has one rater among all ratings; test ratings are never sent."""

    class Attacked(Exception):
        pass

    def attack(ratings, *_, **__):
        raise Attacked(ratings)

    for name in ("leakage", "inversion", "on_masked_ratings", "singletons"):
        monkeypatch.setattr(library, name, attack)
    monkeypatch.setattr("benches.papers.retraining.inversion", attack)
    with pytest.raises(Attacked) as found:
        row.run(Run(seed=1, quick=True))
    (seen,) = found.value.args
    train = random_split(RATINGS, 0.2, seed=1).train
    expected = RATINGS if "one rater" in row.name or "raters" in row.name else train
    assert np.array_equal(seen.users, expected.users)
    assert np.array_equal(seen.items, expected.items)
