"""New users and new items of trained factors, without a training.

A new user's row minimises, with p̄ the mean row of the users and Q fixed::

    Σ_i (r_i − q_i · p)² + λ n |p − p̄|²

Columns in which all users have one number, such as the 1 of a bias, stay as they are. On
implicit feedback the row is x = (Σ_i c_i y_i y_iᵀ + λ I)⁻¹ Σ_i c_i p_i y_i (Hu, Koren and
Volinsky 2008, section 4), as in the training.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data import Features
from fedmf.data.features import check_are_features
from fedmf.data.internal import to_internal
from fedmf.data.ratings import Ids
from fedmf.errors import ModelError

__all__ = ["check_columns", "implicit_row", "linked_rows", "new_ids", "rating_row"]

Floats = NDArray[np.float64]


def rating_row(
    users: Floats,
    items: Floats,
    numbers: NDArray[np.int32],
    values: Floats,
    scale: tuple[float, float] | None,
    reg: float,
) -> Floats:
    """Return the row of a new user, float64 of shape (k,), from their ratings.

    Parameters
    ----------
    users, items : P and Q, shapes (n_users, k) and (n_items, k)
    numbers, values : shape (n,), the numbers of the rated items, and the ratings
    scale : public scale of the ratings; None if they need no mapping
    reg : float, λ per rating, > 0
    """
    centre: Floats = np.asarray(users.mean(axis=0))
    free = np.ptp(users, axis=0) > 0 if len(users) > 1 else np.ones(centre.size, np.bool_)
    row: Floats = centre.copy()
    if numbers.size and free.any():
        inside = values if scale is None else to_internal(values, scale)
        q = items[numbers]
        normal = q[:, free].T @ q[:, free] + reg * numbers.size * np.eye(int(free.sum()))
        row[free] += np.linalg.solve(normal, q[:, free].T @ (inside - q @ centre))
    return row


def implicit_row(
    items: Floats, numbers: NDArray[np.int32], values: Floats, reg: float, alpha: float
) -> Floats:
    """Return the row of a new user on implicit feedback; see `rating_row`.

    Raises ModelError if a value is negative.
    """
    if values.size and values.min() < 0:
        raise ModelError(f"ratings = {values.tolist()} must be at least 0: pass views, as 1")
    y = items[numbers]
    normal = items.T @ items + (alpha * values[:, None] * y).T @ y
    normal += reg * np.eye(items.shape[1])
    return np.asarray(np.linalg.solve(normal, ((1 + alpha * values) * (values > 0)) @ y))


def linked_rows(items: Floats, known: Features, new: Features, penalty: float) -> Floats:
    """Return rows of new items, by a ridge regression of Q on the features of known items.

    Parameters
    ----------
    items : rows of Q, shape (n, k)
    known, new : features of these items, and of the new ones, with the same columns
    penalty : float, ridge penalty, > 0

    """
    f_mean, q_mean = known.matrix.mean(axis=0), items.mean(axis=0)
    centred = known.matrix - f_mean
    normal = centred.T @ centred + penalty * np.eye(f_mean.size)
    weights = np.linalg.solve(normal, centred.T @ (items - q_mean))
    return np.asarray(q_mean + (new.matrix - f_mean) @ weights)


def check_columns(new: Features, known: Features | None, n_items: int) -> None:
    """Validate the features of new items by those of the model's items, if they are given.

    Raises SettingError if one is not `Features`, and ModelError if their columns differ, or
    `known` has not a row per item of the model.
    """
    check_are_features(features=new)
    if known is None:
        return
    check_are_features(known=known)
    if known.names != new.names or len(known) != n_items:
        raise ModelError(
            f"features of {len(known)} known items {known.names[:3]} and of new items "
            f"{new.names[:3]} do not fit {n_items} items: pass the same columns of both"
        )


def new_ids(known: Ids, ids: ArrayLike, n: int) -> Ids:
    """Return the known ids and `n` new ones; ModelError if they do not fit together."""
    new = np.asarray(ids)
    if new.shape != (n,) or new.dtype.kind != known.dtype.kind:
        raise ModelError(f"ids = {ids!r} must be {n} ids of the type of {known[:3]!r}")
    together: Ids = np.concatenate((known, new))
    if len(set(together.tolist())) < together.size:
        raise ModelError(f"ids = {ids!r} has an item twice, or one of the model")
    return together
