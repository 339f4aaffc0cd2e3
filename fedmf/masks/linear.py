"""Masks in closed form: the user's mean, and a ridge regression on the items' features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedmf.data import Features, Ratings
from fedmf.masks.protocol import FittedMask, Floats, check_features
from fedmf.models.mf import neutral
from fedmf.settings import NotNegative, Settings

TINY = 2.0**-40  # a penalty below this share of the trace of XᵀX counts as zero


@dataclass(frozen=True, kw_only=True)
class RidgeMask(Settings):
    """Ridge regression of each user on the items' features, the paper's LocalLR (section 4.1).

    Each user u minimises Σ_i (r_ui − b − w·x_i)² + penalty · |w|², as
    ``sklearn.linear_model.Ridge(alpha=penalty)`` does. The intercept b has no penalty. The
    paper's eq. 10 has no penalty at all. Without a penalty, users with fewer ratings than
    features would fit their ratings exactly and leave residuals of zero to train on.

    Parameters
    ----------
    penalty : float, weight of the squared weights, ≥ 0
    """

    penalty: NotNegative = 4.0

    def fit(self, features: Features, ratings: Ratings, seed: int = 0) -> FittedRidgeMask:
        """Solve each user's regression exactly; `seed` is unused, see `Mask.fit`."""
        x = check_features(features, ratings)
        d = x.shape[1]
        intercepts = np.full(ratings.n_users, neutral(ratings))
        weights = np.zeros((ratings.n_users, d))
        for user in np.flatnonzero(np.diff(ratings.indptr)):
            items, values = ratings.of_user(int(user))
            rated = x[items]
            x_mean, mean = rated.mean(axis=0), values.mean()
            centred = rated - x_mean
            normal = centred.T @ centred
            moment = centred.T @ (values - mean)
            if self.penalty > TINY * normal.trace():
                normal.flat[:: d + 1] += self.penalty
                w = np.linalg.solve(normal, moment)
            else:  # genres that always occur together make the equations singular
                w = np.linalg.lstsq(normal, moment)[0]
            weights[user], intercepts[user] = w, mean - x_mean @ w
        return FittedRidgeMask(x, intercepts, weights)


class FittedRidgeMask(FittedMask):
    """Fitted regressions of all users.

    Parameters
    ----------
    features : see `FittedMask`
    intercepts, weights : shapes (n_users,) and (n_users, d): b and w
    """

    def __init__(self, features: Floats, intercepts: Floats, weights: Floats) -> None:
        super().__init__(features, intercepts.size)
        self.intercepts, self.weights = intercepts, weights

    def _at(self, users: NDArray[np.integer[Any]], x: Floats) -> Floats:
        products = np.einsum("nd,nd->n", x, self.weights[users])
        return np.asarray(self.intercepts[users] + products)

    def linear(self) -> tuple[Floats, Floats]:
        """Return (b, w) of each user, and (1, x) of each item; see `FittedMask.linear`."""
        ones = np.ones((self.features.shape[0], 1))
        return (
            np.column_stack((self.intercepts, self.weights)),
            np.column_stack((ones, self.features)),
        )


@dataclass(frozen=True, kw_only=True)
class MeanMask(Settings):
    """Mean of each user's ratings, shrunk towards a neutral constant by `shrink`.

    The constant is 5/8 of the way up the scale, 3.5 for ratings from 1 to 5.

    Parameters
    ----------
    shrink : float, number of neutral ratings that are added to the user's own ratings, ≥ 0
    """

    shrink: NotNegative = 0.0

    def fit(self, features: Features, ratings: Ratings, seed: int = 0) -> FittedMeanMask:
        """Take each user's mean; features and `seed` are unused, see `Mask.fit`."""
        centre = neutral(ratings)
        rated = np.diff(ratings.indptr)
        above = np.bincount(ratings.users, ratings.values - centre, ratings.n_users)
        weight = rated + self.shrink
        zeros = np.zeros(ratings.n_users)
        means = centre + np.divide(above, weight, out=zeros, where=rated > 0)
        return FittedMeanMask(check_features(features, ratings, some=False), means)


class FittedMeanMask(FittedMask):
    """Means of all users.

    Parameters
    ----------
    features : see `FittedMask`
    means : shape (n_users,), the shrunk mean of each user's ratings
    """

    def __init__(self, features: Floats, means: Floats) -> None:
        super().__init__(features, means.size)
        self.means = means

    def _at(self, users: NDArray[np.integer[Any]], x: Floats) -> Floats:
        return np.asarray(self.means[users], dtype=np.float64)

    def linear(self) -> tuple[Floats, Floats]:
        """Return the means as a column, and a column of 1s; see `FittedMask.linear`."""
        return self.means[:, None], np.ones((self.features.shape[0], 1))
