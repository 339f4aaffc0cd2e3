"""How far predictions lie from ratings, averaged per rating."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedmf.errors import DataError

__all__ = ["mae", "rmse"]


def rmse(ratings: NDArray[np.float64], predictions: NDArray[np.float64]) -> float:
    """Root mean squared error, √(mean (r − r̂)²), the FedMMF paper's section 4.3.

    Parameters
    ----------
    ratings, predictions
        Shape (n,), n ≥ 1, in the unit of the ratings.

    Raises
    ------
    DataError
        If the shapes differ or there is nothing to average.
    """
    return float(np.sqrt(np.mean(_differences(ratings, predictions) ** 2)))


def mae(ratings: NDArray[np.float64], predictions: NDArray[np.float64]) -> float:
    """Mean absolute error, mean |r − r̂|; parameters and errors as of `rmse`."""
    return float(np.mean(np.abs(_differences(ratings, predictions))))


def _differences(
    ratings: NDArray[np.float64], predictions: NDArray[np.float64]
) -> NDArray[np.float64]:
    if ratings.shape != predictions.shape or ratings.size == 0:
        raise DataError(
            f"an error needs as many predictions as ratings and at least one, not "
            f"{predictions.shape} predictions of {ratings.shape} ratings"
        )
    return ratings - predictions
