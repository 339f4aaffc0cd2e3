"""Ratings from an exact sum: where one user alone rated an item, it is that user's gradient.

Secure aggregation keeps its promise here, and it does not help: what leaks is the sum itself.
The server knows from the count, itself summed securely, which items have one rater. It does not
know who that is, but the rows λ q_i − η_i = e_ui p_u of one user are parallel, so that it can
tell whose belong together, and `from_one_round` does the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedmf.attacks.leakage import Seen, from_one_round

__all__ = ["from_sum"]

Floats = NDArray[np.float64]

PARALLEL = 1e-4  # 1 − |cos|; rows of one user differ by the rounding, of two by p_u


def from_sum(
    q: Floats, total: Floats, counts: NDArray[np.int64], reg: float, grid: Floats
) -> tuple[NDArray[np.int64], Floats]:
    """Return what the sum says of the items with one rater.

    Three or more by one user have one answer. Of one or two several fit, and the likeliest
    length of p_u decides: P starts as Q does, and Q is public.

    Parameters
    ----------
    q, total
        float64, shape (m, k): the item factors that were given out, and the exact sum of the
        gradients.
    counts
        int64, shape (m,): the raters of each item in the same cohort.
    reg, grid
        As of `from_one_round`.

    Returns
    -------
    items
        int64, shape (s,): those with one rater.
    ratings
        float64, shape (s,): what that rater gave, NaN where the sum is zero and says nothing.
    """
    items = np.flatnonzero(counts == 1)
    ratings = np.full(items.size, np.nan)
    length = float(np.linalg.norm(q, axis=1).mean())
    table = reg * q[items] - total[items]
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), np.finfo(float).tiny)
    left = total[items].any(axis=1)
    while left.any():
        first = int(np.argmax(left))
        same = left & (np.abs(table @ table[first]) > 1 - PARALLEL)
        same[first] = True
        seen = Seen(q[items[same]], total[items[same]])
        ratings[same] = from_one_round(seen, reg, grid, length)
        left &= ~same
    return items, ratings
