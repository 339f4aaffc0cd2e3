"""Polynomials and matrices over GF(p), by the fastest means for the prime; nothing is checked.

GF(2^61 − 1) has its own kernels, and odd primes below 2^63 have others (`secagg._fast`). All
other primes are computed with integers, of gmpy2 if installed, else of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from secagg import _fast

M61 = (1 << 61) - 1
"""The Mersenne prime 2^61 − 1: secrets are shared in this field."""

U64 = NDArray[np.uint64]
Elements = U64 | NDArray[np.object_]


def evaluate(coefficients: Elements, points: Elements, p: int) -> Elements:
    """Evaluate m polynomials, shape (t, m), at n points by Horner's rule: shape (n, m)."""
    if p == M61:
        return _fast.m61_poly_eval(narrow(coefficients), narrow(points))
    if _has_kernel(p):
        return _fast.prime_poly_eval(narrow(coefficients), narrow(points), p)
    number = _number()
    # Horner's rule begins at the highest coefficient
    polynomials = [[number(c) for c in column[::-1]] for column in coefficients.T.tolist()]
    values, prime = [], number(p)
    for x in map(number, points.tolist()):
        for polynomial in polynomials:
            value = number(0)
            for coefficient in polynomial:
                value = (value * x + coefficient) % prime
            values.append(int(value))
    return packed(objects(values), p).reshape(points.size, len(polynomials))


def matmul(a: Elements, b: Elements, p: int) -> Elements:
    """Return the product of the matrices a (n × k) and b (k × m)."""
    if p == M61:
        return _fast.m61_matmul(narrow(a), narrow(b))
    if _has_kernel(p):
        return _fast.prime_matmul(narrow(a), narrow(b), p)
    return packed(a.astype(object) @ b.astype(object) % p, p)


def lagrange_at_zero(points: Elements, p: int) -> Elements:
    """Return Lagrange's coefficients at zero; points are distinct and non-zero."""
    if p == M61:
        return _fast.m61_lagrange_at_zero(narrow(points))
    if _has_kernel(p):
        return _fast.prime_lagrange_at_zero(narrow(points), p)
    number = _number()
    xs, prime, above = [number(x) for x in points.tolist()], number(p), number(1)
    for x in xs:
        above = above * x % prime
    weights = []
    for i, x in enumerate(xs):
        below = x
        for other in xs[:i] + xs[i + 1 :]:
            below = below * (other - x) % prime
        weights.append(int(above * pow(below, -1, prime) % prime))
    return packed(objects(weights), p)


def packed(values: Elements, p: int) -> Elements:
    """Return canonical elements as ``uint64`` for p < 2^63, as Python integers beyond."""
    if p < 1 << 63:
        return values.astype(np.uint64)
    return objects([int(value) for value in values.ravel()]).reshape(values.shape)


def objects(values: Sequence[int]) -> NDArray[np.object_]:
    """Return a vector of Python integers."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _has_kernel(p: int) -> bool:
    return 2 < p < 1 << 63


@lru_cache
def _number() -> Callable[[int], int]:
    try:
        from gmpy2 import mpz  # imported here: the fields with kernels do not need gmpy2
    except ModuleNotFoundError:
        return int
    integer: Callable[[int], int] = mpz
    return integer


def narrow(a: Elements) -> U64:
    """Return elements below 2^64 as the kernels take them."""
    return np.ascontiguousarray(a, dtype=np.uint64)
