"""Accuracy of the presets on MovieLens 100K: minutes each, and only with the data.

Means over five random 80/20 splits, unclipped. The paper's figures are those of Table 4 of the
FedMMF paper; the others are what these presets must keep.
"""

import os

import numpy as np
import pytest

from fedmf.aggregate import PlainSum
from fedmf.data import load
from fedmf.data.splits import random_split
from fedmf.models import preset
from fedmf.training import Trainer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("FEDMF_DATA" not in os.environ, reason="FEDMF_DATA names no data"),
]

SEEDS = range(5)


def errors(name, *, dropout=0.0, seeds=SEEDS):
    """Return the test RMSE and MAE of each seed's training, shape (seeds, 2)."""
    ratings, chosen = load("ml-100k"), preset(name)
    found = []
    for seed in seeds:
        split = random_split(ratings, seed=seed)
        trainer = Trainer(
            chosen.model, PlainSum(), rounds=chosen.rounds, seed=seed, dropout=dropout
        )
        last = trainer.fit(split.train, split.test).history_.last
        found.append((last.test_rmse, last.test_mae))
    table = np.array(found)
    mean, sd = table.mean(axis=0), table.std(axis=0, ddof=1)
    figures = (f"{what} {mean[i]:.4f} ± {sd[i]:.4f}" for i, what in enumerate(("RMSE", "MAE")))
    print(f"\n{name}, dropout {dropout}:", *figures)  # shown by -s, for the README
    return table


def test_paper_preset_reproduces_the_paper():
    """The paper: .9491 ± .0040 and .7412 ± .0027."""
    rmse, mae = errors("paper").mean(axis=0)
    assert rmse == pytest.approx(0.949, abs=0.006)
    assert mae == pytest.approx(0.741, abs=0.005)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_fast_preset_reaches_its_error_with_dropouts(dropout):
    rmse, mae = errors("fast", dropout=dropout).mean(axis=0)
    assert preset("fast").rounds <= 60
    assert rmse <= 0.925
    assert mae <= 0.737
