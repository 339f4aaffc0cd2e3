"""Exact bounds of the Gaussian mechanism (Balle and Wang 2018), rounded up.

`secagg.statistics.budget` has a second search for σ, without dp-accounting, and says why.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from secagg.errors import needing

_RELATIVE, _ABSOLUTE = 1 + 1e-9, 1e-11
"""More than the errors of floats and of the search, which ends within 10^−12."""

_SMALL = 1e-8
"""Floats cannot tell a smaller ε from 0, for which δ is at most μ / √(2π)."""


def epsilon_of(squares: Fraction, delta: float) -> float:
    """Return ε of Gaussian mechanisms with Σ μ² > 0."""
    with needing("ε", "'secagg[privacy]'", "dp_accounting"):
        import dp_accounting
    with np.errstate(all="ignore"):  # the search meets the logarithm of 0
        found = dp_accounting.get_epsilon_gaussian(1 / math.sqrt(squares), delta)
    return float(found) * _RELATIVE + _ABSOLUTE


def sigma_of(epsilon: float, delta: float) -> float:
    """Return σ / Δ of a Gaussian mechanism, infinite for δ = 0."""
    if epsilon < _SMALL and delta:
        return _RELATIVE / (math.sqrt(2 * math.pi) * delta)
    with needing("noise", "'secagg[privacy]'", "dp_accounting"):
        import dp_accounting
    with np.errstate(all="ignore"):
        found = dp_accounting.get_sigma_gaussian(epsilon, delta)
    return float(found) * _RELATIVE + _ABSOLUTE
