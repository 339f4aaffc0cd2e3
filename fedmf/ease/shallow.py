"""Messages of a user, and the closed form of the server."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate.vectors import Rows

Floats = NDArray[np.float64]
Numbers = NDArray[np.integer]


def marks(items: Numbers, n_items: int, norm: float) -> Rows:
    """Return a user's table of a single column, with a number for each rated item.

    Parameters
    ----------
    items : distinct item numbers of the user, shape (n,)
    n_items : int, number of rows
    norm : float, L2 norm of the column if n > 0
    """
    return _alike(items.astype(np.int32), n_items, norm)


def triangle(places: Numbers, m: int, norm: float) -> Rows:
    """Return the lower triangle of a user's x xᵀ, row by row, as one column.

    A cell off the diagonal is sent once. So n items have n (n + 1) / 2 cells of the same value.
    For large n the norm of the triangle is 1/√2 of the norm of the full table. So the bound
    allows √2 times as much as for x xᵀ.

    Parameters
    ----------
    places : ascending places of the user's items among the m kept items, shape (n,)
    m : int, number of kept items
    norm : float, L2 norm of the column if n > 0
    """
    i, j = (places[ends].astype(np.int64) for ends in np.tril_indices(places.size))
    cells = i * (i + 1) // 2 + j
    return _alike(cells.astype(np.int32), m * (m + 1) // 2, norm)


def denoised(gram: Floats, sigma: float) -> Floats:
    """Shrink the eigenvalues of a symmetric table with noise of deviation σ in each cell.

    The eigenvalues of the noise alone lie within ±e, e = 2σ√m. An eigenvalue y > e becomes
    √(y² − e²), any other eigenvalue 0. This shrinkage has the least squared error for a table
    of few large eigenvalues. The source treats square tables; with symmetric noise the formula
    is the same (Gavish and Donoho, "Optimal shrinkage of singular values", 2017).
    """
    values, vectors = np.linalg.eigh(gram)
    edge = 2 * sigma * np.sqrt(len(gram))
    shrunk = np.where(values > edge, np.sqrt(np.maximum(values**2 - edge**2, 0.0)), 0.0)
    return np.asarray((vectors * shrunk) @ vectors.T)


def closed_form(gram: Floats, reg: float) -> Floats:
    """Return B with a zero diagonal that minimises |X − XB|² + λ|B|² (Steck 2019, eq. 8).

    With P = (XᵀX + λI)⁻¹, B_ij is −P_ij / P_jj off the diagonal.

    Parameters
    ----------
    gram : XᵀX, shape (m, m), symmetric, without negative eigenvalues
    reg : float, λ > 0
    """
    inverse = np.linalg.inv(gram + reg * np.eye(len(gram)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return np.asarray(weights)


def _alike(indices: NDArray[np.int32], size: int, norm: float) -> Rows:
    each = norm / np.sqrt(max(indices.size, 1))
    return Rows(indices, np.full((indices.size, 1), each), size)
