"""Model: a matrix with one element, and random numbers in place of training."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def get_dummy_model() -> list[NDArray[np.float64]]:
    """Return the model that the first round begins with."""
    return [np.ones((1, 1))]


def train_dummy_model(
    model: list[NDArray[np.float64]], node: int
) -> tuple[list[NDArray[np.float64]], float]:
    """Add numbers from 0 to 1 to the model; return it and one more of them as a metric."""
    draw = np.random.default_rng(node)
    return [array + draw.random(array.shape) for array in model], float(draw.random())
