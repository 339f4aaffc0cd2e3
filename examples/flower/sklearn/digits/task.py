"""Model and data: each node has a part of the 1,797 pictures."""

from __future__ import annotations

import warnings

import numpy as np
from flwr.app import Array, ArrayRecord, Context
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

Floats = NDArray[np.float64]
START = ArrayRecord({"coef_": Array(np.zeros((10, 64))), "intercept_": Array(np.zeros(10))})


class Regression:
    """Logistic regression of ten classes, with the coefficients of a record."""

    def __init__(self, arrays: ArrayRecord) -> None:
        self._model = LogisticRegression(max_iter=5, warm_start=True)
        self._model.classes_ = np.arange(10)
        for name, array in arrays.items():
            setattr(self._model, name, array.numpy().copy())

    def fit(self, pictures: Floats, digits: Floats) -> None:
        """Take five steps from the coefficients, on purpose without convergence."""
        with warnings.catch_warnings(category=ConvergenceWarning, action="ignore"):
            self._model.fit(pictures, digits)

    def accuracy(self, pictures: Floats, digits: Floats) -> float:
        """Return the part of the pictures that are recognised."""
        return float(self._model.score(pictures, digits))

    def arrays(self) -> ArrayRecord:
        """Return the coefficients."""
        return ArrayRecord({name: Array(getattr(self._model, name)) for name in START})


def load_part(context: Context, *, test: bool) -> tuple[Floats, Floats]:
    """Return the node's pictures, shape (n, 64), and their digits; one in five is for tests."""
    pictures, digits = load_digits(return_X_y=True)
    config = context.node_config
    mine = np.arange(len(digits)) % int(config["num-partitions"]) == config["partition-id"]
    tested = np.cumsum(mine) % 5 == 0
    chosen = mine & (tested if test else ~tested)
    return pictures[chosen] / 16, digits[chosen]
