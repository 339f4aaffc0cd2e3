"""Exponents of growth, fitted on logarithms, and the check against the theoretical order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SLACK = 0.25
"""Most by which the exponent at the end may exceed the theoretical order, for noise.

A hidden factor n shows as 1, a hidden logarithm at these sizes as less than this.
"""


class Fit(NamedTuple):
    """Exponents p of time ~ size^p: over all points, and between the last two.

    Work that does not grow lowers the first; the second is nearer to that of large sizes.
    """

    overall: float
    end: float

    def hides(self, order: float) -> bool:
        """Return True if the times grow faster at the end than the theoretical order."""
        return self.end > order + SLACK


def fit(sizes: Sequence[int], seconds: Sequence[float]) -> Fit | None:
    """Fit exponents to positive seconds at distinct sizes ≥ 1; None for less than two."""
    if len(sizes) < 2:
        return None
    x, y = np.log(sizes), np.log(seconds)
    slope = float(np.polyfit(x, y, 1)[0])
    return Fit(slope, float((y[-1] - y[-2]) / (x[-1] - x[-2])))
