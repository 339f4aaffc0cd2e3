"""Training of many users' small models at once, on arrays padded to a common length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.data import Ratings
from fedmf.masks.protocol import Floats
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
        yield _block(order[:fit], features, ratings)
        order = order[fit:]


def _block(users: NDArray[np.int64], features: Floats, ratings: Ratings) -> Padded:
    rated = np.diff(ratings.indptr)[users]
    place = np.arange(rated.max())
    there = place < rated[:, None]
    which = np.where(there, ratings.indptr[users][:, None] + place, 0)
    values = np.where(there, ratings.values[which], 0.0)
    means = values.sum(axis=1) / rated
    return Padded(
        users=users,
        x=features[ratings.items[which]] * there[:, :, None],
        values=np.where(there, values - means[:, None], 0.0),
        means=means,
        share=there / rated[:, None],
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
