"""Vector on the way into the ring: arguments are checked, then pieces are encoded.

Each piece can be masked and packed while the piece is in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg._check import is_integer
from secagg.encoding.encoding import Lanes, Ring, Vector
from secagg.errors import ParameterError

Floats = NDArray[np.float32] | NDArray[np.float64]

_SLICE = 1 << 15
"""Elements that are rounded stochastically together."""
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
    # numpy imports np.ma at first use, for which plain arrays need not wait
    if type(vector) is not np.ndarray and isinstance(vector, np.ma.MaskedArray):
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


def check_largest(values: Lanes, ring: Ring, largest: int) -> None:
    """Raise `ParameterError` if an element exceeds an encoding's bound, which noise fits."""
    elements = values.copy()
    ring.reduce(elements)
    centred = ring.centre(elements)
    if centred.size and max(int(centred.max()), -int(centred.min())) > largest:
        raise ParameterError(
            "the encoding made an element beyond its max_encoded, for which the noise is "
            "planned; let its encode clip elements, or declare a larger max_encoded"
        )


def check_lanes(total: Lanes, ring: Ring) -> None:
    """Raise `ParameterError` for a sum of another dtype than the ring's dtype."""
    if total.dtype != ring.dtype:
        raise ParameterError(
            f"the sum's dtype must be {ring.dtype} in {ring}, not {total.dtype}"
        )


@dataclass(eq=False, repr=False)  # the vector is private
class FixedPointPieces:
    """Vector of floats that is being encoded; several threads may call `write`.

    Parameters
    ----------
    values : float64 or float32 array, shape (d,), contiguous
    how : (float, float, int, int)
        Clip, scale 2^f, weight and R.
    seed : bytes or None
        Seed of the random bits of stochastic rounding. None: rounding to nearest.
    refuses : bool
        True: elements beyond the clip are an error.
    """

    values: Floats
    how: tuple[float, float, int, int]
    seed: bytes | None
    refuses: bool
    # number of clipped elements, and the place of a bad element, −1 if there is none
    _found: list[tuple[int, int]] = field(default_factory=list, init=False)

    def write(self, out: Lanes, rows: slice) -> None:
        """Overwrite `out` with the elements of `rows`, encoded."""
        # the words of a block stay in the cache, and all blocks share memory, because the first
        # touch of new pages takes longer than the words
        memory = np.empty(min(_SLICE, out.size), dtype=np.uint64)
        for first in range(0, out.size, _SLICE):
            part, start = out[first : first + _SLICE], rows.start + first
            words = None
            if self.seed is not None:
                words = memory[: part.size]
                words.fill(0)
                _fast.mask_words(words, self.seed, b"\x00", start)
            some = self.values[start : start + part.size]
            clipped, bad = _fast.encode(some, part, *self.how, words)
            self._found.append((clipped, start + bad if bad >= 0 else -1))

    def clipped(self) -> int:
        """Return the number of clipped elements once all are written.

        Raises
        ------
        ParameterError
            An element is invalid; the written elements have no meaning then.
        """
        # the first place, or the error would depend on the order of the threads
        bad = min((place for _, place in self._found if place >= 0), default=-1)
        if bad >= 0:
            raise ParameterError(
                f"element {bad} of the vector is NaN or infinite; replace it, or the sum "
                "would be lost"
            )
        clipped = sum(count for count, _ in self._found)
        if self.refuses and clipped:
            raise ParameterError(
                f"{clipped} elements of {self.values.size} are beyond the clip "
                f"{self.how[0]}; scale the vector, raise the clip, or pass "
                "beyond_clip='clip' to have them clipped and counted"
            )
        return clipped


@dataclass(eq=False, repr=False)  # the vector is private
class Whole:
    """Vector that an application's own encoding has encoded at once."""

    values: Lanes
    count: int

    def write(self, out: Lanes, rows: slice) -> None:
        """Copy the elements of `rows` to `out`."""
        out[:] = self.values[rows]

    def clipped(self) -> int:
        """Return the number of clipped elements."""
        return self.count
