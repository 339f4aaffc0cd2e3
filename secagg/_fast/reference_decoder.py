"""Decoder of a Reed–Solomon word over GF(2^61 − 1): the specification of `m61_errors`.

n values of a polynomial of degree below t determine the polynomial as long as at most
⌊(n − t) / 2⌋ values are wrong (McEliece and Sarwate 1981). The wrong points are the roots of
the shortest recursion of the word's syndromes (Massey 1969), here in plain integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from secagg._fast.reference_m61 import P61


def m61_errors(
    xs: NDArray[np.uint64], dual: NDArray[np.uint64], word: NDArray[np.uint64], t: int
) -> NDArray[np.intp] | None:
    """Return the rows of the wrong values of a word.

    Parameters
    ----------
    xs : uint64[n]
        Distinct points other than 0.
    dual : uint64[n]
        The dual code's multipliers: Σ_i dual_i f(x_i) = 0 for deg f < n − 1.
    word : uint64[n]
        A polynomial's values at the points; some may be wrong.
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
    terms = [u * y for u, y in zip(dual.tolist(), word.tolist(), strict=True)]
    points = xs.tolist()
    syndromes = [
        sum(term * pow(x, k, P61) for x, term in zip(points, terms, strict=True)) % P61
        for k in range(xs.size - t)
    ]
    recursion = _shortest_recursion(syndromes)
    if 2 * (len(recursion) - 1) > len(syndromes):
        return None
    # fewer roots among the points than the degree: more values are wrong than can be located
    rows = [i for i, x in enumerate(points) if _is_root(recursion, x)]
    return np.array(rows, np.intp) if len(rows) == len(recursion) - 1 else None


def _shortest_recursion(s: Sequence[int]) -> list[int]:
    """Return c_0 = 1, …, c_L, L least, with Σ_i c_i s_(k−i) = 0 for L ≤ k (Massey 1969)."""
    c, before, scale, shift = [1], [1], 1, 1
    length = 0
    for k in range(len(s)):
        gap = sum(c[i] * s[k - i] for i in range(len(c)) if i <= k) % P61
        if gap:
            factor = gap * pow(scale, -1, P61)
            moved = [0] * shift + [factor * x for x in before]
            size = max(len(c), len(moved))
            padded, moved = (row + [0] * (size - len(row)) for row in (c, moved))
            if 2 * length <= k:
                length, before, scale, shift = k + 1 - length, c, gap, 0
            c = [(x - y) % P61 for x, y in zip(padded, moved, strict=True)]
        shift += 1
    return c[: length + 1] + [0] * (length + 1 - len(c))


def _is_root(recursion: Sequence[int], x: int) -> bool:
    """Return whether 1 / x is a root of Σ_i c_i X^i."""
    value = 0
    for coefficient in recursion:
        value = (value * x + coefficient) % P61
    return value == 0
