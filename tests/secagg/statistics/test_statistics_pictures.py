"""Pictures of results."""

from __future__ import annotations

import numpy as np
import pytest

from secagg import ParameterError
from secagg.statistics import (
    Category,
    Histogram,
    Logistic,
    Moments,
    Number,
    Plan,
    SitePolicy,
    Survival,
    simulate,
)
from secagg.statistics.pictures import draw

COLUMNS = {"x": Number(0, 60), "d": Category([0, 1]), "g": Category(["<a>", "b"])}
ASKED = [
    Histogram("x", [20, 58], by="g"),
    Logistic("d", ["x"]),
    Moments("x"),
    Survival("x", "d", range(10, 61, 10), by="g"),
]


def test_counts_curves_and_coefficients_are_drawn() -> None:
    random = np.random.default_rng(1)
    x = [*random.integers(1, 58, 118), 59, 60]
    table = {"x": x, "d": random.integers(0, 2, 120), "g": random.choice(["<a>", "b"], 120)}
    tables = [{name: values[i::3] for name, values in table.items()} for i in range(3)]
    plan = Plan("<drawn>", COLUMNS, ASKED, min_sites=1)
    result = simulate(plan, tables, way="plain", policy=SitePolicy(min_sites=1))
    names = [f"{one.name}{': curve' * (one.kind == 'survival')}" for one in ASKED]
    for name in names[:2] + names[3:]:
        picture = draw(result, name).decode()
        assert picture.startswith("<svg")
        assert "<drawn>" not in picture  # escaped
        assert ("hidden" in picture) == name.startswith("histogram")
    with pytest.raises(ParameterError, match=names[2]):
        draw(result, names[2])
