"""Parts, popularity and targets of table `ranking`."""

from __future__ import annotations

import numpy as np

from benches.papers import ranked
from benches.papers.table import Run
from fedmf.fcf import tuned

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
            assert ranked.METRICS[: len(found)] == tuple(found)
            assert all(0 <= found[one] <= 1 for one in ranked.MEASURES)
            assert (ranked.SENT in found) == (name in ranked.CHOOSING)
            assert name != "popularity" or found[ranked.ABOVE] == 0


def test_settings_in_the_table_are_those_that_are_used():
    """The command trains the first row, and its second model the second."""
    from fedmf.cli import models, ranker

    made, kind = ranked.SETTINGS["the default"], models.KINDS["implicit"]
    assert kind.rounds == made.rounds == ranked.EPOCHS
    assert made.model == tuned()
    assert made.aggregation.get_params() == {**kind.sums}
    assert ranked.SMALL == (ranker.K, ranker.EPOCHS)
