"""FedNN: a network of one hidden layer over the features, trained across all users."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedmf.context.model import ContextModel, Floats
from fedmf.settings import Count

__all__ = ["FedNN"]


@dataclass(frozen=True, kw_only=True)
class FedNN(ContextModel):
    """ŷ = b + a · max(0, W x + c) with θ = (b, a, c, W), W in rows of a feature each.

    FedNN of Yang et al. 2021, table 4. The paper names neither layers nor units.

    Parameters
    ----------
    hidden
        The number of rectified units, hidden ≥ 1.
    rate, reg
        As of `ContextModel`.
    """

    hidden: Count = 16

    def initial(self, n_features: int, centre: float, rng: np.random.Generator) -> Floats:
        """Draw θ = (centre, a, 0, W); see `ContextModel.initial`.

        a and W come from N(0, 2 / fan-in) (He et al. 2015).
        """
        a = rng.normal(0.0, math.sqrt(2 / self.hidden), size=self.hidden)
        w = rng.normal(0.0, math.sqrt(2 / max(n_features, 1)), size=n_features * self.hidden)
        return np.concatenate(([centre], a, np.zeros(self.hidden), w))

    def predict(self, theta: Floats, x: Floats) -> Floats:
        """Return ŷ; see `ContextModel.predict`."""
        a, c, w = self._parts(theta)
        return np.asarray(theta[0] + np.maximum(x @ w + c, 0.0) @ a)

    def gradient(self, theta: Floats, x: Floats, values: Floats) -> Floats:
        """Return the sum of the gradients, by back-propagation; see `ContextModel.gradient`."""
        a, c, w = self._parts(theta)
        active = np.maximum(x @ w + c, 0.0)
        error = theta[0] + active @ a - values
        back = error[:, None] * a * (active > 0)
        return np.concatenate(
            ([error.sum()], error @ active, back.sum(axis=0), (x.T @ back).reshape(-1))
        )

    def _parts(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        n = self.hidden
        return theta[1 : 1 + n], theta[1 + n : 1 + 2 * n], theta[1 + 2 * n :].reshape(-1, n)
