"""FedLR: a linear model of the features, trained across all users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedmf.context.model import ContextModel, Floats

__all__ = ["FedLR"]


@dataclass(frozen=True, kw_only=True)
class FedLR(ContextModel):
    """ŷ = b + w · x with θ = (b, w): FedLR of Yang et al. 2021, table 4.

    Parameters
    ----------
    rate, reg
        As of `ContextModel`. The paper names none.
    """

    def initial(self, n_features: int, centre: float, rng: np.random.Generator) -> Floats:
        """Return θ = (centre, 0, …); see `ContextModel.initial`.

        Nothing is drawn, as the objective is convex.
        """
        theta = np.zeros(1 + n_features)
        theta[0] = centre
        return theta

    def predict(self, theta: Floats, x: Floats) -> Floats:
        """Return ŷ; see `ContextModel.predict`."""
        return np.asarray(theta[0] + x @ theta[1:])

    def gradient(self, theta: Floats, x: Floats, values: Floats) -> Floats:
        """Return Σ_j e_j (1, x_j) with e = ŷ − r; see `ContextModel.gradient`."""
        error = self.predict(theta, x) - values
        return np.concatenate(([error.sum()], error @ x))
