"""GF(p), p = 2^61 - 1, on uint64 arrays: the specification of ``src/m61.c``.

Every array has canonical elements, 0 <= a < p; results are canonical again. Shapes and dtypes
that do not fit raise ValueError. A product of two elements has 122 bits, so products are formed
from 32-bit halves and folded with 2^61 ≡ 1 (mod p).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from secagg._fast.reference_checks import check_arrays

U64 = NDArray[np.uint64]

P61 = 2**61 - 1
_HALF = 2**32 - 1


def m61_add(a: U64, b: U64) -> U64:
    """Sum of two vectors, elementwise mod p."""
    _same_length(a, b)
    return _canonical(a + b)


def m61_sub(a: U64, b: U64) -> U64:
    """Difference a - b of two vectors, elementwise mod p."""
    _same_length(a, b)
    # p - b is not negative, so the unsigned sum does not wrap
    return _canonical(a + (P61 - b))


def m61_mul(a: U64, b: U64) -> U64:
    """Product of two vectors, elementwise mod p."""
    _same_length(a, b)
    return _multiply(a, b)


def m61_inv(a: U64) -> U64:
    """Multiplicative inverses of a vector; ZeroDivisionError if an element is 0 mod p."""
    check_arrays(np.uint64, 1, a)
    values = a.tolist()
    if any(value % P61 == 0 for value in values):
        raise ZeroDivisionError("0 has no inverse in GF(2^61 - 1)")
    return np.array([pow(value, -1, P61) for value in values], np.uint64)


def m61_dot(a: U64, b: U64) -> int:
    """Inner product of two vectors, as an int in [0, p)."""
    products: list[int] = m61_mul(a, b).tolist()
    return sum(products) % P61


def m61_matmul(a: U64, b: U64) -> U64:
    """Matrix product mod p of a, uint64[n, k], and b, uint64[k, m]."""
    check_arrays(np.uint64, 2, a, b)
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"cannot multiply shapes {a.shape} and {b.shape}")
    product = np.zeros((a.shape[0], b.shape[1]), np.uint64)
    for column, row in zip(a.T, b, strict=True):
        product = _canonical(product + _multiply(column[:, None], row[None, :]))
    return product


def m61_poly_eval(coeffs: U64, xs: U64) -> U64:
    """Evaluate m polynomials at n points by Horner's rule.

    Parameters
    ----------
    coeffs : uint64[t, m]
        Column c is the polynomial Σ_j coeffs[j, c] X^j: row 0 has the constant terms.
    xs : uint64[n]

    Returns
    -------
    uint64[n, m]
        Element [i, c] is polynomial c at xs[i]; all zero when t = 0.
    """
    check_arrays(np.uint64, 2, coeffs)
    check_arrays(np.uint64, 1, xs)
    values = np.zeros((xs.size, coeffs.shape[1]), np.uint64)
    for row in coeffs[::-1]:
        values = _canonical(_multiply(values, xs[:, None]) + row)
    return values


def m61_lagrange_at_zero(xs: U64) -> U64:
    """Coefficients λ_i = Π_{j≠i} x_j / (x_j - x_i), so that f(0) = Σ_i λ_i f(x_i).

    ZeroDivisionError if a point is 0 mod p or occurs twice.
    """
    check_arrays(np.uint64, 1, xs)
    if not np.all(xs % P61):
        raise ZeroDivisionError("a point of interpolation is 0")
    # λ_i = (Π_j x_j) / (x_i Π_{j≠i} (x_j - x_i)): one product, then one batch of inverses.
    every = 1
    below = xs.copy()
    for i, x in enumerate(xs.tolist()):
        every = every * x % P61
        difference = _canonical(np.full_like(xs, x) + (P61 - xs))
        difference[i] = 1
        below = _multiply(below, difference)
    return _multiply(m61_inv(below), np.full_like(xs, every))


def _canonical(value: U64) -> U64:
    """Reduce 0 <= value < 2^64 to [0, p)."""
    folded = (value & P61) + (value >> 61)
    return np.where(folded >= P61, folded - P61, folded)


def _multiply(a: U64, b: U64) -> U64:
    """Product mod p of broadcastable arrays of canonical elements."""
    a1, a0 = a >> 32, a & _HALF
    b1, b0 = b >> 32, b & _HALF
    low, middle, high = a0 * b0, a1 * b0 + a0 * b1, a1 * b1
    # a b = high 2^64 + middle 2^32 + low, where 2^64 ≡ 8 and middle 2^32 is cut at bit 61;
    # the four terms stay below 2^61 + 2^33, so their sum fits 63 bits.
    total = (high << 3) + (middle >> 29) + ((middle & (2**29 - 1)) << 32)
    return _canonical(total + (low & P61) + (low >> 61))


def _same_length(a: U64, b: U64) -> None:
    check_arrays(np.uint64, 1, a, b)
    if a.size != b.size:
        raise ValueError(f"lengths differ: {a.size} and {b.size}")
