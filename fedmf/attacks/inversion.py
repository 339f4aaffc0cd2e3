"""Inversion for one-order masks, by the normal equations of their ridge regression.

A ridge regression of ratings r on public features x leaves the residuals ρ = r − b − Xw. These
residuals are the masked ratings (eq. 11 of Yang et al. 2021). The gradient of the penalised
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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedmf.attacks.leakage import on_grid

Floats = NDArray[np.float64]

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
