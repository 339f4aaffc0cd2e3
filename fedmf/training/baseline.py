"""Recommender without a model: the items with the most ratings first."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data import Ratings
from fedmf.models.recommender import Trained, pairs


class Popularity(Trained):
    """Recommender that scores an item by the number of ratings, a sum over the users."""

    def __init__(self, train: Ratings) -> None:
        self.train = train
        self._counts = np.bincount(train.items, minlength=train.n_items).astype(np.float64)

    def predict(self, users: ArrayLike, items: ArrayLike) -> NDArray[np.float64]:
        """Return the number of ratings of each item."""
        return np.asarray(self._counts[pairs(users, items, self.n_users, self.n_items)[1]])
