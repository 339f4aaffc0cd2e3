"""Wrong shares of many secrets with the same holders, found together, in GF(2^61 − 1) alone.

The shares of a secret are a Reed–Solomon word, a row for each holder (McEliece, Sarwate 1981).
A holder that changes its shares spoils the same row of many words, so a random linear
combination of the words shows all such rows. A dealer that shared off a polynomial spoils
only the dealer's own word, in any rows. With such a word the combination cannot be decoded, and
each half of the words is combined apart. A random combination hides a wrong share with
probability 1 / p, so a small field would not do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from secagg import _fast
from secagg.encoding import Entropy
from secagg.shamir.field import U64, Elements, narrow
from secagg.shamir.sharing import uniform

_FAILURES = 3
"""Undecodable secrets after which the search ends."""


def find_wrong(
    points: U64, shares: U64, threshold: int, entropy: Entropy
) -> dict[int, NDArray[np.intp] | None]:
    """Return the rows of the wrong shares, by the place of each secret among the d secrets.

    The shares are in GF(2^61 − 1); for other fields `combine` detects wrong shares only. A
    wrong share is overlooked with probability 2^−61 over the coefficients.

    Parameters
    ----------
    points : uint64 array, shape (n,), distinct and non-zero
    shares : uint64 array, shape (n, d, m), in [0, p)
        A row for each holder, of m limbs for each secret.
    threshold : int
        t, 1 ≤ t ≤ n.
    entropy : callable
        Source of the coefficients. A client must choose the shares without knowledge of the
        coefficients.

    Returns
    -------
    For each secret the rows, ascending; None if more than ⌊(n − t) / 2⌋ are wrong. After three
    such secrets the search ends without the rest, so that liars cannot buy time.
    """
    words, dual = _words(points, shares, entropy)
    off = _off(points, dual, words, threshold, entropy)
    wrong: dict[int, NDArray[np.intp] | None] = {
        column: np.empty(0, np.intp) for column in np.flatnonzero(~off).tolist()
    }
    pending = [np.flatnonzero(off)] if off.any() else []
    failures = 0
    while pending and failures < _FAILURES:
        columns = pending.pop()
        together = _combine(words[:, columns], uniform(columns.size, entropy))
        rows = _fast.m61_errors(points, dual, together, threshold)
        if columns.size == 1:
            wrong[int(columns[0])] = rows
            failures += rows is None
        elif rows is None:
            pending += np.array_split(columns, 2)
        else:  # each word is right in all other rows (proximity gap, Ben-Sasson et al. 2020)
            differs = off_polynomial(points, words[:, columns], rows, threshold)
            for column, different in zip(columns.tolist(), differs.T, strict=True):
                wrong[column] = rows[different]
    return wrong


def are_off(points: U64, shares: U64, threshold: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Return for each secret whether its shares are on no polynomial of degree below t.

    The parameters are as in `find_wrong`. Such shares are overlooked with probability 2^−60.

    Returns
    -------
    bool array, shape (d,)
    """
    words, dual = _words(points, shares, entropy)
    return _off(points, dual, words, threshold, entropy)


def leave_one_out(points: U64, values: U64) -> U64:
    """Return the m secrets that n = t + 1 shares give, leaving out each share in turn.

    A secret is λ·y − (λx)·y / x_i with Lagrange's λ of all n points at zero. The coefficients
    of the points without x_i are λ_j (1 − x_j / x_i).

    Parameters
    ----------
    points : uint64 array, shape (n,), distinct and non-zero
    values : uint64 array, shape (n, m)

    Returns
    -------
    uint64 array, shape (n, m)
    """
    weights = _fast.m61_lagrange_at_zero(points)
    both = np.stack([weights, _fast.m61_mul(weights, points)])
    whole, slope = _fast.m61_matmul(both, np.ascontiguousarray(values))
    n, m = values.shape
    inverse = np.repeat(_fast.m61_inv(points), m)
    less = _fast.m61_mul(inverse, np.tile(slope, n))
    return _fast.m61_sub(np.tile(whole, n), less).reshape(n, m)


def _words(points: U64, shares: U64, entropy: Entropy) -> tuple[U64, U64]:
    """Return a random combination of the limbs of each secret, and the dual code's factors."""
    n, secrets, limbs = shares.shape
    words = _combine(shares.reshape(-1, limbs), uniform(limbs, entropy)).reshape(n, secrets)
    # λ_i x_i, with Lagrange's λ at zero, is 1 / Π_{j≠i} (x_i − x_j) up to one factor
    return words, _fast.m61_mul(_fast.m61_lagrange_at_zero(points), points)


def _combine(columns: U64, coefficients: Elements) -> U64:
    """Return the linear combination of columns."""
    product = _fast.m61_matmul(narrow(columns), narrow(coefficients).reshape(-1, 1))
    return product[:, 0]


def _off(
    points: U64, dual: U64, words: U64, threshold: int, entropy: Entropy
) -> NDArray[np.bool_]:
    """Return True for each word off its polynomial f, by a random word of the dual code."""
    n = points.size
    # t points always lie on a polynomial of degree t − 1
    if n == threshold:
        return np.zeros(words.shape[1], dtype=np.bool_)
    # Σ_i dual_i g(x_i) f(x_i) = 0 for deg f < t, deg g < n − t
    coefficients = narrow(uniform(n - threshold, entropy)).reshape(-1, 1)
    g = _fast.m61_poly_eval(coefficients, points).ravel()
    checks = _fast.m61_matmul(_fast.m61_mul(dual, g).reshape(1, -1), words)
    return np.asarray(checks[0] != 0)


def off_polynomial(
    points: U64, words: U64, rows: NDArray[np.intp], threshold: int
) -> NDArray[np.bool_]:
    """Return True where a word differs, in some rows, from the polynomial of the other rows.

    The first t of the other rows determine the polynomial.

    f(x) = Σ_i (w_i / (x − x_i)) f(x_i) / Σ_i w_i / (x − x_i), w_i = 1 / Π_{j≠i} (x_i − x_j)
    (Berrut and Trefethen 2004, equation 4.2).

    Parameters
    ----------
    points : uint64 array, shape (n,), distinct and non-zero
    words : uint64 array, shape (n, m), in [0, p)
    rows : intp array, shape (r,), with r ≤ n − t
    threshold : int
        t.

    Returns
    -------
    bool array, shape (r, m)
    """
    kept = np.delete(np.arange(points.size), rows)[:threshold]
    known, xs = points[kept], points[rows]
    scaled = _fast.m61_mul(_fast.m61_lagrange_at_zero(known), known)  # w up to a factor
    below = _fast.m61_sub(np.repeat(xs, threshold), np.tile(known, xs.size))
    weights = _fast.m61_mul(np.tile(scaled, xs.size), _fast.m61_inv(below))
    weights = weights.reshape(xs.size, threshold)
    sums = _combine(weights, np.ones(threshold, dtype=np.uint64))
    above = _fast.m61_matmul(weights, np.ascontiguousarray(words[kept]))
    claimed = np.ascontiguousarray(words[rows]).ravel()
    there = _fast.m61_mul(claimed, np.repeat(sums, words.shape[1]))
    return np.asarray(above != there.reshape(above.shape))
