"""Types of flattened arrays, as mypy --strict and pyright must infer them; never run."""

from __future__ import annotations

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import secagg
from secagg.encoding import Suggestion

Array = NDArray[np.generic]


class Tensor:
    """Array of another framework."""


def mapping(arrays: dict[str, NDArray[np.float32]], state: dict[str, Tensor]) -> None:
    vector, schema = secagg.flatten(arrays)
    assert_type(vector, NDArray[np.float64])
    assert_type(schema.unflatten(vector), dict[str, Array])
    assert_type(schema.unflatten(vector, like=state), dict[str, Tensor])


def sequence(arrays: list[NDArray[np.float64]]) -> None:
    vector, schema = secagg.flatten(arrays)
    assert_type(schema.unflatten(vector), list[Array])
    assert_type(secagg.FixedPoint.suggest(vector, 10), Suggestion)
