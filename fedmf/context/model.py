"""What the context models have in common: a vector of parameters, and its gradient."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.errors import SettingError

__all__ = ["ContextModel", "Floats", "check_positive", "check_width"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ContextModel(ABC):
    """A model of one rating from its features x = (user's features, item's features).

    Its parameters θ are one vector, shared by all users, of which θ_0 is the intercept: it
    starts at `centre`, a public constant, and is not regularised. All others are.

    Parameters
    ----------
    rate
        The step of the server's Adam, rate > 0.
    reg
        λ of the objective, the mean of ½ (ŷ − r)² over all ratings + ½ λ |θ_1…|², reg ≥ 0.

    Raises
    ------
    SettingError
        If a hyper-parameter is out of range.
    """

    rate: float = 0.05
    reg: float = 0.0

    def __post_init__(self) -> None:
        check_positive("rate", self.rate)
        if not isinstance(self.reg, int | float) or not 0 <= self.reg < math.inf:
            raise SettingError(f"reg = {self.reg!r} must be finite and at least 0")

    @abstractmethod
    def initial(self, n_features: int, centre: float, rng: np.random.Generator) -> Floats:
        """Draw the starting parameters θ, shape (n_parameters,)."""

    @abstractmethod
    def predict(self, theta: Floats, x: Floats) -> Floats:
        """Return ŷ, shape (n,), of features x, shape (n, n_features)."""

    @abstractmethod
    def gradient(self, theta: Floats, x: Floats, values: Floats) -> Floats:
        """Return Σ_j ∇_θ ½ (ŷ_j − r_j)² over the ratings r, shape (n,), of one user.

        Zero where the user has none. Same shape as θ.
        """


def check_width(name: str, value: object) -> None:
    """Refuse a number of factors or units that is not an integer of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SettingError(f"{name} = {value!r} must be an integer of at least 1")


def check_positive(name: str, value: object) -> None:
    """Refuse a hyper-parameter that is not a finite number above 0."""
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise SettingError(f"{name} = {value!r} must be finite and positive")
