"""The tables of differential privacy and the thesis: their rows run, the curve is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from benches.papers import dp, fedmmf4, thesis, training
from benches.papers.table import Run
from effort import needs_data
from fedmf.data import load
from fedmf.data.sets.simulated import simulate
from secagg.kit.picture import style


@pytest.fixture(autouse=True)
def tiny(put):
    put(simulate(12, 40, 250, seed=0))


@pytest.mark.parametrize("row", [*dp.TABLE.rows, *thesis.TABLE.rows], ids=lambda row: row.name)
def test_rows_run_repeatably(row):
    if "Surprise" in row.name:
        pytest.skip("runs Surprise itself")
    once = row.run(Run(seed=1, quick=True))
    assert {"RMSE", "MAE"} <= set(once)
    assert all(np.isfinite(value) for value in once.values())
    assert row.run(Run(seed=1, quick=True)) == once
    assert once.get("same sums", 1.0) == 1.0


@needs_data
def test_context_rows_run_on_the_features_of_their_data(monkeypatch):
    monkeypatch.setattr(training, "load", load)
    (row,) = (one for one in fedmmf4.TABLES[0].rows if one.name == "FedLR")
    once = row.run(Run(seed=1, quick=True))
    assert set(once) == {"RMSE", "MAE"}
    assert 0.5 < once["MAE"] < once["RMSE"] < 2


def test_curve_has_a_line_per_place_without_missing_rows():
    """A panel for each data set, ε along the axis, also without some rows."""
    results = {row.name: [{"RMSE": 1.0}, {"RMSE": 1.2}] for row in dp.TABLE.rows}
    results["ml-100k, central, ε = 8"] = [{"RMSE": 1.1}]
    with style():
        small, large = dp.curve(results).axes
    assert [axes.get_title(loc="left") for axes in (small, large)] == ["ml-100k", "ml-1m"]
    assert [len(axes.get_legend_handles_labels()[1]) for axes in (small, large)] == [2, 1]
    central = small.containers[0].lines[0]
    assert central.get_xdata().tolist() == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert central.get_ydata().tolist() == pytest.approx([1.1] * 5)
    lengths = [np.ptp(bar[:, 1]) / 2 for bar in small.containers[0].lines[2][0].get_segments()]
    assert lengths == pytest.approx([0.02**0.5] * 4 + [0.0])  # of the sample, over n − 1
    (axes,) = dp.curve({}).axes
    assert not axes.containers
