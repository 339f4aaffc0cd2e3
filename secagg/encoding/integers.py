"""Encoding of whole numbers as integers modulo R."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from secagg._check import check_integer
from secagg._secrets import without_frames
from secagg._threads import in_slices
from secagg.encoding.encoding import Entropy, Lanes, Ring, Vector
from secagg.encoding.pieces import check_lanes, check_weight, one_dimensional
from secagg.errors import ParameterError

INTEGERS = b"integers"
"""Label of the canonical bytes."""
_ALONE, _LEAST = 1 << 19, 1 << 16
"""Elements that one thread encodes in a millisecond, and the least for a slice."""


@dataclass(frozen=True)
class Integers:
    """Encoding that keeps integers in [0, max] as they are: counts, indicators, histograms.

    Parameters
    ----------
    max : int
        The largest element, 1 ≤ max ≤ 2^62.

    Raises
    ------
    ParameterError
        `max` is not an int in this range.
    """

    max: int
    signed: ClassVar[bool] = False
    """Elements are never negative, so R must exceed n · max only."""

    def __post_init__(self) -> None:
        check_integer("max", self.max, 1, 1 << 62)
        object.__setattr__(self, "max", int(self.max))  # products of numpy's would wrap

    @property
    def max_encoded(self) -> int:
        """`max`, the largest encoded element of weight 1."""
        return self.max

    def canonical(self) -> bytes:
        """Return the bytes that identify this encoding in the parameters' digest."""
        return INTEGERS + struct.pack("<Q", self.max)

    @without_frames
    def encode(
        self, vector: Vector, ring: Ring, weight: int = 1, entropy: Entropy = os.urandom
    ) -> tuple[Lanes, int]:
        """Return weight · vector modulo R, and 0, the number of clipped elements.

        Raises
        ------
        ParameterError
            The vector is not a 1-d array of integers or bool, an element is outside
            [0, max], or not 0 ≤ weight · max < min(R, 2^62).
        """
        integers = one_dimensional(vector, "iub", "an integer type or bool")
        check_weight(weight, self.max, ring)
        lanes = ring.zeros(integers.size)
        # gathered, not raised in a thread, so that the error names the first element each time
        wrong: list[int] = []

        def part(rows: slice) -> None:
            some = integers[rows]
            outside = (some < 0) | (some > self.max)
            if outside.any():
                wrong.append(rows.start + int(outside.argmax()))
            lanes[rows] = some.astype(np.uint64) * np.uint64(weight)

        in_slices(part, integers.size, _LEAST, _ALONE)
        if wrong:
            raise ParameterError(
                f"element {min(wrong)} of the vector lies outside [0, {self.max}]; correct "
                "it, raise max, or sum negative numbers as floats with "
                "FixedPoint(clip, fractional_bits=0)"
            )
        return lanes, 0

    def decode(self, total: Lanes, ring: Ring) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return a sum modulo R as an int64 array, twice: as values and as exact integers."""
        check_lanes(total, ring)
        integers = total.astype(np.int64)
        return integers, integers
