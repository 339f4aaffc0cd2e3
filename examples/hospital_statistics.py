"""Statistics of five hospitals in one process: a table, a regression and a survival curve.

The data are random. ``secagg stats`` runs the same plan between machines.

    python examples/hospital_statistics.py
"""

from __future__ import annotations

import numpy as np

from secagg.statistics import (
    Category,
    Counts,
    Logistic,
    Number,
    Plan,
    Result,
    Survival,
    simulate,
)

PLAN = Plan(
    "relapses",
    columns={
        "age": Number(18, 100),
        "drug": Category(["old", "new"]),
        "relapse": Category(["no", "yes"]),
        "years": Number(0, 10, "0.01"),
    },
    statistics=(
        Counts(("drug", "relapse")),
        Logistic("relapse", ("age", "drug")),
        Survival("years", "relapse", (1, 2, 3, 4, 5), by="drug"),
    ),
)


def hospital(seed: int, patients: int = 200) -> dict[str, np.ndarray]:
    """Return a hospital's table: the new drug halves the risk, and age raises the risk."""
    draw = np.random.default_rng(seed)
    age, drug = draw.integers(18, 90, patients), draw.choice(["old", "new"], patients)
    risk = 0.2 * np.exp(0.02 * (age - 50)) * np.where(drug == "new", 0.5, 1.0)
    relapse, leaves = draw.exponential(1 / risk), draw.uniform(1, 8, patients)
    seen = np.where(relapse <= leaves, "yes", "no")
    return {"age": age, "drug": drug, "relapse": seen, "years": np.minimum(relapse, leaves)}


def main() -> Result:
    """Run the study, and print the tables that readers see."""
    result = simulate(PLAN, {f"hospital {i}": hospital(i) for i in range(1, 6)})
    print(f"{PLAN}\n\n{result}")
    return result


if __name__ == "__main__":
    main()
