"""Distance of the laws of noise from the laws that the bounds are proven for."""

from __future__ import annotations

import math
from dataclasses import dataclass

ROUNDED = 1 + 1e-9
"""Factor that exceeds the errors of floats."""


@dataclass(frozen=True)
class Distance:
    """Distance between the laws of independent elements, element by element.

    The probabilities of an element under the two laws differ by factors of e^±b at most.

    Attributes
    ----------
    total : float
        Σ b.
    squares : float
        V = Σ b². The logarithm of the product of the factors has a mean of at most V/2 and is
        subgaussian with V (Bun and Steinke 2016, proposition 3.3).
    """

    total: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, elements: int, each: float) -> Distance:
        """Return the distance of elements that all have the same b."""
        return cls(elements * each * ROUNDED, elements * each**2 * ROUNDED)

    @property
    def slack(self) -> float:
        """The least known a: products of factors are within e^±a, but for a chance of e^−72."""
        return min(self.total, self.steady_slack)

    @property
    def steady_slack(self) -> float:
        """V/2 + 12 √V, a form of `slack` that budgets bound."""
        return self.squares / 2 + 12 * math.sqrt(self.squares)

    def beyond(self, other: Distance) -> Distance:
        """Return the distance of laws that lie this far beyond laws of another distance.

        Rényi divergences have a triangle inequality (Bun and Steinke 2016, section 5), by
        which the roots of V add up.
        """
        root = math.sqrt(self.squares) + math.sqrt(other.squares)
        return Distance(self.total + other.total, root**2)

    def __add__(self, other: Distance) -> Distance:
        return Distance(self.total + other.total, self.squares + other.squares)

    def __mul__(self, sums: int) -> Distance:
        return Distance(self.total * sums, self.squares * sums)


NONE = Distance()
"""Distance of equal laws."""
