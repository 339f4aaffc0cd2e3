"""The tables of attacks and masked ratings, on simulated data in place of MovieLens."""

from __future__ import annotations

import numpy as np
import pytest

from benches.papers import attacks, masked_ratings
from benches.papers.table import Run
from fedmf.data.sets.simulated import simulate

QUICK = Run(seed=0, quick=True)


@pytest.fixture
def small(put):
    put(simulate(24, 50, 700, seed=2))
    masked_ratings._hidden.cache_clear()
    yield
    masked_ratings._hidden.cache_clear()


def test_attack_rows_return_the_columns(small):
    two, *_, lone = attacks.TABLE.rows
    found = two.run(QUICK)
    assert set(found) == set(attacks.TABLE.metrics)
    assert found["plain"] == 1.0
    assert found == two.run(QUICK)
    assert set(lone.run(QUICK)) == set(found)


@pytest.mark.parametrize("which", [0, 8, 9])  # leakage, and the paper's own two
def test_attack_targets_use_each_rows_own_chance(small, which):
    row = attacks.TABLE.rows[which]
    found = row.run(QUICK)
    assert found[attacks.ABOVE] == found["secure"] - found["chance"]
    assert found["plain"] > found["chance"] + 0.1
    leaky = found["chance"] + 0.016  # .335 where chance is .328 would be a leak, too
    target = row.target[attacks.ABOVE]
    assert not target.met(leaky - found["chance"])
    assert target.met(0.0)


def test_users_are_counted_by_range_in_per_cent():
    rates = np.array([0.0, 0.19, 0.2, 0.5, 0.8, 1.0, 1.0, 0.79])
    found = list(masked_ratings._parties(rates).values())
    assert found == [25.0, 12.5, 12.5, 12.5, 37.5]


@pytest.mark.parametrize("table", masked_ratings.TABLES[:2])
def test_shares_of_users_add_up_to_100_per_cent(small, table):
    for row in table.rows:
        assert sum(one.mean for one in row.paper.values()) in (99, 100)
    found = table.rows[-1].run(QUICK)
    assert tuple(found) == table.metrics
    assert sum(found.values()) == pytest.approx(100)


def test_figure_4_draws_finished_rows_only(small):
    table = masked_ratings.TABLES[2]
    results = {row.name: [row.run(QUICK)] for row in table.rows[:2]}
    assert results[table.rows[0].name][0]["J"] < results[table.rows[1].name][0]["J"]
    (draw,) = table.pictures
    left, right = draw(results).axes
    assert left.lines[0].get_xydata().shape == right.lines[0].get_xydata().shape == (2, 2)
    assert draw({}).axes
