"""Optimisers, which compute the server's step from a summed gradient: descent and Adam."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedmf.settings import BelowOne, Positive, Settings

Floats = NDArray[np.float64]

BETA_1, BETA_2 = 0.9, 0.999  # the usual decays, from Kingma and Ba 2015


class Optimiser(Protocol):
    """Settings of an optimiser; each training makes a separate step function from them."""

    def fresh(self) -> Callable[[Floats], Floats]:
        """Return a new function that takes a gradient and returns the step to subtract."""


@dataclass(frozen=True, kw_only=True)
class Descent(Settings):
    """Plain gradient descent: γ · gradient (FCF, eq. 10).

    Parameters
    ----------
    rate : float, γ > 0; for a *sum* over n users, far below 1 / n
    """

    rate: Positive

    def fresh(self) -> Callable[[Floats], Floats]:
        """Return a new step function; see `Optimiser`."""
        return lambda gradient: np.asarray(self.rate * gradient)


@dataclass(frozen=True, kw_only=True)
class Adam(Settings):
    """Adaptive moment estimation (Kingma and Ba 2015; FCF, eq. 13 to 17).

    Eq. 15 and 16 of the FCF paper divide by 1 − β, which is right for the first step only. Here
    the t-th step divides by 1 − β^t, as in Kingma and Ba.

    Parameters
    ----------
    rate : float, γ > 0, about the change of an element in one step
    beta1, beta2 : float, decays of the mean gradient and squared gradient, 0 ≤ β < 1
    epsilon : float, ε > 0 of eq. 17, which avoids a division by zero for zero gradients
    """

    rate: Positive = 0.2
    beta1: BelowOne = 0.4
    beta2: BelowOne = 0.99
    epsilon: Positive = 1e-8

    def fresh(self) -> Callable[[Floats], Floats]:
        """Return a new step function, with moments of zero; see `Optimiser`."""
        return _AdamSteps(self)


class _AdamSteps:
    """Step function of a single training, with the moments m and v of the gradients."""

    def __init__(self, settings: Adam) -> None:
        self._settings, self._t = settings, 0
        self._m = self._v = np.zeros(())

    def __call__(self, gradient: Floats) -> Floats:
        adam = self._settings
        self._t += 1
        self._m = adam.beta1 * self._m + (1 - adam.beta1) * gradient
        self._v = adam.beta2 * self._v + (1 - adam.beta2) * gradient**2
        mean = self._m / (1 - adam.beta1**self._t)
        square = self._v / (1 - adam.beta2**self._t)
        return np.asarray(adam.rate / (np.sqrt(square) + adam.epsilon) * mean)
