"""Table `folds`: each row is judged on its own fold, and the means are over all five."""

from __future__ import annotations

import pytest

from benches.papers import folds
from benches.papers.table import Run
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_folds

RATINGS = simulate(24, 40, 500, seed=3)


@pytest.mark.parametrize("model", [folds.DEFAULT, folds.BIASES])
def test_rows_are_judged_on_their_folds(put, monkeypatch, model):
    put(RATINGS)
    parts = random_folds(RATINGS, 5, seed=4)
    monkeypatch.setattr(folds, "official", lambda ratings, fold: parts[fold - 1])
    judged = []
    real = folds.errors
    monkeypatch.setattr(
        folds, "errors", lambda test, found: judged.append(test) or real(test, found)
    )
    rows = [row for row in folds.TABLE.rows if f": {model} " in row.name]
    for row in rows:
        assert row.run(Run(seed=0, quick=True))["RMSE"] > 0
    assert [row.name[:2] for row in rows] == ["u1", "u2", "u3", "u4", "u5"]
    assert judged == [one.test for one in parts]


def test_means_need_all_five_folds():
    results = {
        row.name: [{"RMSE": 0.8 + 0.01 * number}, {"RMSE": 0.9 + 0.01 * number}]
        for number, row in enumerate(folds.TABLE.rows)
    }
    default, biases = folds.means(results)
    assert "0.8700" in default
    assert "0.9200" in biases
    del results[folds.TABLE.rows[3].name]
    assert len(folds.means(results)) == 1
