"""Checks of the arguments of all encodings."""

from __future__ import annotations

from typing import cast

import numpy as np

from secagg._check import is_integer
from secagg.encoding.encoding import Vector
from secagg.encoding.ring import Lanes, Ring
from secagg.errors import ParameterError

_REMEDIES = {
    ("f", kind): "convert it with astype(float), or sum whole numbers with Integers"
    for kind in "iub"
} | {
    ("i", "f"): "sum floats with FixedPoint, or round them first, since astype alone turns "
    "1.9 into 1: np.rint(vector).astype(np.int64)"
}
"""Remedies by the kinds of an encoding's dtype and of the vector's dtype."""


def one_dimensional(vector: Vector, kinds: str, wanted: str) -> Vector:
    """Return a vector as a plain array; raise `ParameterError` for other kinds of dtype."""
    if isinstance(vector, np.ma.MaskedArray):
        raise ParameterError(
            "the vector is a masked array, whose hidden elements would be in the sum; "
            "replace them with .filled(value)"
        )
    if not isinstance(vector, np.ndarray) or vector.ndim != 1:
        array = isinstance(vector, np.ndarray)
        given = f"one of shape {vector.shape}" if array else f"a {type(vector).__name__}"
        raise ParameterError(
            f"the vector must be a 1-d numpy array, not {given}; make it with "
            "numpy.ravel(vector)"
        )
    half = vector.dtype == np.float16  # numpy converts its subnormal numbers in other time
    if vector.dtype.kind not in kinds or vector.dtype.itemsize > 8 or half:
        remedy = _REMEDIES.get((kinds[0], vector.dtype.kind), "convert it with astype")
        raise ParameterError(
            f"the vector's dtype must be {wanted}, not {str(vector.dtype)[:60]}; {remedy}"
        )
    return cast("Vector", np.asarray(vector))  # a subclass could compare in another way


def check_weight(weight: int, max_encoded: int, ring: Ring) -> None:
    """Raise `ParameterError` for a weight that is no int or leaves the ring."""
    if not is_integer(weight):
        raise ParameterError(f"the weight must be an int, not {type(weight).__name__}")
    if not 0 <= int(weight) * max_encoded < min(ring.modulus, 1 << 62):
        raise ParameterError(
            "the weight must be at least 0 and keep encoded elements below R and 2^62; take a "
            "smaller weight, or an encoding with a smaller clip or max"
        )


def check_encoded(values: Lanes, ring: Ring) -> None:
    """Raise `ParameterError` unless an encoding's elements are a vector in the ring's lanes.

    Elements of R or more raise, too: a cast or the masks would change such elements.
    """
    array = isinstance(values, np.ndarray) and values.ndim == 1
    if not array or values.dtype != ring.dtype:
        what = f"shape {values.shape}, {values.dtype}" if array else type(values).__name__
        raise ParameterError(
            f"the encoding made {what}; its encode must return a vector of {ring.dtype}"
        )
    if not ring.is_power_of_two and values.size and int(values.max()) >= ring.modulus:
        raise ParameterError(
            f"the encoding made an element of R or more in {ring}; reduce its elements modulo R"
        )


def check_lanes(total: Lanes, ring: Ring) -> None:
    """Raise `ParameterError` for a sum of another dtype than the ring's dtype."""
    if total.dtype != ring.dtype:
        raise ParameterError(
            f"the sum's dtype must be {ring.dtype} in {ring}, not {total.dtype}"
        )
