"""Tables of moments, packed as lower triangles, and the solution of summed normal equations."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.errors import SettingError
from fedmf.models.federated import Floats


@cache
def triangle(d: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows and columns of the lower triangle of a (d, d) table, row by row."""
    a, b = np.tril_indices(d)
    return a, b


def lower(rows: Floats) -> Floats:
    """Return the lower triangle of x xᵀ for each row x, shape (n, d(d+1)/2), row by row."""
    a, b = triangle(rows.shape[1])
    return np.asarray(rows[:, a] * rows[:, b])


def symmetric(values: Floats, d: int) -> Floats:
    """Return symmetric tables (..., d, d) of lower triangles, the inverse of `lower`."""
    a, b = triangle(d)
    tables = np.empty((*values.shape[:-1], d, d))
    tables[..., a, b] = tables[..., b, a] = values
    return tables


def solved(normal: Floats, right: Floats, reg: float, least: ArrayLike) -> Floats:
    """Return the solutions x of normal · x = right, from sums that contain λ.

    The eigenvalues of exact sums are `least` or more. Rounding or noise may take half of that,
    no more, or the solution would be noise.

    Parameters
    ----------
    normal, right : float64, shapes (n, d, d) and (n, d)
    reg : float, λ, for the message of the error
    least : float or shape (n,), the part of λ on the diagonal, > 0

    Raises
    ------
    SettingError
        If rounding or noise has taken more than half of `least`.
    """
    half = np.multiply.outer(np.broadcast_to(least, len(normal)) / 2, np.eye(right.shape[1]))
    try:
        np.linalg.cholesky(normal - half)
    except np.linalg.LinAlgError as error:
        raise SettingError(
            f"reg = {reg} is below the rounding or noise of the moments: raise it, or "
            "fractional_bits of the aggregation"
        ) from error
    return np.asarray(np.linalg.solve(normal, right[:, :, None])[:, :, 0])
