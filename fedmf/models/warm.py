"""Start of a training from earlier factors; users and items are matched by their ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedmf.data.coded import is_text
from fedmf.data.internal import INTERNAL
from fedmf.data.ratings import Ids, Ratings
from fedmf.errors import ModelError
from fedmf.models.factors import Factors

Floats = NDArray[np.float64]


def warm(
    p: Floats,
    q: Floats,
    start: Factors | None,
    train: Ratings,
    *,
    ranks: bool = False,
    scale: tuple[float, float] = INTERNAL,
) -> tuple[Floats, Floats]:
    """Return the starting P and Q, with the rows of `start` for users and items known there.

    Parameters
    ----------
    p, q : drawn start, shapes (n_users, k) and (n_items, k), for users and items without a row
    start : earlier factors; None for the drawn start
    train : ratings to train on; their ids are matched
    ranks : True if the training is on implicit feedback
    scale : public scale of the ratings

    Raises
    ------
    ModelError
        If `start` is no `Factors`, knows none of the items, has another number of columns, or
        was trained on the other kind of feedback. Also if `start` has no scale, as in 0.4, and
        the ratings are not from 1 to 5.
    """
    if start is None:
        return p, q
    check_start(start, ranks=ranks)
    if start.k != q.shape[1]:
        raise ModelError(
            f"start has {start.k} columns and the model {q.shape[1]}: train with the k and "
            "biases of the earlier training"
        )
    if start.scale is None and scale != INTERNAL:
        raise ModelError(
            f"start has no scale, and may not be on 1 to 5 as ratings of {scale} are: "
            "train it again with this version"
        )
    p, q = p.copy(), q.copy()
    mine, theirs = matched(train.user_ids, start.user_ids)
    p[mine] = start.user_factors[theirs]
    mine, theirs = shared_items(train, start)
    q[mine] = start.item_factors[theirs]
    return p, q


def check_start(start: object, *, ranks: bool, such: str = "Factors") -> None:
    """Raise ModelError unless `start` is `Factors` of the same kind of feedback."""
    if not isinstance(start, Factors):
        raise ModelError(
            f"start = {start!r} must be {such}, such as model_ of an earlier training"
        )
    if start.ranks != ranks:
        kinds = ("ratings", "implicit feedback")
        raise ModelError(
            f"start was trained on {kinds[start.ranks]}, and this is a training on "
            f"{kinds[ranks]}: pass the result of a training of the same kind"
        )


def shared_items(train: Ratings, start: Factors) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the common items of `train` and `start`, as the numbers in each of the two.

    Raises ModelError if there is no common item.
    """
    mine, theirs = matched(train.item_ids, start.item_ids)
    if not mine.size:
        raise ModelError(
            f"start knows no item of {train.name}: its ids are like "
            f"{start.item_ids[:3].tolist()}, and must be like {train.item_ids[:3].tolist()}"
        )
    return mine, theirs


def matched(ids: Ids, earlier: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the common ids, in `ids` and in `earlier`."""
    if is_text(ids) != is_text(earlier):  # no integer equals a text
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    _, mine, theirs = np.intersect1d(ids, earlier, assume_unique=True, return_indices=True)
    return mine, theirs
