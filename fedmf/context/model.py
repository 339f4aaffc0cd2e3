"""What the context models have in common: a vector of parameters, and its gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.settings import NotNegative, Positive, Settings

__all__ = ["ContextModel", "Floats"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ContextModel(Settings, ABC):
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

    rate: Positive = 0.05
    reg: NotNegative = 0.0

    @abstractmethod
    def initial(self, n_features: int, centre: float, rng: np.random.Generator) -> Floats:
        """Return the starting parameters θ.

        Parameters
        ----------
        n_features
            The length of x, n_features ≥ 0.
        centre
            What θ_0 is to be: a rating in the middle of the scale.
        rng
            Draws the others, if they are drawn.

        Returns
        -------
        float64 array, shape (n_parameters,)
        """

    @abstractmethod
    def predict(self, theta: Floats, x: Floats) -> Floats:
        """Return ŷ, shape (n,), of features x, shape (n, n_features)."""

    @abstractmethod
    def gradient(self, theta: Floats, x: Floats, values: Floats) -> Floats:
        """Return Σ_j ∇_θ ½ (ŷ_j − r_j)² over the ratings r, shape (n,), of one user.

        Zero where the user has none. Same shape as θ.
        """
