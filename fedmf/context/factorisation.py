"""FedFM: a factorisation machine over the features, trained across all users."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedmf.context.model import ContextModel, Floats
from fedmf.settings import Count, Positive

__all__ = ["FedFM"]


@dataclass(frozen=True, kw_only=True)
class FedFM(ContextModel):
    """ŷ = b + w · x + Σ_{f<g} (v_f · v_g) x_f x_g with θ = (b, w, V), V in rows of v_f.

    The second-order machine of Rendle, "Factorization Machines", ICDM 2010, eq. 1, computed as
    its lemma 3.1 does in O(k · n_features); FedFM of Yang et al. 2021, table 4.

    Parameters
    ----------
    k
        The length of the v_f, k ≥ 1.
    spread
        V starts from N(0, spread²), spread > 0; at V = 0 its gradient would stay zero.
    rate, reg
        As of `ContextModel`. The paper names none of the four.
    """

    k: Count = 4
    spread: Positive = 0.1

    def initial(self, n_features: int, centre: float, rng: np.random.Generator) -> Floats:
        """Draw θ = (centre, 0, V); see `ContextModel.initial`."""
        v = rng.normal(0.0, self.spread, size=n_features * self.k)
        return np.concatenate(([centre], np.zeros(n_features), v))

    def predict(self, theta: Floats, x: Floats) -> Floats:
        """Return ŷ; see `ContextModel.predict`."""
        w, v = self._parts(theta, x.shape[1])
        return self._predicted(theta[0], w, v, x, x @ v)

    def gradient(self, theta: Floats, x: Floats, values: Floats) -> Floats:
        """Return the sum of the gradients; see `ContextModel.gradient`.

        ∂ŷ/∂v_f = x_f (s − x_f v_f), where s = Σ_g x_g v_g.
        """
        w, v = self._parts(theta, x.shape[1])
        s = x @ v
        error = self._predicted(theta[0], w, v, x, s) - values
        weighted = x.T * error
        slope = weighted @ s - (weighted * x.T).sum(axis=1)[:, None] * v
        return np.concatenate(([error.sum()], weighted.sum(axis=1), slope.reshape(-1)))

    def _parts(self, theta: Floats, n_features: int) -> tuple[Floats, Floats]:
        return theta[1 : 1 + n_features], theta[1 + n_features :].reshape(n_features, self.k)

    def _predicted(self, b: float, w: Floats, v: Floats, x: Floats, s: Floats) -> Floats:
        squares = (s**2).sum(axis=1) - x**2 @ (v**2).sum(axis=1)
        return np.asarray(b + x @ w + 0.5 * squares)
