"""High-order mask: a small neural network on the items' features."""

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


@dataclass(frozen=True, kw_only=True)
class NNMask(Settings):
    """Neural network of each user with one hidden layer, the paper's LocalNN (section 4.1).

    f_u(x) = c + a · max(0, W x + b). The constant c starts at the user's mean and b at 0. W and
    a start at random, with the variances 2 / d for d features and 1 / hidden (He et al. 2015).
    Each user minimises the mean of eq. 10, plus l2 · (|a|² + |W|²). Unlike with
    ``sklearn.neural_network.MLPRegressor``, many users train at a time.

    Parameters
    ----------
    hidden : int, number of rectified linear units, ≥ 1
    l2 : float, weight of the penalty, ≥ 0
    rate : float, learning rate of Adam, ≥ 0
    steps : int, number of steps of Adam, each on all of a user's ratings, ≥ 1
    """

    hidden: Count = 16
    l2: NotNegative = 0.1
    rate: NotNegative = 0.02
    steps: Count = 80

    def fit(self, features: Features, ratings: Ratings, seed: int = 0) -> FittedNNMask:
        """Train each user's network; see `Mask.fit`."""
        x = check_features(features, ratings)
        n_users, d, h = ratings.n_users, x.shape[1], self.hidden
        fitted = FittedNNMask(
            x, np.zeros((n_users, d, h)), np.zeros((n_users, h)), np.zeros((n_users, h)),
            np.full(n_users, neutral(ratings)),
        )  # fmt: skip
        for block in padded(x, ratings):
            b = block.users.size
            inner, outer = np.empty((b, d, h)), np.empty((b, h))
            for place, user in enumerate(block.users.tolist()):
                rng = np.random.default_rng((seed, user))
                inner[place] = rng.normal(0, np.sqrt(2 / d), (d, h))
                outer[place] = rng.normal(0, np.sqrt(1 / h), h)
            biases, constants = np.zeros((b, h)), np.zeros((b, 1))
            parameters = inner, biases, outer, constants
            adam(parameters, _descent(block, self.l2), self.steps, self.rate)
            fitted.inner[block.users] = inner
            fitted.biases[block.users] = biases
            fitted.outer[block.users] = outer
            fitted.constants[block.users] = block.means + constants[:, 0]
        return fitted


def _descent(block: Padded, l2: float) -> Gradient:
    """Return a function that computes the gradients of the losses of a block's users."""
    x_t = np.swapaxes(block.x, 1, 2)

    def gradient(parameters: Sequence[Floats]) -> tuple[Floats, ...]:
        inner, biases, outer, constants = parameters
        units = np.maximum(block.x @ inner + biases[:, None, :], 0.0)
        found = constants + (units @ outer[:, :, None])[..., 0]
        e = 2 * block.share * (found - block.values)  # of the mean square
        back = np.where(units > 0, e[:, :, None] * outer[:, None, :], 0.0)
        return (
            x_t @ back + 2 * l2 * inner,
            back.sum(axis=1),
            (np.swapaxes(units, 1, 2) @ e[:, :, None])[..., 0] + 2 * l2 * outer,
            e.sum(axis=1, keepdims=True),
        )

    return gradient


class FittedNNMask(FittedMask):
    """Trained networks of all users.

    Parameters
    ----------
    features : see `FittedMask`
    inner, biases, outer, constants
        W, shape (n_users, d, hidden), b and a, each (n_users, hidden), and c, (n_users,).
    """

    def __init__(
        self, features: Floats, inner: Floats, biases: Floats, outer: Floats, constants: Floats
    ) -> None:
        super().__init__(features, constants.size)
        self.inner, self.biases, self.outer, self.constants = inner, biases, outer, constants

    def _at(self, users: NDArray[np.integer[Any]], x: Floats) -> Floats:
        units = np.einsum("nd,ndh->nh", x, self.inner[users]) + self.biases[users]
        products = np.einsum("nh,nh->n", np.maximum(units, 0.0), self.outer[users])
        return np.asarray(self.constants[users] + products)
