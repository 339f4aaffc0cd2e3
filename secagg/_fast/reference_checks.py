"""Check of the arrays that a twin takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_arrays(dtype: type[np.generic], dimensions: int, *arrays: NDArray[Any]) -> None:
    """Raise ValueError unless all arrays are C-contiguous, of this dtype and dimension."""
    for x in arrays:
        if x.dtype != dtype or x.ndim != dimensions or not x.flags.c_contiguous:
            raise ValueError(
                f"expected C-contiguous arrays of {dtype.__name__}, of {dimensions} dimensions"
            )


def check_lanes(lanes: NDArray[np.uint32] | NDArray[np.uint64]) -> None:
    """Raise ValueError unless `lanes` is a contiguous vector of uint32 or uint64."""
    check_arrays(np.uint32 if lanes.dtype == np.uint32 else np.uint64, 1, lanes)


def check_law(entries: int, halves: int, k: int, scale: int, shift: int) -> None:
    """Raise ValueError unless all numbers of `gaussian_shares` fit the words."""
    if not (1 <= entries <= 22 and halves == 2):
        raise ValueError(f"expected a table of at most 22 rows of 2, not {entries} of {halves}")
    if not (1 <= k < 1 << 28 and 1 <= scale < 1 << 63 and 0 <= shift < 64):
        raise ValueError(f"k {k}, scale {scale} or shift {shift} is out of range")
    if k * k * (2 * entries + 1) * scale >> shift >= 64 << 64:
        raise ValueError(f"the exponents of k {k}, scale {scale}, shift {shift} reach 64")
