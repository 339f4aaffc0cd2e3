"""Plan of the study, and the tables of the hospitals, which are random."""

from __future__ import annotations

import numpy as np

from secagg.statistics import Logistic, Number, Plan

PLAN = Plan(
    "relapses",
    columns={"age": Number(18, 100), "relapse": Number(0, 1)},
    statistics=(Logistic("relapse", ("age",)),),
)
"""A real node reads the plan from a file of its own, not from the application."""


def table(hospital: int, patients: int = 200) -> dict[str, np.ndarray]:
    """Return the table of a hospital: age raises the risk."""
    draw = np.random.default_rng(hospital)
    age = draw.integers(18, 90, patients)
    return {"age": age, "relapse": draw.random(patients) < 1 / (1 + np.exp((60 - age) / 10))}
