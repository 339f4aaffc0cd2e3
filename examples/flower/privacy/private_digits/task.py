"""Model and data: softmax regression on the 1,797 pictures that scikit-learn has."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Floats = NDArray[np.float64]
PARTS = {"train": slice(0, 1200), "validation": slice(1200, 1440), "test": slice(1440, 1797)}
"""Parts of the shuffled pictures; settings are chosen on the validation part."""
STEPS, RATE = 3, 1.0
"""Local steps of a node, and the size of a step."""


class Pictures(NamedTuple):
    """Pictures with a constant, shape (n, 65), and their digits, shape (n,)."""

    pixels: Floats
    digits: NDArray[np.int64]


def load(part: Literal["train", "validation", "test"]) -> Pictures:
    """Return a part of the pictures."""
    pixels, digits = load_digits(return_X_y=True)
    shuffled = np.random.default_rng(0).permutation(len(digits))[PARTS[part]]
    constant = np.ones((len(shuffled), 1))
    return Pictures(np.hstack([pixels[shuffled] / 16, constant]), digits[shuffled])


def of_node(data: Pictures, node: int, nodes: int) -> Pictures:
    """Return the pictures of a node."""
    return Pictures(data.pixels[node::nodes], data.digits[node::nodes])


def start() -> Floats:
    """Return the model that the first round begins with."""
    return np.zeros((65, 10))


def trained(model: Floats, data: Pictures, rate: float = RATE) -> Floats:
    """Return a model after some steps of gradient descent."""
    pixels, digits = data
    for _ in range(STEPS):
        scores = pixels @ model
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances[np.arange(len(digits)), digits] -= 1
        model = model - rate * pixels.T @ chances / len(digits)
    return model


def accuracy(model: Floats, data: Pictures) -> float:
    """Return the part of the pictures that a model recognises."""
    return float(np.mean((data.pixels @ model).argmax(axis=1) == data.digits))
