"""Exact arithmetic of whole numbers: products of matrices, and linear equations."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from secagg.statistics.layout import Exact

_LIMB = 16
_ROWS = 1 << 20  # products of two limbs and a million rows stay below 2^53


class Singular(Exception):
    """Equations without a single solution.

    The argument has the columns of the matrix that depend on each other.
    """


def indicator(counts: object) -> Exact:
    """Return 1 where a site has records, 0 elsewhere."""
    return (np.asarray(counts, object) > 0).astype(object)


def gram(left: NDArray[np.int64], right: NDArray[np.int64]) -> Exact:
    """Return leftᵀ · right exactly, an array of Python's ints.

    Parameters
    ----------
    left, right : int64 arrays
        Matrices with a row for each record, and elements in [0, 2^62).
    """
    total = np.zeros((left.shape[1], right.shape[1]), object)
    for first in range(0, len(left), _ROWS):
        rows = slice(first, first + _ROWS)
        others = _limbs(right[rows])
        for i, some in enumerate(_limbs(left[rows])):
            for j, other in enumerate(others):
                # dgemm is exact here, and many times faster than a product of integers
                part = (some.T @ other).astype(np.int64).astype(object)
                total += part << (_LIMB * (i + j))
    return total


def _limbs(matrix: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    bits = int(matrix.max(initial=0)).bit_length()
    mask, shifts = (1 << _LIMB) - 1, range(0, max(bits, 1), _LIMB)
    return [((matrix >> shift) & mask).astype(np.float64) for shift in shifts]


def solve(matrix: Exact, right: Exact) -> list[list[Fraction]]:
    """Return X of matrix · X = right for integers, by Bareiss' elimination (1968).

    Parameters
    ----------
    matrix : array of int, shape (p, p)
    right : array of int, shape (p, q)

    Raises
    ------
    Singular
        A column depends on earlier columns.
    """
    p = len(matrix)
    # the first entry of each row is in column k
    rows = [[int(x) for x in (*matrix[i], *right[i])] for i in range(p)]
    last = 1
    for k in range(p):
        pivot = next((i for i in range(k, p) if rows[i][0]), None)
        if pivot is None:
            raise Singular((*(j for j in range(k) if rows[j][0]), k))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        top, *rest = rows[k]
        for i, (factor, *row) in enumerate(rows):
            # the division leaves no remainder
            rows[i] = [(top * x - factor * y) // last for x, y in zip(row, rest, strict=True)]
        rows[k], last = rest, top
    return [[Fraction(x, last) for x in row] for row in rows]
