"""Interface of masks: `Mask` has the hyper-parameters, `FittedMask` the models of all parties.

Each party fits a model on the party's own ratings, and predicts for that party only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data import Features, Ratings
from fedmf.data.features import check_rows
from fedmf.errors import DataError, ModelError
from fedmf.models.recommender import pairs

Floats = NDArray[np.float64]

PAIRS = 8192  # predicted at a time: a neural network's weights are then some 20 MB


class Mask(Protocol):
    """Hyper-parameters of a personalised mask, such as `RidgeMask`, and the training."""

    def fit(self, features: Features, ratings: Ratings, seed: int = 0) -> FittedMask:
        """Train every party's mask on that party's ratings alone (eq. 10).

        Parameters
        ----------
        features : public features of the items, with a row for each item
        ratings : ratings of all parties; each party uses that party's row only
        seed : int, ≥ 0; each party draws the starting parameters from (seed, user)

        Raises
        ------
        SettingError
            If `features` is not `Features`, but for example an array.
        DataError
            If `features` lacks or exceeds a row per item, or has no column. `MeanMask` needs no
            column.
        """


class FittedMask(ABC):
    """Masks of all parties; outside a simulation each party has only that party's mask.

    Parameters
    ----------
    features : shape (n_items, d), the matrix of the features that the masks were fitted on
    n_users
        Number of parties. For a party without a rating the mask predicts the neutral constant,
        3.5 on a scale of 1 to 5.
    """

    def __init__(self, features: Floats, n_users: int) -> None:
        self.features = features
        self.n_users = n_users

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return f_u(i) of each pair, not clipped to the scale; see `Recommender.predict`."""
        rows, columns = pairs(users, items, self.n_users, self.features.shape[0])
        found, shape = np.empty(rows.size), rows.shape
        rows, columns = rows.reshape(-1), columns.reshape(-1)
        for start in range(0, rows.size, PAIRS):
            part = slice(start, start + PAIRS)
            found[part] = self._at(rows[part], self.features[columns[part]])
        return found.reshape(shape)

    @abstractmethod
    def _at(self, users: NDArray[np.integer[Any]], x: Floats) -> Floats:
        """Return f_u(x) for users, shape (n,), and their items' features x, shape (n, d)."""

    def linear(self) -> tuple[Floats, Floats]:
        """Return tables A (n_users, l) and B (n_items, l) such that f_u(i) = A_u · B_i.

        Raises ModelError if the mask is not linear in the parameters, and so has no such form.
        """
        raise ModelError(
            f"{type(self).__name__} has no factor form, as it is not linear in its parameters: "
            "use another mask"
        )


def check_features(features: Features, ratings: Ratings, *, some: bool = True) -> Floats:
    """Validate the features of a mask and return their matrix.

    Raises SettingError if `features` is not `Features`, and DataError unless there is exactly a
    row per item. With `some`, DataError is also raised for features without a column.
    """
    check_rows(features, ratings)
    if some and not features.names:
        raise DataError(
            f"the items of {ratings.name} have no features: pass Features(array, names), or "
            "MeanMask as the mask"
        )
    return features.matrix
