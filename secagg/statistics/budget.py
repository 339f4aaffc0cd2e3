"""ρ of a study by ε and δ.

`secagg.privacy` leaves this to dp-accounting. Here are a few lines instead: all sites compute
the same scales by ρ, whatever is installed.
"""

from __future__ import annotations

import math

from secagg.privacy import Budget
from secagg.privacy.loss import ORDERS

LEAST, FAILURE = 2.0**-7, 2.0**-57
"""Least ε, and least δ / e^ε, whose parts that a budget sets aside cover the largest study."""
_HALVINGS = 60
_MARGIN, _BITS = 2.0**-14, 32
"""More than ledgers round up in all steps; and bits of ρ, mostly without errors of floats."""


def is_covered(epsilon: float, delta: float) -> bool:
    """Return whether what a budget sets aside covers the largest study."""
    return epsilon >= LEAST and delta >= FAILURE * math.exp(min(epsilon, 700.0))


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest known ρ of sums with (ε, δ)-differential privacy, 0 for no sums.

    By Gaussian mechanisms with Σ μ² = 2ρ, within the bounds of a `Budget` (Balle and Wang, ICML
    2018, theorem 8). If these do not cover a study, by concentrated privacy, for exact noise.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    delta : float
        δ, 0 < δ < 1.
    """
    if is_covered(epsilon, delta):
        rho = _gaussian(*Budget(epsilon, delta).left)
    else:
        rho = _concentrated(epsilon, delta)
    part, exponent = math.frexp(max(rho * (1 - _MARGIN), 0.0))
    return math.ldexp(math.floor(math.ldexp(part, _BITS)), exponent - _BITS)


def _gaussian(epsilon: float, delta: float) -> float:
    """Return ρ = μ² / 2 of the largest μ whose mechanism is (ε, δ)-private."""
    low, high = 0.0, 2 * math.sqrt(2 * (epsilon - math.log(delta)))  # enough for δ ≤ ½
    for _ in range(_HALVINGS):
        mu = (low + high) / 2
        far, half = epsilon / mu, mu / 2
        upper, lower = (math.erfc(x / math.sqrt(2)) / 2 for x in (far - half, far + half))
        low, high = (mu, high) if upper - math.exp(epsilon) * lower <= delta else (low, mu)
    return low**2 / 2


def _concentrated(epsilon: float, delta: float) -> float:
    """Return the largest known ρ of an (ε, δ)-private ρ-zCDP mechanism.

    By each order α of Rényi divergences (Canonne, Kamath and Steinke, NeurIPS 2020,
    proposition 12): ln δ = (α − 1)(α ρ − ε) − ln(α − 1) + α ln(1 − 1 / α).
    """
    return max(
        (epsilon + (math.log(delta) + math.log(u) + (1 + u) * math.log1p(1 / u)) / u) / (1 + u)
        for u in (alpha - 1 for alpha in ORDERS)
    )
