"""Attacks that compute a user's ratings from the gradients and the server's item factors Q.

The table λ (q_i − q₀) − η_ui = e_ui p_u (eq. 6 of Yang et al. 2021) has rank 1 over the user's
items. λ shrinks to q₀, which is public, and 0 in the paper. Let d be the unit direction of the
rows and a_i their coefficients. Then p_u = s d for an unknown number s, and

    r_ui = e_ui + q_i · p_u = a_i / s + s b_i,   b_i = q_i · d.

Two rounds give two such expressions for each rating. Equating the two gives a linear system in
1/s, s, 1/s', s'. With three items or more the null space of the system has one dimension, and
s · 1/s = 1 fixes the length. Ratings on a grid need only one round. For each possible value of
a single rating, s is a root of a quadratic. Only the true s puts all other ratings on the grid.

The paper's section 2.2.2 solves for the ratings with the user's update rule (eq. 7); these
attacks need only λ and q₀.

`from_ridge` undoes one-order masks, by the normal equations of their ridge regression.
A ridge regression of ratings r on public features x leaves the residuals ρ = r − b − Xw. These
residuals are the masked ratings (eq. 11). The gradient of the penalised
squares is zero at the minimum: penalty · w = Xᵀρ, and Σ ρ = 0 for the free intercept. So

    r_i = b + ρ_i + t g_i,   g = X Xᵀ ρ,   t = 1 / penalty.

Only b and t are unknown. Differences of ratings are on the grid of the scale, so two ratings
leave a handful of values for t. Only the true t puts all ratings on the same grid. The user's
mean rating gives b. Gradients leave the sign open (`from_two_rounds`), and the mean mostly
gives the sign: both r and 2 · mean − r are on the grid only if 2 · mean is.

The adversary needs the masked ratings, which plain gradients give, the items' public features
and each user's mean rating. The paper's adversary of section 4.2.1 knows the lowest and the
highest rating instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST = 3  # items for two rounds: three equations for four unknowns up to their length
ANCHORS = 8  # ratings that the search starts from: gradients are rounded, so a start may fail
PARALLEL = 1e-4  # 1 − |cos|: rows of the same user differ by rounding, of two users by p_u
VAGUE = 0.01  # weight of a wrong length of p_u beside a rating off the grid: little


@dataclass(frozen=True, eq=False)
class Seen:
    """The server's view of a user in a round.

    Parameters
    ----------
    q : float64, shape (n, k), the server's own q_i of some items
    eta : float64, shape (n, k), the received rows, η_ui if sent in the clear
    centre : float64, shape (k,), q₀, the centre of the shrinking by λ; `FedMF.centre`
    """

    q: Floats
    eta: Floats
    centre: Floats | float = 0.0


def from_two_rounds(first: Seen, second: Seen, reg: float) -> Floats:
    """Solve for a user's ratings, on a grid or not, with the gradients of two rounds.

    Parameters
    ----------
    first, second : views of the same n items in the same order
    reg : float, λ of eq. 6, ≥ 0

    Returns
    -------
    ratings : float64, shape (n,)
        The mean is ≥ 0: −r_ui and −p_u would have the same gradients as r_ui and p_u. All are
        NaN for fewer than three items, or if there is no solution s.
    """
    n = first.eta.shape[0]
    if n < FEWEST:
        return np.full(n, np.nan)
    a, b = _rank_one(first, reg)
    system = np.column_stack((a, b, *(-one for one in _rank_one(second, reg))))
    length = np.linalg.norm(system, axis=0)
    length[length == 0] = 1.0
    z = np.linalg.svd(system / length)[2][-1] / length
    # 1/s and s have the same sign, unless these are no gradients and every guess is wrong
    area = abs(z[0] * z[1])
    if area == 0:
        return np.full(n, np.nan)
    ratings = (a * z[0] + b * z[1]) / np.sqrt(area)
    return np.asarray(ratings if ratings.mean() >= 0 else -ratings)


def from_one_round(seen: Seen, reg: float, grid: Floats, length: float | None = None) -> Floats:
    """Search for the ratings on a grid that explain the gradients of a single round.

    Parameters
    ----------
    seen : view of n ≥ 1 items; for one or two items, several answers fit
    reg : float, λ of eq. 6, ≥ 0
    grid : float64, ascending and evenly spaced, every possible rating, such as 1, …, 5
    length : float, approximate norm of p_u, which decides between answers that fit
        The server knows the norm from the public starting factors; None if unknown.

    Returns
    -------
    ratings : float64, shape (n,), each on the grid; NaN if there is no real s
    """
    a, b = _rank_one(seen, reg)
    anchors = np.linspace(0, a.size - 1, min(a.size, ANCHORS)).astype(np.int64)
    s = _roots(a[anchors, None], b[anchors, None], grid)
    if not s.size:
        return np.full(a.size, np.nan)
    nearest = on_grid(a / s[:, None] + s[:, None] * b, grid)
    # All ratings on the grid overdetermine s: least squares take the anchor's rounding out.
    s = _polished(a, b, nearest, s)
    ratings = a / s[:, None] + s[:, None] * b
    nearest = on_grid(ratings, grid)
    misfit = ((ratings - nearest) ** 2).sum(axis=1)
    if length is not None:
        misfit += (VAGUE * (np.abs(s) / length - 1)) ** 2
    best = int(np.argmin(misfit))
    return np.asarray(nearest[best])


def from_sum(
    q: Floats,
    total: Floats,
    counts: NDArray[np.int64],
    reg: float,
    grid: Floats,
    centre: Floats | float = 0.0,
) -> tuple[NDArray[np.int64], Floats]:
    """Return the ratings of the items with one rater from an exact sum, secure or not.

    The rows λ (q_i − q₀) − η_i = e_ui p_u of a user are parallel. So items with parallel rows
    are attributed to a single user and passed to `from_one_round` together. The norm of p_u is
    estimated from Q, as P and Q start alike.

    Parameters
    ----------
    q, total : float64, shape (m, k), the server's item factors, and the exact sum of gradients
    counts : int64, shape (m,), number of raters of each item in the same cohort
    reg, grid : see `from_one_round`
    centre : q₀; see `Seen`

    Returns
    -------
    items : int64, shape (s,), items with one rater
    ratings : float64, shape (s,), that rater's ratings, NaN where the sum is zero
    """
    items = np.flatnonzero(counts == 1)
    ratings = np.full(items.size, np.nan)
    length = float(np.linalg.norm(q, axis=1).mean())
    table = reg * (q[items] - centre) - total[items]
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), np.finfo(float).tiny)
    left = total[items].any(axis=1)
    while left.any():
        first = int(np.argmax(left))
        same = left & (np.abs(table @ table[first]) > 1 - PARALLEL)
        same[first] = True
        seen = Seen(q[items[same]], total[items[same]], centre)
        ratings[same] = from_one_round(seen, reg, grid, length)
        left &= ~same
    return items, ratings


def on_grid(ratings: Floats, grid: Floats) -> Floats:
    """Round each rating to the nearest number on the grid; NaN stays NaN."""
    step = grid[1] - grid[0]
    number = np.clip(np.rint((ratings - grid[0]) / step), 0, grid.size - 1)
    return np.asarray(grid[0] + step * number)


def _rank_one(seen: Seen, reg: float) -> tuple[Floats, Floats]:
    """Return a_i and b_i, the components along d of λ (q_i − q₀) − η_ui and of q_i."""
    table = reg * (seen.q - seen.centre) - seen.eta  # e_ui p_u
    d = np.linalg.svd(table, full_matrices=False)[2][0]
    return table @ d, seen.q @ d


def _roots(a: Floats, b: Floats, grid: Floats) -> Floats:
    """Return every real s ≠ 0 with a / s + s b = r, that is b s² − r s + a = 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        half = np.sqrt(grid**2 - 4 * a * b)
        s = np.concatenate(((grid + half) / (2 * b), (grid - half) / (2 * b)), axis=None)
    return np.asarray(s[np.isfinite(s) & (s != 0)])


