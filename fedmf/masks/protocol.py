"""Interface of masks, fitted on each party's own ratings to predict for that party."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data import Features, Ratings
from fedmf.data.features import check_are_features
from fedmf.errors import DataError, ModelError
from fedmf.models.recommender import pairs

__all__ = ["FittedMask", "Floats", "Mask", "check_features"]

Floats = NDArray[np.float64]

PAIRS = 8192  # predicted at a time: a neural network's weights are then some 20 MB


class Mask(Protocol):
    """Hyper-parameters of a personalised mask."""

    def fit(self, features: Features, ratings: Ratings, seed: int = 0) -> FittedMask:
        """Train every party's mask on that party's ratings alone (eq. 10).

        Parameters
        ----------
        features : a row for each item, publicly known
        ratings : ratings of all parties; each sees its own row only
        seed : int, ≥ 0; each party draws its starting parameters from (seed, user)

        Raises
        ------
        SettingError
            If `features` is something else, such as an array.
        DataError
            If there is not one row of features per item, or no feature in it; `MeanMask` needs
            none.
        """
        ...


class FittedMask(ABC):
    """Masks of all parties; outside a simulation each party has only its own.

    Parameters
    ----------
    features : shape (n_items, d), the matrix of the features of the fit
    n_users
        Number of parties. The mask of one without a rating is the neutral constant, 3.5 on a
        scale of 1 to 5.
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
        """Return f_u(x) of each user, shape (n,), and its item's features, shape (n, d)."""

    def linear(self) -> tuple[Floats, Floats]:
        """Return tables A (n_users, l) and B (n_items, l) with f_u(i) = A_u · B_i.

        Raises ModelError if the mask is not linear in its parameters.
        """
        raise ModelError(
            f"{type(self).__name__} has no factor form, as it is not linear in its parameters: "
            "use another mask"
        )


def check_features(features: Features, ratings: Ratings, *, some: bool = True) -> Floats:
    """Return the matrix of features.

    Raises SettingError if `features` is something else, and DataError unless it has a row per
    item and, if `some`, a feature; only `MeanMask` needs none.
    """
    check_are_features(features=features)
    if some and not features.names:
        raise DataError(
            f"the items of {ratings.name} have no features: pass Features(array, names), or "
            "MeanMask as the mask"
        )
    if len(features) != ratings.n_items:
        raise DataError(
            f"features of {len(features)} items do not fit ratings of {ratings.n_items}: pass "
            "features of the same data set"
        )
    return features.matrix
