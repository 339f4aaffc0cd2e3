"""The table of DPEase: its rows run, and its attack can succeed."""

from __future__ import annotations

import numpy as np
import pytest

from benches.papers import ease
from benches.papers.table import Run
from fedmf.data.sets.simulated import simulate


@pytest.fixture(autouse=True)
def tiny(put):
    put(simulate(40, 60, 700, seed=0))


@pytest.mark.parametrize("row", ease.TABLE.rows, ids=lambda row: row.name)
def test_rows_run_repeatably(row):
    once = row.run(Run(seed=1))
    assert row.run(Run(seed=1)) == once
    assert all(0 <= value <= 100 for value in once.values())


def test_attack_finds_profiles_in_sums_with_little_noise(monkeypatch):
    """The attack of the noised rows could succeed: it knows the scale."""
    monkeypatch.setattr(ease, "SIZES", range(1, 61))
    assert ease._attacked(3e4, Run(seed=1))[ease.PEELED] > 0
    assert ease._attacked(8.0, Run(seed=1))[ease.PEELED] == 0


def test_more_privacy_never_has_more_items():
    kept = [ease.KEPT[epsilon] for epsilon in sorted(ease.KEPT)]
    assert np.all(np.diff(kept) >= 0)
