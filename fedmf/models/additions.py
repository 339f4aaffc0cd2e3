"""New users and new items of trained factors, without a training.

A new user's row minimises, with p̄ the mean row of the users and Q fixed::

    Σ_i (r_i − q_i · p)² + λ n |p − p̄|²

Columns with the same number for all users, such as the 1 of a bias, stay unchanged. On implicit
feedback the row is x = (Σ_i c_i y_i y_iᵀ + λ I)⁻¹ (Σ_i c_i p_i y_i + λ x̄), as in the training
(Hu, Koren and Volinsky 2008, section 4), and x̄ without ratings.

Both rows are linear in the user's own ratings. So a prediction is a sum of contributions of
these ratings: `rating_parts` and `implicit_parts` (Hu et al., section 5, eq. 7).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data import Features
from fedmf.data.coded import is_text
from fedmf.data.features import check_are_features
from fedmf.data.internal import to_internal, to_public
from fedmf.data.ratings import Ids
from fedmf.errors import ModelError
from fedmf.models.export import Exportable

Floats = NDArray[np.float64]


class ImplicitSettings(NamedTuple):
    """λ, α and ν of a training on implicit feedback; see `fedmf.fcf.Implicit`."""

    reg: float = 1.0
    alpha: float = 1.0
    power: float = 0.0


def rating_row(
    model: Exportable, numbers: NDArray[np.int32], values: Floats, reg: float
) -> Floats:
    """Return the row of a new user, float64 of shape (k,), from their ratings.

    Parameters
    ----------
    model : factors of all users and items, with any public scale of the ratings
    numbers, values : shape (n,), the numbers of the rated items, and the ratings
    reg : float, λ per rating, > 0
    """
    centre, free = _centre(model.user_factors)
    row: Floats = centre.copy()
    if numbers.size and free.any():
        q, inside = model.item_factors[numbers], _inside(model, values)
        normal = _normal(q[:, free], reg)
        row[free] += np.linalg.solve(normal, q[:, free].T @ (inside - q @ centre))
    return row


def rating_parts(
    model: Exportable, numbers: NDArray[np.int32], values: Floats, reg: float, item: int
) -> Floats:
    """Return the contribution of each rating to the prediction of an item, shape (n,).

    The prediction uses the row of `rating_row`. The prediction is q_i · p̄ without ratings, plus
    the contributions q_iᵀ A⁻¹ q_j (r_j − q_j · p̄). Contributions are on the public scale.
    """
    centre, free = _centre(model.user_factors)
    if not (numbers.size and free.any()):
        return np.zeros(numbers.size)
    q, inside = model.item_factors[numbers], _inside(model, values)
    towards = np.linalg.solve(_normal(q[:, free], reg), model.item_factors[item, free])
    parts = (q[:, free] @ towards) * (inside - q @ centre)
    if model.scale is None:
        return np.asarray(parts)
    ends = to_public(np.array([0.0, 1.0]), model.scale)
    return np.asarray(parts * (ends[1] - ends[0]))


def implicit_row(
    items: Floats,
    centre: Floats,
    numbers: NDArray[np.int32],
    values: Floats,
    settings: ImplicitSettings,
) -> Floats:
    """Return the row of a new user on implicit feedback, given x̄; see `rating_row`.

    Raises ModelError if a value is negative.
    """
    normal, weighted, reg = _confident(items, numbers, values, settings)
    if not items[numbers].any():
        return centre
    return np.asarray(np.linalg.solve(normal, weighted @ items[numbers] + reg * centre))


def implicit_parts(
    items: Floats,
    numbers: NDArray[np.int32],
    values: Floats,
    settings: ImplicitSettings,
    item: int,
) -> Floats:
    """Return the contribution of each rated item to the score of an item, shape (n,).

    The contribution is s_ij c_j with s_ij = y_iᵀ W y_j (Hu et al., eq. 7). The sum is the
    score, less the part y_iᵀ W λ x̄ that is the same for all ratings.
    """
    normal, weighted, _ = _confident(items, numbers, values, settings)
    return np.asarray(weighted * (items[numbers] @ np.linalg.solve(normal, items[item])))


def _inside(model: Exportable, values: Floats) -> Floats:
    """Return ratings on the internal scale; as they are if the model has no scale."""
    return values if model.scale is None else to_internal(values, model.scale)


def _centre(users: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the mean row of the users, and a mark for each column with differing numbers."""
    centre: Floats = np.asarray(users.mean(axis=0))
    several = len(users) > 1
    return centre, np.ptp(users, axis=0) > 0 if several else np.ones(centre.size, np.bool_)


def _normal(q: Floats, reg: float) -> Floats:
    """Return A = Σ q_j q_jᵀ + λ n I of n rated items."""
    return np.asarray(q.T @ q + reg * len(q) * np.eye(q.shape[1]))


def _confident(
    items: Floats, numbers: NDArray[np.int32], values: Floats, settings: ImplicitSettings
) -> tuple[Floats, Floats, float]:
    """Return W⁻¹ = Σ_i c_i y_i y_iᵀ + λ I, c_j p_j of each rated item, and λ."""
    if values.size and values.min() < 0:
        raise ModelError(f"ratings = {values.tolist()} must be at least 0: pass views, as 1")
    y, excess = items[numbers], settings.alpha * values
    normal = items.T @ items + (excess[:, None] * y).T @ y
    # an item that was left out of the training has a row of zeros, and no weight
    reg = settings.reg * (1 + float(excess[y.any(axis=1)].sum())) ** settings.power
    normal += reg * np.eye(items.shape[1])
    return normal, (1 + excess) * (values > 0), reg


def linked_rows(items: Floats, known: Features, new: Features, penalty: float) -> Floats:
    """Return rows of new items, by a ridge regression of Q on the features of known items.

    Parameters
    ----------
    items : rows of Q, shape (n, k)
    known, new : features of these items, and of the new items, with the same columns
    penalty : float, ridge penalty, > 0
    """
    f_mean, q_mean = known.matrix.mean(axis=0), items.mean(axis=0)
    centred = known.matrix - f_mean
    normal = centred.T @ centred + penalty * np.eye(f_mean.size)
    weights = np.linalg.solve(normal, centred.T @ (items - q_mean))
    return np.asarray(q_mean + (new.matrix - f_mean) @ weights)


def check_columns(new: Features, known: Features | None, n_items: int) -> None:
    """Validate the features of new items by the features of the model's items, if given.

    Raises SettingError if an argument is not `Features`. Raises ModelError if the columns
    differ, or `known` lacks or exceeds a row per item of the model.
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
    """Return the known ids and `n` new ids; ModelError if the two do not fit together."""
    new = np.asarray(ids)
    if new.shape != (n,) or new.dtype.kind not in ("TU" if is_text(known) else "i"):
        raise ModelError(f"ids = {ids!r} must be {n} ids of the type of {known[:3]!r}")
    together: Ids = np.concatenate((known, new))
    if len(set(together.tolist())) < together.size:
        raise ModelError(f"ids = {ids!r} has an item twice, or one of the model")
    return together
