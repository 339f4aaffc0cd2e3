"""Reference implementation of the compiled kernels, in plain numpy.

Every sum adds the terms in sequence, in a fixed order. So a user's numbers do not depend on the
other users in the block, on the machine, or on the use of the compiled kernels.

A block is the ratings of n users as compressed rows: ``indptr`` (int64, n + 1, ascending from
0), ``items`` (int32, 0 ≤ item < m) and ``values`` (float64). ``q`` is float64 (m, k) and ``p``
float64 (n, k), row by row; k ≥ 1. The leading ``fixed`` < k columns of ``p`` are constants that
no step changes. λ is ``reg``, the regularisation per rating; n_u is the number of u's ratings.
The ``centre``, float64 (k,), is the row p₀ = q₀, the target of the shrinkage by λ.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "add_rows",
    "descend",
    "draw",
    "draw_users",
    "gradients",
    "predict",
    "solve",
]

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

TINY = 2.0**-40  # a pivot below this share of the original diagonal element counts as zero


def predict(p: F64, q: F64, users: I64, items: I64, out: F64) -> None:
    """Set out_j to the prediction q_i · p_u, where i = items_j and u = users_j."""
    out[:] = _dots(p[users], q[items])


def descend(
    indptr: I64, items: I32, values: F64, q: F64, p: F64, fixed: int, rate: float, reg: float
) -> None:
    """Take a gradient step of every p_u: subtract γ (λ n_u p_u − Σ_i e_ui q_i).

    γ is ``rate``, and e_ui = r_ui − q_i · p_u is the error of a rating.
    """
    errors = values - _dots(p[_users(indptr)], q[items])
    for u, (first, end) in enumerate(pairwise(indptr.tolist())):
        if first == end:
            continue
        rated = q[items[first:end], fixed:]
        slope = np.add.accumulate(errors[first:end, None] * rated)[-1]
        mine = p[u, fixed:]
        mine -= rate * ((end - first) * reg * mine - slope)


def solve(
    indptr: I64, items: I32, values: F64, q: F64, p: F64, fixed: int, reg: float, centre: F64
) -> NDArray[np.bool_]:
    """Set every p_u to the solution of (QᵀQ + λ n_u I) p_u = Qᵀr + λ n_u p₀.

    The rows of Q are the q_i of the items that user u rated. The part of r_ui that the fixed
    columns explain is subtracted from r_ui first. Users without a rating keep their p_u.

    Returns
    -------
    solved
        bool (n,): False for a user with equations that are singular in floating point, which
        happens only for λ = 0 or nearly 0. That user's p_u is unchanged.
    """
    n = q.shape[1] - fixed
    tables = _tables(indptr, items, values, q, p, fixed)
    # QᵀQ + λ n_u I, and Qᵀr + λ n_u p₀ in the last row of the table
    pull = np.diff(indptr)[:, None] * reg
    tables[:, range(n), range(n)] += pull
    tables[:, n] += pull * centre[fixed:]
    rated_any = np.diff(indptr) > 0
    solved = _eliminate(tables)
    found = _substituted(tables)
    p[rated_any & solved, fixed:] = found[rated_any & solved]
    return np.asarray(solved | ~rated_any)


def draw(tables: F64, noise: F64, out: F64) -> NDArray[np.bool_]:
    """Set row r of out to a draw x ~ N(Λ⁻¹ b, Λ⁻¹).

    The table r has Λ, and b as the last row. Only the lower triangle of Λ is read; the table is
    overwritten. Rows of ``noise`` are standard normal numbers. Shapes are (m, n + 1, n), (m, n)
    and (m, n); n ≥ 1.

    Returns
    -------
    solved : bool (m,), False for a Λ that is not positive definite; that row is unchanged
    """
    solved = _eliminate(tables)
    tables[:, -1] += noise
    out[solved] = _substituted(tables)[solved]
    return solved


def draw_users(
    indptr: I64,
    items: I32,
    values: F64,
    q: F64,
    p: F64,
    fixed: int,
    scale: F64,
    precision: F64,
    shifts: F64,
    noise: F64,
) -> NDArray[np.bool_]:
    """Set every p_u to a draw as `draw` does, with Λ = P + s_u QᵀQ and b = t_u + s_u Qᵀr.

    P is ``precision``, (k − fixed, k − fixed), s is ``scale`` (n,), and t_u a row of ``shifts``
    (n, k − fixed); ``noise`` has the same shape. For Q, r and the result see `solve`.
    """
    tables = scale[:, None, None] * _tables(indptr, items, values, q, p, fixed)
    tables[:, :-1] += precision
    tables[:, -1] += shifts
    found = p[:, fixed:].copy()
    solved = draw(tables, noise, found)
    p[:, fixed:] = found
    return solved


def gradients(
    indptr: I64, items: I32, values: F64, q: F64, p: F64, out: F64, reg: float, centre: F64
) -> None:
    """Set row j of out to the first ``width`` elements of λ (q_i − q₀) − e_ui p_u of rating j.

    The shape of out is (n_ratings, width), 1 ≤ width ≤ k.
    """
    width = out.shape[1]
    rated, mine = q[items], p[_users(indptr)]
    errors = values - _dots(mine, rated)
    out[:] = reg * (rated - centre)[:, :width] - errors[:, None] * mine[:, :width]


def add_rows(table: I64 | F64, rows: I32, values: I64 | F64) -> None:
    """Add row j of values to row rows_j of the table, for j = 0, 1, … in this order."""
    np.add.at(table, rows, values)


def _users(indptr: I64) -> I64:
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr))


def _dots(a: F64, b: F64) -> F64:
    """Return the dot products of the rows of a and b, summed from first to last element."""
    total = a[:, 0] * b[:, 0]
    for f in range(1, a.shape[1]):
        total += a[:, f] * b[:, f]
    return np.asarray(total)


def _tables(indptr: I64, items: I32, values: F64, q: F64, p: F64, fixed: int) -> F64:
    """Return QᵀQ of each user, with Qᵀr as the last row; see `solve`."""
    n = q.shape[1] - fixed
    tables = np.zeros((p.shape[0], n + 1, n))
    for u, (first, end) in enumerate(pairwise(indptr.tolist())):
        if first == end:
            continue
        rated, targets = q[items[first:end]], values[first:end].copy()
        for f in range(fixed):
            targets -= rated[:, f] * p[u, f]
        rows = np.column_stack((rated[:, fixed:], targets))
        tables[u] = np.add.accumulate(rows[:, :, None] * rows[:, None, :-1])[-1]
    return tables


def _substituted(tables: F64) -> F64:
    """Return the x of Lᵀ x = y for each table of L and the last row y; overwrite y with x."""
    right = tables[:, -1]
    for j in reversed(range(tables.shape[2])):
        right[:, j] /= tables[:, j, j]
        right[:, :j] -= tables[:, j, :j] * right[:, j, None]
    return right


def _eliminate(table: F64) -> NDArray[np.bool_]:
    """Replace each table by the Cholesky factor, and the last row by forward substitution."""
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
