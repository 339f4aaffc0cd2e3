"""Context models `FedLR`, `FedFM` and `FedNN` of Yang et al. 2021, table 4.

Each model has a vector of parameters, predictions from features, and the gradient of the
squared error. The paper gives no settings for these models.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.settings import Count, NotNegative, Positive, Settings

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ContextModel(Settings, ABC):
    """Model that predicts a rating from features x = (user's features, item's features).

    The parameters θ are one vector, shared by all users. The intercept θ_0 starts at `centre`,
    a public constant, and is not regularised; all other parameters are.

    Parameters
    ----------
    rate : float, step of the server's Adam, > 0
    reg : float, λ of the objective, the mean of ½ (ŷ − r)² over all ratings + ½ λ |θ_1…|², ≥ 0
    """

    rate: Positive = 0.05
    reg: NotNegative = 0.0

    @abstractmethod
    def initial(self, n_features: int, centre: float, rng: np.random.Generator) -> Floats:
        """Return the starting parameters θ, float64, shape (n_parameters,).

        Parameters
        ----------
        n_features : int, length of x, ≥ 0
        centre : float, starting θ_0, a rating in the middle of the scale
        rng : generator of all other parameters, if drawn at random
        """

    @abstractmethod
    def predict(self, theta: Floats, x: Floats) -> Floats:
        """Return ŷ, shape (n,), of features x, shape (n, n_features)."""

    @abstractmethod
    def gradient(self, theta: Floats, x: Floats, values: Floats) -> Floats:
        """Return Σ_j ∇_θ ½ (ŷ_j − r_j)² over one user's n ratings, the array `values`.

        The result is float64, of the shape of θ, and zero for n = 0.
        """


@dataclass(frozen=True, kw_only=True)
class FedLR(ContextModel):
    """Linear model ŷ = b + w · x with θ = (b, w); settings as in `ContextModel`."""

    def initial(self, n_features: int, centre: float, rng: np.random.Generator) -> Floats:
        """Return θ = (centre, 0, …), as the objective is convex; see `ContextModel.initial`."""
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


@dataclass(frozen=True, kw_only=True)
class FedFM(ContextModel):
    """Factorisation machine ŷ = b + w · x + Σ_{f<g} (v_f · v_g) x_f x_g.

    θ = (b, w, V), V row by row with a row v_f per feature. See Rendle, "Factorization
    Machines", ICDM 2010, eq. 1; by lemma 3.1 there the sum takes O(k · n_features).

    Parameters
    ----------
    k : int, length of each v_f, ≥ 1
    spread : float, > 0: V starts from N(0, spread²), as the gradient of V is zero at V = 0
    rate, reg : see `ContextModel`
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


@dataclass(frozen=True, kw_only=True)
class FedNN(ContextModel):
    """Neural network ŷ = b + a · max(0, W x + c), with one hidden layer.

    θ = (b, a, c, W); W is stored with a row of `hidden` weights for each feature.

    Parameters
    ----------
    hidden : int, number of rectified units, ≥ 1
    rate, reg : see `ContextModel`
    """

    hidden: Count = 16

    def initial(self, n_features: int, centre: float, rng: np.random.Generator) -> Floats:
        """Draw θ = (centre, a, 0, W), a and W from N(0, 2 / fan-in) (He et al. 2015)."""
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
