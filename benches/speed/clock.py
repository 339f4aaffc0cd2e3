"""Timer of cases, which earlier releases of secagg do not have."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeAlias

Measure: TypeAlias = Callable[[], float]
"""Function that runs a case once and returns its seconds."""

LEAST = 0.05
"""Seconds for which a short call is repeated."""


def timed(call: Callable[[], object], units: int = 1) -> Measure:
    """Return the measure of a call, its mean wall-clock seconds ÷ `units` ≥ 1.

    A call of less than `LEAST` seconds is repeated for so long.
    """

    def measure() -> float:
        count, start = 0, perf_counter()
        while (passed := perf_counter() - start) < LEAST or count == 0:
            call()
            count += 1
        return passed / count / units

    return measure
