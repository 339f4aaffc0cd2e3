"""Decoder of a Reed–Solomon word over GF(2^61 − 1): the specification of `m61_errors`.

n values of a polynomial of degree below t determine it as long as at most ⌊(n − t) / 2⌋ of them
are wrong (McEliece and Sarwate 1981). This decoder is Gao's (2003), in plain integers:
interpolate all points, run Euclid's algorithm half-way, divide. That of ``src/m61.c`` looks for
the shortest recursion of the syndromes (Massey 1969).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from secagg._fast.reference_m61 import P61, m61_poly_eval

__all__ = ["m61_errors"]


def m61_errors(
    xs: NDArray[np.uint64], dual: NDArray[np.uint64], word: NDArray[np.uint64], t: int
) -> NDArray[np.intp] | None:
    """Return the rows of the wrong values of a word.

    Parameters
    ----------
    xs : uint64[n]
        Distinct points other than 0.
    dual : uint64[n]
        The dual code's multipliers: Σ_i dual_i f(x_i) = 0 for deg f < n − 1. Not needed here.
    word : uint64[n]
        A polynomial's values at the points, some of them wrong.
    t : int
        Number of coefficients, 1 ≤ t ≤ n.

    Returns
    -------
    intp[e], ascending, or None for more than ⌊(n − t) / 2⌋ wrong values.
    """
    if not xs.size == dual.size == word.size:
        raise ValueError(f"lengths differ: {xs.size}, {dual.size} and {word.size}")
    if not 1 <= t <= xs.size:
        raise ValueError(f"{xs.size} values do not determine {t} coefficients, at least 1")
    polynomial = decode(xs.tolist(), word.tolist(), t, P61)
    if polynomial is None:
        return None
    column = np.array(polynomial, np.uint64).reshape(-1, 1)
    return np.flatnonzero(m61_poly_eval(column, xs)[:, 0] != word)


def decode(points: Sequence[int], values: Sequence[int], t: int, p: int) -> list[int] | None:
    """Return the polynomial of at most t coefficients, constant term first, or None."""
    n = len(points)
    g0, g1 = _vanishing(points, p), _interpolate(points, values, p)
    v0: list[int] = []
    v1: list[int] = [1]
    while 2 * (len(g1) - 1) >= n + t:
        quotient, rest = _divide(g0, g1, p)
        g0, g1 = g1, rest
        v0, v1 = v1, _subtract(v0, _multiply(quotient, v1, p), p)
    polynomial, rest = _divide(g1, v1, p)
    return polynomial if not rest and len(polynomial) <= t else None


def _trim(a: list[int]) -> list[int]:
    while a and a[-1] == 0:
        a.pop()
    return a


def _subtract(a: list[int], b: list[int], p: int) -> list[int]:
    size = max(len(a), len(b))
    a, b = a + [0] * (size - len(a)), b + [0] * (size - len(b))
    return _trim([(x - y) % p for x, y in zip(a, b, strict=True)])


def _multiply(a: list[int], b: list[int], p: int) -> list[int]:
    out = [0] * (len(a) + len(b) - 1) if a and b else []
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] = (out[i + j] + x * y) % p
    return _trim(out)


def _divide(a: list[int], b: list[int], p: int) -> tuple[list[int], list[int]]:
    rest = list(a)
    quotient = [0] * max(0, len(a) - len(b) + 1)
    inverse = pow(b[-1], -1, p)
    for shift in range(len(quotient) - 1, -1, -1):
        factor = rest[shift + len(b) - 1] * inverse % p
        quotient[shift] = factor
        for i, y in enumerate(b):
            rest[shift + i] = (rest[shift + i] - factor * y) % p
    return _trim(quotient), _trim(rest)


def _vanishing(points: Sequence[int], p: int) -> list[int]:
    """Return Π (X − x_i)."""
    out = [1]
    for x in points:
        out = _multiply(out, [-x % p, 1], p)
    return out


def _interpolate(points: Sequence[int], values: Sequence[int], p: int) -> list[int]:
    """Expand Newton's divided differences."""
    table = list(values)
    for level in range(1, len(points)):
        for i in range(len(points) - 1, level - 1, -1):
            run = pow(points[i] - points[i - level], -1, p)
            table[i] = (table[i] - table[i - 1]) * run % p
    out: list[int] = []
    for x, value in zip(reversed(points), reversed(table), strict=True):
        shifted = _subtract(_multiply(out, [-x % p, 1], p), [], p)
        out = _subtract(shifted, [-value % p], p)
    return out
