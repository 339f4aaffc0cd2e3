"""Steps of a server along a summed gradient: plain, or Adam."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedmf.settings import Fraction, Positive, Settings

__all__ = ["BETA_1", "BETA_2", "Adam", "Descent", "Optimiser"]

Floats = NDArray[np.float64]

BETA_1, BETA_2 = 0.9, 0.999  # the usual decays, those of Kingma and Ba 2015


class Optimiser(Protocol):
    """Makes steps from gradients."""

    def fresh(self) -> Callable[[Floats], Floats]:
        """Return a function from a gradient to what is to be subtracted, with no past yet."""
        ...


@dataclass(frozen=True, kw_only=True)
class Descent(Settings):
    """Plain gradient descent: γ · gradient (FCF, eq. 10).

    Parameters
    ----------
    rate
        γ > 0. Of a *sum* over users it has to be far below 1 over their number.
    """

    rate: Positive

    def fresh(self) -> Callable[[Floats], Floats]:
        """Return a function from a gradient to the step; see `Optimiser`."""
        return lambda gradient: np.asarray(self.rate * gradient)


@dataclass(frozen=True, kw_only=True)
class Adam(Settings):
    """Adaptive moment estimation (Kingma and Ba 2015; FCF, eq. 13 to 17).

    The paper's eq. 15 and 16 correct the bias by 1 − β; that is right for the first step only.
    Here the t-th step divides by 1 − β^t, as Kingma and Ba do.

    Parameters
    ----------
    rate
        γ > 0, about how far an element moves in one step.
    beta1, beta2
        0 ≤ β < 1, how much the averages of gradients and squared gradients keep of the past.
    epsilon
        ε > 0 of eq. 17, which keeps a zero gradient from being divided by zero.
    """

    rate: Positive = 0.2
    beta1: Fraction = 0.4
    beta2: Fraction = 0.99
    epsilon: Positive = 1e-8

    def fresh(self) -> Callable[[Floats], Floats]:
        """Return a function from a gradient to the step; see `Optimiser`."""
        return _AdamSteps(self)


class _AdamSteps:
    def __init__(self, settings: Adam) -> None:
        self._settings = settings
        self._t = 0
        self._m: Floats = np.zeros(())
        self._v: Floats = np.zeros(())

    def __call__(self, gradient: Floats) -> Floats:
        adam = self._settings
        self._t += 1
        self._m = adam.beta1 * self._m + (1 - adam.beta1) * gradient
        self._v = adam.beta2 * self._v + (1 - adam.beta2) * gradient**2
        mean = self._m / (1 - adam.beta1**self._t)
        square = self._v / (1 - adam.beta2**self._t)
        return np.asarray(adam.rate / (np.sqrt(square) + adam.epsilon) * mean)
