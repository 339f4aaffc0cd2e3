"""The user's mean as a mask: it hides nothing but how kindly a user rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedmf.data import Features, Ratings
from fedmf.masks.protocol import FittedMask, Floats, check_features, neutral
from fedmf.settings import NotNegative, Settings

__all__ = ["FittedMeanMask", "MeanMask"]


@dataclass(frozen=True, kw_only=True)
class MeanMask(Settings):
    """The mean of the user's ratings, drawn towards the neutral constant where they are few.

    Parameters
    ----------
    shrink
        How many ratings of the neutral constant are added to the user's own, shrink ≥ 0.
    """

    shrink: NotNegative = 0.0

    def fit(self, features: Features, ratings: Ratings, seed: int = 0) -> FittedMeanMask:
        """Take each user's mean, whatever the features and `seed`; see `Mask.fit`."""
        centre = neutral(ratings)
        rated = np.diff(ratings.indptr)
        above = np.bincount(
            ratings.users, weights=ratings.values - centre, minlength=ratings.n_users
        )
        weight = rated + self.shrink
        means = centre + np.divide(
            above, weight, out=np.zeros(ratings.n_users), where=rated > 0
        )
        return FittedMeanMask(check_features(features, ratings, some=False), means)


class FittedMeanMask(FittedMask):
    """Each user's mean.

    Parameters
    ----------
    features
        As of `FittedMask`.
    means
        Shape (n_users,).
    """

    def __init__(self, features: Floats, means: Floats) -> None:
        super().__init__(features, means.size)
        self.means = means

    def _at(self, users: NDArray[np.integer[Any]], x: Floats) -> Floats:
        return np.asarray(self.means[users], dtype=np.float64)

    def linear(self) -> tuple[Floats, Floats]:
        """Return the means, and a one for each item; see `FittedMask.linear`."""
        return self.means[:, None], np.ones((self.features.shape[0], 1))
