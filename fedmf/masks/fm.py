"""Two-order mask: a factorisation machine on the items' features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedmf.data import Features, Ratings
from fedmf.masks.padded import Gradient, Padded, adam, padded
from fedmf.masks.protocol import FittedMask, Floats, check_features
from fedmf.models.mf import neutral
from fedmf.settings import Count, NotNegative, Settings

SPREAD = 0.1  # deviation of the starting interaction factors; zero factors would never move


@dataclass(frozen=True, kw_only=True)
class FMMask(Settings):
    """Factorisation machine of each user (Rendle 2010, eq. 1), the paper's LocalFM.

    f_u(x) = w0 + w·x + Σ_{i<j} <v_i, v_j> x_i x_j. w0 starts at the user's mean, w at 0 and the
    v_i at random. Each user minimises the mean of eq. 10, plus l2 · (|w|² + |V|²).

    Parameters
    ----------
    k : int, length of each v_i, ≥ 1
    l2 : float, weight of the penalty, ≥ 0
    rate : float, learning rate of Adam, ≥ 0
    steps : int, number of steps of Adam, each on all of a user's ratings, ≥ 1
    """

    k: Count = 4
    l2: NotNegative = 0.1
    rate: NotNegative = 0.02
    steps: Count = 150

    def fit(self, features: Features, ratings: Ratings, seed: int = 0) -> FittedFMMask:
        """Train each user's machine; see `Mask.fit`."""
        x = check_features(features, ratings)
        n_users, d = ratings.n_users, x.shape[1]
        fitted = FittedFMMask(
            x, np.full(n_users, neutral(ratings)), np.zeros((n_users, d)),
            np.zeros((n_users, d, self.k)),
        )  # fmt: skip
        for block in padded(x, ratings):
            b = block.users.size
            w0, w, v = np.zeros((b, 1)), np.zeros((b, d)), np.empty((b, d, self.k))
            for place, user in enumerate(block.users.tolist()):
                v[place] = np.random.default_rng((seed, user)).normal(0, SPREAD, v[place].shape)
            adam((w0, w, v), _descent(block, self.l2), self.steps, self.rate)
            fitted.constants[block.users] = block.means + w0[:, 0]
            fitted.weights[block.users] = w
            fitted.interactions[block.users] = v
        return fitted


def _descent(block: Padded, l2: float) -> Gradient:
    """Return a function that computes the gradients of the losses of a block's users."""
    squares, x_t = block.x**2, np.swapaxes(block.x, 1, 2)
    squares_t = np.swapaxes(squares, 1, 2)

    def gradient(parameters: Sequence[Floats]) -> tuple[Floats, ...]:
        w0, w, v = parameters
        sums = block.x @ v  # Σ_i v_if x_i, shape (b, n, k)
        pairs = 0.5 * ((sums**2).sum(-1) - (squares @ (v**2).sum(-1)[:, :, None])[..., 0])
        found = w0 + (block.x @ w[:, :, None])[..., 0] + pairs
        e = 2 * block.share * (found - block.values)  # of the mean square
        return (
            e.sum(axis=1, keepdims=True),
            (x_t @ e[:, :, None])[..., 0] + 2 * l2 * w,
            x_t @ (e[:, :, None] * sums) - (squares_t @ e[:, :, None]) * v + 2 * l2 * v,
        )

    return gradient


class FittedFMMask(FittedMask):
    """Trained factorisation machines of all users.

    Parameters
    ----------
    features : see `FittedMask`
    constants, weights, interactions
        Shapes (n_users,), (n_users, d) and (n_users, d, k): w0, w and V.
    """

    def __init__(
        self, features: Floats, constants: Floats, weights: Floats, interactions: Floats
    ) -> None:
        super().__init__(features, constants.size)
        self.constants, self.weights, self.interactions = constants, weights, interactions

    def _at(self, users: NDArray[np.integer[Any]], x: Floats) -> Floats:
        v = self.interactions[users]
        sums = np.einsum("nd,ndk->nk", x, v)
        squares = np.einsum("nd,ndk->nk", x**2, v**2)
        pairs = 0.5 * (sums**2 - squares).sum(axis=1)
        products = np.einsum("nd,nd->n", x, self.weights[users])
        return np.asarray(self.constants[users] + products + pairs)

    def linear(self) -> tuple[Floats, Floats]:
        """Return rows (w0, w, all <v_i, v_j>) and (1, x, all x_i x_j); see `FittedMask`."""
        x = self.features
        first, second = np.triu_indices(x.shape[1], k=1)
        v = self.interactions
        products = np.einsum("upk,upk->up", v[:, first], v[:, second])
        return (
            np.column_stack((self.constants, self.weights, products)),
            np.column_stack((np.ones(x.shape[0]), x, x[:, first] * x[:, second])),
        )
