"""Measures of the k items recommended first, with the names of the FCF paper.

The paper (Ammad-ud-din et al. 2019, section 6.3) defines them in a supplement that is not
available. The definitions here are the usual ones (Bobadilla et al. 2013). Where several are
usual, the definition closest to the paper's figures is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.data import Ratings
from fedmf.errors import DataError, ModelError
from fedmf.models import Factors
from fedmf.settings import Range
from fedmf.training import rmse

__all__ = ["Ranking", "ranking"]

BLOCK = 512  # users whose predictions of all items are in memory at once


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Measures of the k items recommended first; all but the RMSE are means over users.

    Users without test ratings are left out. For one user, h_j is 1 if the j-th recommended item
    is among the user's n test items, else 0. H = Σ_j h_j is the number of hits.

    Parameters
    ----------
    precision : H / k
    recall : H / n
    f1
        2 · precision · recall / (precision + recall) of each user, 0 where H = 0. (The F1 of
        the averages would be higher: the paper's .155 is not that of .301 and .134.)
    map
        Mean average precision: Σ_j h_j (Σ_{i ≤ j} h_i) / j, divided by min(k, n), its greatest
        value.
    rmse
        √(mean (1 − r̂)²) over the test items of all users together, whose preference is 1. It
        does not depend on k. (On MovieLens, the mean over users would be about .82, and the
        error of the k recommended items with preference h_j about .41; the paper has .70.)
    """

    precision: float
    recall: float
    f1: float
    map: float
    rmse: float


def ranking(factors: Factors, test: Ratings, hidden: Ratings, k: int = 10) -> Ranking:
    """Compare the k items recommended first to each user with the user's test items.

    Parameters
    ----------
    factors : trained factors, which predict r̂
    test : ratings whose items should be recommended; their values are not used
    hidden
        Ratings whose items are not recommended, those of training and validation. They have
        the same users and items as `test`, and no rating of `test`.
    k : int, 1 ≤ k ≤ n_items; equal predictions are ordered by item number

    Raises
    ------
    DataError
        If no user has a test rating, or the arguments differ in numbers of users or items.
    SettingError
        If `k` is not an integer from 1 to n_items.
    ModelError
        If a factor is NaN or infinite, as after a training that diverged.
    """
    shape = (factors.n_users, factors.n_items)
    if shape != (test.n_users, test.n_items) or shape != (hidden.n_users, hidden.n_items):
        raise DataError(
            f"factors of {shape[0]} users and {shape[1]} items, {test!r} and {hidden!r} "
            "differ in users or items: split once and train on the training part"
        )
    if not test.n_ratings:
        raise DataError("no user has a test rating: enlarge the test part")
    Range(int, 1, factors.n_items).check("k", k)
    k = int(k)  # numpy's small integers wrap
    if not (
        np.isfinite(factors.user_factors).all() and np.isfinite(factors.item_factors).all()
    ):
        raise ModelError(
            "the factors have NaN or infinity, as the training diverged: lower its rate"
        )
    blocks = [
        _of_users(factors, test, hidden, k, start, min(start + BLOCK, shape[0]))
        for start in range(0, shape[0], BLOCK)
    ]
    precision, recall, f1, average = np.concatenate(blocks, axis=1).mean(axis=1)
    return Ranking(
        precision=float(precision),
        recall=float(recall),
        f1=float(f1),
        map=float(average),
        rmse=rmse(np.ones(test.n_ratings), factors.predict(test.users, test.items)),
    )


def _of_users(
    factors: Factors, test: Ratings, hidden: Ratings, k: int, start: int, stop: int
) -> NDArray[np.float64]:
    """Return four measures of the users start to stop − 1 who have test ratings."""
    # Add the factors from first to last, as `Factors.predict` does: a matrix product may round
    # items with equal factors differently, and ties must be broken by item number.
    p, q = factors.user_factors[start:stop], factors.item_factors.T.copy()
    scores = p[:, :1] * q[0]
    for factor in range(1, factors.k):
        scores += p[:, factor : factor + 1] * q[factor]
    relevant = _marked(test, start, stop)
    n = relevant.sum(axis=1)
    scores[_marked(hidden, start, stop)] = -np.inf
    top = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    hits = np.take_along_axis(relevant & np.isfinite(scores), top, axis=1)
    found = np.cumsum(hits, axis=1)
    average = (hits * found / np.arange(1, k + 1)).sum(axis=1) / np.maximum(np.minimum(k, n), 1)
    total = found[:, -1]
    # With P = H/k and R = H/n, 2PR / (P + R) is 2H / (k + n).
    measures = (total / k, total / np.maximum(n, 1), 2 * total / (k + n), average)
    return np.array(measures)[:, n > 0]


def _marked(ratings: Ratings, start: int, stop: int) -> NDArray[np.bool_]:
    """Return a bool table of the items rated by the users start to stop − 1, a row per user."""
    row = slice(ratings.indptr[start], ratings.indptr[stop])
    marks = np.zeros((stop - start, ratings.n_items), dtype=np.bool_)
    marks[ratings.users[row] - start, ratings.items[row]] = True
    return marks
