"""Masks of higher order, trained by Adam on arrays that are padded to a common length.

`FMMask` is a factorisation machine on the items' features, `NNMask` a small neural network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedmf.data import Features, Ratings
from fedmf.masks.protocol import FittedMask, Floats, check_features
from fedmf.models.mf import neutral
from fedmf.settings import Count, NotNegative, Settings
from fedmf.training import Adam
from fedmf.training.optimisers import BETA_1, BETA_2

Gradient = Callable[[Sequence[Floats]], Sequence[Floats]]

ELEMENTS = 1 << 17  # elements of features in a block: 1 MB, which stays in a processor's cache


@dataclass(frozen=True, eq=False)
class Padded:
    """Ratings of b users with similar numbers n_u of ratings, padded with zeros to n per user.

    Parameters
    ----------
    users : shape (b,), numbers of the users, each with a rating
    x : shape (b, n, d), features of the items that each user rated
    values : shape (b, n), ratings minus the user's mean
    means : shape (b,), mean rating of each user
    share : shape (b, n), 1 / n_u for each rating, so that Σ share · e² is eq. 10's mean
    """

    users: NDArray[np.int64]
    x: Floats
    values: Floats
    means: Floats
    share: Floats


def padded(features: Floats, ratings: Ratings) -> Iterator[Padded]:
    """Yield blocks of the users that have a rating, users with few ratings first."""
    rated = np.diff(ratings.indptr)
    order = np.argsort(rated, kind="stable")
    order = order[rated[order] > 0]
    while order.size:
        # as many users as fit when padded to the length of the last user; at least one user
        sizes = rated[order] * np.arange(1, order.size + 1) * features.shape[1]
        fit = max(1, int(np.searchsorted(sizes, ELEMENTS, side="right")))
        users, order = order[:fit], order[fit:]
        counts = rated[users]
        place = np.arange(counts.max())
        there = place < counts[:, None]
        which = np.where(there, ratings.indptr[users][:, None] + place, 0)
        values = np.where(there, ratings.values[which], 0.0)
        means = values.sum(axis=1) / counts
        yield Padded(
            users=users,
            x=features[ratings.items[which]] * there[:, :, None],
            values=np.where(there, values - means[:, None], 0.0),
            means=means,
            share=there / counts[:, None],
        )


def adam(parameters: Sequence[Floats], gradient: Gradient, steps: int, rate: float) -> None:
    """Train the parameters, arrays of any shapes, in place by Adam with the usual decays.

    Adam moves each element by that element's gradients alone. So users in the same array do not
    influence each other. `gradient` returns the derivative of the loss by each array.
    """
    adam = Adam(rate=rate, beta1=BETA_1, beta2=BETA_2)
    moves = [adam.fresh() for _ in parameters]
    for _ in range(steps):
        for one, move, slope in zip(parameters, moves, gradient(parameters), strict=True):
            np.subtract(one, move(slope), out=one)


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
            adam((w0, w, v), fm_descent(block, self.l2), self.steps, self.rate)
            fitted.constants[block.users] = block.means + w0[:, 0]
            fitted.weights[block.users] = w
            fitted.interactions[block.users] = v
        return fitted


def fm_descent(block: Padded, l2: float) -> Gradient:
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
            adam(parameters, nn_descent(block, self.l2), self.steps, self.rate)
            fitted.inner[block.users] = inner
            fitted.biases[block.users] = biases
            fitted.outer[block.users] = outer
            fitted.constants[block.users] = block.means + constants[:, 0]
        return fitted


def nn_descent(block: Padded, l2: float) -> Gradient:
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