def _polished(a: Floats, b: Floats, ratings: Floats, s: Floats) -> Floats:
    """Take a Gauss-Newton step of each s towards the rounded ratings of that s."""
    slope = b - a / s[:, None] ** 2
    error = ratings - (a / s[:, None] + s[:, None] * b)
    steep = (slope**2).sum(axis=1)
    step = np.divide((slope * error).sum(axis=1), steep, out=np.zeros_like(s), where=steep > 0)
    return np.where(s + step != 0, s + step, s)


ALIKE = 1e-9  # smaller differences of g are rounding: the mask is constant, t has no effect


class Unmasked(NamedTuple):
    """Ratings found behind one user's masked ratings.

    Parameters
    ----------
    ratings : float64, shape (n,), on the grid; NaN if no penalty is possible
    penalty : float, penalty of the mask; NaN for a constant mask
    misfit : float, root mean square distance of the exact solution from the grid
        The unit is a step of the grid; almost 0 if the ratings are right.
    """

    ratings: Floats
    penalty: float
    misfit: float


def from_ridge(
    masked: Floats, x: Floats, mean: float, grid: Floats, penalty: float | None = None
) -> Unmasked:
    """Return the ratings behind one user's masked ratings, and the penalty of the mask.

    Parameters
    ----------
    masked : float64, shape (n,), n ≥ 1, residuals of a ridge regression with a free intercept
    x : float64, shape (n, d), features of the rated items
    mean : float, mean of the user's ratings
    grid : float64, ascending and evenly spaced, every possible rating
    penalty : float, penalty of the mask, > 0; None to search for the penalty
    """
    step, span = float(grid[1] - grid[0]), float(grid[-1] - grid[0])
    g = x @ (x.T @ masked)
    top, bottom = int(np.argmax(g)), int(np.argmin(g))
    gap = g[top] - g[bottom]
    if penalty is not None:
        t = np.array([1 / penalty])
    elif gap <= ALIKE:
        t = np.zeros(1)
    else:
        t = (np.arange(-span, span + step / 2, step) - (masked[top] - masked[bottom])) / gap
        t = t[t > 0]
        if not t.size:
            return Unmasked(np.full(masked.size, np.nan), np.nan, np.inf)
    exact = masked + t[:, None] * g
    exact += mean - exact.mean(axis=1, keepdims=True)
    ratings = on_grid(exact, grid)
    off = np.sqrt(((exact - ratings) ** 2).mean(axis=1)) / step
    best = int(np.argmin(off))
    return Unmasked(ratings[best], float(1 / t[best]) if t[best] else np.nan, float(off[best]))
