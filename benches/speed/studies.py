"""Cases of secure statistics, and of statsmodels on the pooled records."""

from __future__ import annotations

import numpy as np

from benches.plain import F64
from benches.speed.clock import Measure, timed
from secagg.statistics import Logistic, Number, Plan, simulate

CLIP = 5
"""Largest value of a column, in its standard deviations."""


def logistic(columns: int, records: int, sites: int) -> Measure:
    """Return the measure of a logistic regression over sites in one process.

    All sites read their tables, and each step is a sum by four exchanges.
    """
    x, y = _records(columns, records)
    names = [f"x{i}" for i in range(columns)]
    plan = Plan(
        "bench",
        {name: Number(-CLIP, CLIP, "0.001") for name in names} | {"y": Number(0, 1)},
        (Logistic("y", names),),
    )
    tables = [
        {**dict(zip(names, some.T, strict=True)), "y": outcome}
        for some, outcome in zip(
            np.array_split(x, sites), np.array_split(y, sites), strict=True
        )
    ]
    return timed(lambda: simulate(plan, tables))


def logistic_pooled(columns: int, records: int, sites: int) -> Measure:
    """Return the measure of the same regression by statsmodels, with standard errors."""
    import statsmodels.api as sm  # may be missing

    del sites
    x, y = _records(columns, records)
    return timed(lambda: sm.Logit(y, sm.add_constant(x)).fit(disp=0).bse)


def _records(columns: int, records: int) -> tuple[F64, F64]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(records, columns)).clip(-CLIP, CLIP).round(3)
    weights = rng.normal(size=columns) / columns**0.5
    return x, (rng.random(records) < 1 / (1 + np.exp(-x @ weights))).astype(float)
