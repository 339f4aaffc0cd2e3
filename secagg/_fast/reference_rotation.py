"""Randomised Walsh–Hadamard rotation: the specification of ``src/rotation.c``.

Additions are in a fixed order, so that results are the same on every machine.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from secagg._fast.reference_checks import check_arrays

U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

_LANES = 8
LEAST, LARGEST = 2.0**-300, 2.0**300
"""Bounds of an element: neither a square nor a difference of rotated elements is subnormal."""


def widen(x: F32 | F64, out: F64) -> tuple[float, int]:
    """Copy a vector into a longer vector of zeros, with bounded elements.

    Parameters
    ----------
    x : float32[d] or float64[d]
        Elements below 2^−300 in absolute value, and subnormal elements of float32, are taken as
        zero, and elements above 2^300 as ±2^300.
    out : float64[D], d ≤ D
        Overwritten with the elements of x and zeros.

    Returns
    -------
    square : float
        Sum of the squares of out: eight sums of every eighth element, added in halves.
    bad : int
        Index of the first element that is not finite, or −1. If an element is not finite, the
        square and the content of ``out`` are unspecified.

    Raises
    ------
    ValueError
        A dtype or a shape is wrong.
    """
    check_arrays(np.float32 if x.dtype == np.float32 else np.float64, 1, x)
    check_arrays(np.float64, 1, out)
    if x.size > out.size:
        raise ValueError(f"{x.size} elements do not fit {out.size}")
    least = max(LEAST, float(np.finfo(x.dtype).tiny))
    # subnormals to zero before any arithmetic, for which a CPU takes other time
    wide = np.where(np.abs(x) < least, 0, x).astype(np.float64)
    out[: x.size] = np.clip(wide, -LARGEST, LARGEST)
    out[x.size :] = 0
    finite = np.isfinite(x)
    if not finite.all():
        return math.inf, int(np.argmin(finite))
    squares = np.zeros(-(-out.size // _LANES) * _LANES)
    squares[: out.size] = out * out
    lanes = np.zeros(_LANES)
    for row in squares.reshape(-1, _LANES):
        lanes += row
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    return float(lanes[0]), -1


def rotate(values: F64, signs: U64, inverse: bool) -> None:
    """Multiply a vector by the orthonormal matrix H S in place, or by the inverse, S H.

    Parameters
    ----------
    values : float64[D], D a power of two
    signs : uint64[⌈D / 64⌉]
        Diagonal of S: element i is negated if bit i mod 64 of word i / 64 is 1.
    inverse : bool
        H is symmetric, H_ij = ±D^(−1/2), the Walsh–Hadamard matrix.

    Raises
    ------
    ValueError
        A dtype or a shape is wrong.
    """
    check_arrays(np.float64, 1, values)
    check_arrays(np.uint64, 1, signs)
    size = values.size
    if size == 0 or size & (size - 1):
        raise ValueError(f"{size} elements are no power of two")
    if signs.size != -(-size // 64):
        raise ValueError(f"{signs.size} words of signs for {size} elements")
    if not inverse:
        _flip(values, signs)
    step = 1
    while step < size:
        pairs = values.reshape(-1, 2, step)
        low, high = pairs[:, 0].copy(), pairs[:, 1].copy()
        pairs[:, 0], pairs[:, 1] = low + high, low - high
        step *= 2
    half_steps = size.bit_length() - 1
    values *= math.ldexp(math.sqrt(0.5) if half_steps % 2 else 1.0, -(half_steps // 2))
    if inverse:
        _flip(values, signs)


def _flip(values: F64, signs: U64) -> None:
    octets = signs.astype("<u8").view(np.uint8)
    bits = np.unpackbits(octets, bitorder="little", count=values.size)
    np.negative(values, out=values, where=bits.astype(bool))
