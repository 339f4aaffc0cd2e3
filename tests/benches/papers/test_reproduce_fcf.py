"""The rows of FCF's tables, in small."""

from __future__ import annotations

import numpy as np
import pytest

from benches.papers import convergence, fcf2
from benches.papers.convergence import TABLE as FCF_CONVERGENCE
from benches.papers.convergence import percentage_difference
from benches.papers.fcf2 import TABLE as FCF_2
from benches.papers.fcf2 import posterior
from benches.papers.simulated_views import simulate_views
from benches.papers.table import Run
from fedmf.errors import DataError
from secagg.kit.picture import style


@pytest.fixture(autouse=True)
def _few_users(monkeypatch):
    def few():
        return simulate_views(120, 40)

    monkeypatch.setattr(fcf2, "simulate_views", few)
    monkeypatch.setattr(convergence, "simulate_views", few)


def test_simulated_rows_run_and_are_drawn():
    rows = [row for row in FCF_2.rows if row.data == "simulated"]
    results = {row.name: [row.run(Run(seed=s, quick=True)) for s in (0, 1)] for row in rows}
    cf, fcf, exact = (results[row.name] for row in rows)
    assert set(cf[0]) == set(fcf2.METRICS)
    assert set(fcf[0]) == set(exact[0]) == set(FCF_2.metrics)
    assert all(one["ΔY"] < 1e-6 < other["ΔY"] for one, other in zip(exact, fcf, strict=True))
    assert cf[0] != cf[1]
    assert rows[1].run(Run(seed=0, quick=True)) == fcf[0]
    assert fcf[0]["RMSE"] != cf[0]["RMSE"]
    difference = 100 * abs(fcf[0]["RMSE"] / cf[0]["RMSE"] - 1)
    assert fcf[0]["RMSE diff %"] == pytest.approx(difference)
    differences = [b["MAP"] - a["MAP"] for a, b in zip(cf, fcf, strict=True)]
    assert posterior(cf, fcf, "MAP").mean == pytest.approx(np.mean(differences))
    assert posterior(cf, fcf, "MAP").scale == pytest.approx(
        np.std(differences, ddof=1) * np.sqrt(1 / 2 + 0.2 / 0.6)  # Nadeau and Bengio 2003
    )
    (line,) = FCF_2.findings(results)
    assert line.startswith("simulated, K 4, probability that FCF is within ±0.005 of CF: P ")
    within = posterior(cf, fcf, "F1").within()
    assert f", F1 {within:.3f}, " in line
    assert FCF_2.findings({name: runs[:1] for name, runs in results.items()}) == ()
    (draw,) = FCF_2.pictures
    assert len(draw(results).axes) == 5
    with pytest.raises(DataError):
        draw({name: runs[:1] for name, runs in results.items()})


def test_judged_views_are_neither_trained_nor_hidden():
    given = fcf2.parts("simulated", 3)
    train, hidden, test = (
        set(zip(part.users, part.items, strict=True))
        for part in (given.train, given.hidden, given.test)
    )
    assert train < hidden
    assert not hidden & test
    assert (len(train), len(hidden), len(test)) == (480, 720, 240)


def test_percentage_difference_is_that_of_section_6_2():
    exact = np.array([[1.0, -2.0], [4.0, 5.0]])
    found = np.array([[1.2, -2.2], [4.0, 4.0]])
    assert percentage_difference(exact, found) == pytest.approx(100 * 0.1 / 4)  # −.2 − .1 + .2


@pytest.mark.large
def test_convergence_rows_run_and_are_drawn():
    rows = (FCF_CONVERGENCE.rows[1], *FCF_CONVERGENCE.rows[-4:])
    results = {row.name: [row.run(Run(seed=0, quick=True))] for row in rows}
    for name, (figures,) in results.items():
        assert set(FCF_CONVERGENCE.metrics) - {"e, sum 5", "e, sum 10"} <= set(figures), name
        assert figures["e, last"] == [v for k, v in figures.items() if k.startswith("sum ")][-1]
    plain, itself = (results[rows[i].name][0] for i in (0, 1))
    assert plain["e, sum 5"] > plain["e, sum 20"]
    assert itself["e, last"] == 0
    reset, carried = (results[row.name][0] for row in rows[-2:])
    assert reset["sum 20"] == carried["sum 20"]  # the first epoch is the same
    assert reset["sum 21"] != carried["sum 21"]
    with style():
        figure = FCF_CONVERGENCE.pictures[0](results)
    assert [len(axes.lines) for axes in figure.axes] == [1, 4]
    with pytest.raises(DataError):
        FCF_CONVERGENCE.pictures[0]({})
