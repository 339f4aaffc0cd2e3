"""GF(p), p an odd prime below 2^63, on uint64 arrays: the specification of ``src/prime.c``.

Every array has canonical elements, 0 <= a < p; results are canonical again. Shapes, dtypes
and moduli that do not fit raise ValueError. The caller ensures that p is prime. Points and p
are public. The arithmetic uses Python integers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from secagg._fast.reference_checks import check_arrays

U64 = NDArray[np.uint64]


def prime_matmul(a: U64, b: U64, p: int) -> U64:
    """Matrix product mod p of a, uint64[n, k], and b, uint64[k, m]."""
    _check_prime(p)
    check_arrays(np.uint64, 2, a, b)
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"cannot multiply shapes {a.shape} and {b.shape}")
    product = np.zeros((a.shape[0], b.shape[1]), object)
    for column, row in zip(a.T.astype(object), b.astype(object), strict=True):
        product += column[:, None] * row
    return (product % p).astype(np.uint64)


def prime_poly_eval(coeffs: U64, xs: U64, p: int) -> U64:
    """Evaluate m polynomials at n points by Horner's rule.

    Parameters
    ----------
    coeffs : uint64[t, m]
        Column c is the polynomial Σ_j coeffs[j, c] X^j: row 0 has the constant terms.
    xs : uint64[n]
    p : int

    Returns
    -------
    uint64[n, m]
        Element [i, c] is polynomial c at xs[i]; all zero when t = 0.
    """
    _check_prime(p)
    check_arrays(np.uint64, 2, coeffs)
    check_arrays(np.uint64, 1, xs)
    points = xs.astype(object)[:, None]
    values = np.zeros((xs.size, coeffs.shape[1]), object)
    for row in coeffs[::-1].astype(object):
        values = (values * points + row) % p
    return values.astype(np.uint64)


def prime_lagrange_at_zero(xs: U64, p: int) -> U64:
    """Coefficients λ_i = Π_{j≠i} x_j / (x_j - x_i), so that f(0) = Σ_i λ_i f(x_i).

    ZeroDivisionError if a point is 0 or occurs twice.
    """
    _check_prime(p)
    check_arrays(np.uint64, 1, xs)
    points = xs.tolist()
    if 0 in points or len(set(points)) != len(points):
        raise ZeroDivisionError("a point of interpolation is 0 or occurs twice")
    # λ_i = (Π_j x_j) / (x_i Π_{j≠i} (x_j - x_i))
    every = 1
    for x in points:
        every = every * x % p
    weights = []
    for x in points:
        below = x
        for other in points:
            if other != x:
                below = below * (other - x) % p
        weights.append(every * pow(below, -1, p) % p)
    return np.array(weights, np.uint64)


def _check_prime(p: int) -> None:
    if not 3 <= p < 2**63 or p % 2 == 0:
        raise ValueError(f"modulus {p} is not an odd prime below 2^63")
