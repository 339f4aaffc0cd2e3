"""Specification of the compiled kernels, in plain numpy.

Every sum adds its terms in order, one after the other, independent of any library. So a user's
numbers do not depend on which other users are in the block, on the machine, or on whether the
compiled kernels run.

A block is the ratings of n users as compressed rows: ``indptr`` (int64, n + 1, ascending from
0), ``items`` (int32, 0 ≤ item < m) and ``values`` (float64). ``q`` is float64 (m, k) and ``p``
float64 (n, k), row by row; k ≥ 1. The leading ``fixed`` < k columns of ``p`` are constants that
no step moves. λ is ``reg``, and counts once per rating.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["add_rows", "descend", "gradients", "predict", "solve"]

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

TINY = 2.0**-40  # below this part of itself a pivot is taken for zero


def predict(p: F64, q: F64, users: I64, items: I64, out: F64) -> None:
    """Set out_j to q_i · p_u, i = items_j and u = users_j."""
    out[:] = _dots(p[users], q[items])


def descend(
    indptr: I64, items: I32, values: F64, q: F64, p: F64, fixed: int, rate: float, reg: float
) -> None:
    """Subtract from every p_u γ (λ n_u p_u − Σ_i e_ui q_i), e_ui = r_ui − q_i · p_u."""
    errors = values - _dots(p[_users(indptr)], q[items])
    for u, (first, end) in enumerate(pairwise(indptr.tolist())):
        if first == end:
            continue
        rated = q[items[first:end], fixed:]
        slope = np.add.accumulate(errors[first:end, None] * rated)[-1]
        mine = p[u, fixed:]
        mine -= rate * ((end - first) * reg * mine - slope)


def solve(
    indptr: I64, items: I32, values: F64, q: F64, p: F64, fixed: int, reg: float
) -> NDArray[np.bool_]:
    """Set every p_u to the solution of (QᵀQ + λ n_u I) p_u = Qᵀr, Q the rows q_i u rated.

    The part of r_ui that the fixed columns explain is taken off it first. Users without a
    rating keep their p_u.

    Returns
    -------
    solved
        bool (n,): False where the equations are singular in floating point, which takes
        λ = 0 or nearly; p_u is then as it was.
    """
    n = q.shape[1] - fixed
    table = np.zeros((p.shape[0], n + 1, n))  # QᵀQ + λ n_u I, and Qᵀr as its last row
    for u, (first, end) in enumerate(pairwise(indptr.tolist())):
        if first == end:
            continue
        rated, targets = q[items[first:end]], values[first:end].copy()
        for f in range(fixed):
            targets -= rated[:, f] * p[u, f]
        rows = np.column_stack((rated[:, fixed:], targets))
        table[u] = np.add.accumulate(rows[:, :, None] * rows[:, None, :-1])[-1]
        table[u].flat[: n * n : n + 1] += (end - first) * reg
    rated_any = np.diff(indptr) > 0
    solved = _eliminate(table)
    right = table[:, n]
    for j in reversed(range(n)):
        right[:, j] /= table[:, j, j]
        right[:, :j] -= table[:, j, :j] * right[:, j, None]
    p[rated_any & solved, fixed:] = right[rated_any & solved]
    return np.asarray(solved | ~rated_any)


def gradients(
    indptr: I64, items: I32, values: F64, q: F64, p: F64, out: F64, reg: float
) -> None:
    """Set row j of out, (n_ratings, width), to the first elements of λ q_i − e_ui p_u."""
    width = out.shape[1]
    rated, mine = q[items], p[_users(indptr)]
    errors = values - _dots(mine, rated)
    out[:] = reg * rated[:, :width] - errors[:, None] * mine[:, :width]


def add_rows(table: I64 | F64, rows: I32, values: I64 | F64) -> None:
    """Add row j of values to row rows_j of the table, one after the other."""
    np.add.at(table, rows, values)


def _users(indptr: I64) -> I64:
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr))


def _dots(a: F64, b: F64) -> F64:
    """Return the products row by row, added up from the first element to the last."""
    total = a[:, 0] * b[:, 0]
    for f in range(1, a.shape[1]):
        total += a[:, f] * b[:, f]
    return np.asarray(total)


def _eliminate(table: F64) -> NDArray[np.bool_]:
    """Decompose the tables' rows after Cholesky, and substitute forward in their last."""
    n = table.shape[2]
    least = TINY * np.diagonal(table, axis1=1, axis2=2)
    solved = np.ones(table.shape[0], dtype=np.bool_)
    for j in range(n):
        pivots = table[:, j, j]
        solved &= pivots > least[:, j]
        roots = np.sqrt(np.where(solved, pivots, 1.0))
        table[:, j, j] = roots
        column = table[:, j + 1 :, j] / roots[:, None]
        table[:, j + 1 :, j] = column
        table[:, j + 1 :, j + 1 :] -= column[:, :, None] * column[:, None, :-1]
    return solved
