"""Parts, popularity and targets of table `ranking`."""

from __future__ import annotations

import numpy as np

from benches.papers import ranked
from benches.papers.table import Run

RUN = Run(seed=0)


def test_future_is_that_of_users_with_a_past():
    given = ranked.parts("simulated", ranked.TIME, RUN)
    assert given.train is given.hidden
    assert given.test.n_ratings > 0
    assert given.train.times.max() <= given.test.times.min()
    past = np.diff(given.train.indptr)
    assert (past[given.test.users] > 0).all()


def test_every_row_has_all_measures():
    run = Run(seed=0, quick=True)
    for split in (ranked.RANDOM, ranked.TIME):
        for name in ranked.MODELS:
            found = ranked._measured("simulated", split, name, run)
            assert tuple(found) == ranked.METRICS
            assert all(0 <= one <= 1 for one in found.values())


def test_settings_in_the_table_are_those_that_are_used():
    """The command trains the first row, and its second model the second."""
    from fedmf.cli import models, ranker

    epochs, model = ranked.SETTINGS["the default"]
    assert models.KINDS["implicit"].rounds == epochs == ranked.EPOCHS
    assert (model.k, model.alpha, model.reg, model.power) == (32, 5.0, 1.0, 0.5)
    epochs, small = ranked.SETTINGS["the default, 8 factors, 3 epochs"]
    assert (small.k, epochs) == (ranker.K, ranker.EPOCHS)
