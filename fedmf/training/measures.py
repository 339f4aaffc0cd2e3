"""Measures of the k items that a recommender recommends first, and a baseline.

Precision, recall, F1 and MAP are the usual measures (Bobadilla et al., "Recommender systems
survey", Knowledge-Based Systems 46, 2013). The FCF paper (Ammad-ud-din et al. 2019, section
6.3) defines the paper's measures in a supplement that is not available. If several definitions
are usual, the definition closest to the paper's figures is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.errors import DataError, ModelError
from fedmf.models.recommender import Recommender, Trained, pairs
from fedmf.settings import Range
from fedmf.training.history import Floats, rmse

Marks = NDArray[np.bool_]

MEANS = ("precision", "recall", "f1", "map", "ndcg", "hit_rate")  # over the users
BLOCK = 1 << 19  # predictions in memory at once: four megabytes


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Measures of the k items recommended first; means over users but for coverage and RMSE.

    Users without test ratings are left out. For one user, h_j is 1 if the j-th recommended item
    is among the user's n test items, else 0. H = Σ_j h_j is the number of hits.

    Parameters
    ----------
    precision : H / k
    recall : H / n
    f1
        2 · precision · recall / (precision + recall) of each user, 0 where H = 0. (The F1 of
        the averages would be higher: the paper's .155 does not follow from .301 and .134.)
    map
        Mean average precision: Σ_j h_j (Σ_{i ≤ j} h_i) / j, divided by min(k, n), the greatest
        possible sum.
    ndcg
        Normalised discounted cumulative gain: Σ_j h_j / log₂(j + 1), divided by the greatest
        possible gain, Σ_{j ≤ min(k, n)} 1 / log₂(j + 1) (Järvelin and Kekäläinen, TOIS 20(4),
        2002).
    hit_rate : 1 if H > 0, else 0 (Deshpande and Karypis, TOIS 22(1), 2004)
    coverage
        Share of all items that are among the first k of a user (catalogue coverage of Ge et
        al., RecSys 2010).
    rmse
        √(mean (1 − r̂)²) over the test items of all users together; a test item has preference
        1. The error does not depend on k, and has no meaning for a model of ratings. (On
        MovieLens, the mean over users would be about .82, and the error of the k recommended
        items with preference h_j about .41; the paper has .70.)
    """

    precision: float
    recall: float
    f1: float
    map: float
    ndcg: float
    hit_rate: float
    coverage: float
    rmse: float


def ranking(model: Recommender, test: Ratings, hidden: Ratings, k: int = 10) -> Ranking:
    """Compare the k items recommended first to each user with the user's test items.

    All test items should be recommended, whatever their values, also for a model of ratings.

    Parameters
    ----------
    model : trained recommender of any kind, which predicts r̂
    test : ratings of the items that should be recommended; the values are not used
    hidden
        Ratings of training and validation; their items are not recommended. These ratings have
        the same users and items as `test`, and no rating of `test`.
    k : int, 1 ≤ k ≤ n_items; equal predictions are ordered by item number

    Raises
    ------
    DataError
        If no user has a test rating, or the arguments differ in numbers of users or items.
    SettingError
        If `k` is not an integer from 1 to n_items.
    ModelError
        If a prediction is NaN or infinite, as after a training that diverged.
    """
    shape = (model.n_users, model.n_items)
    if shape != (test.n_users, test.n_items) or shape != (hidden.n_users, hidden.n_items):
        raise DataError(
            f"a model of {shape[0]} users and {shape[1]} items, {test!r} and {hidden!r} "
            "differ in users or items: split once and train on the training part"
        )
    if not test.n_ratings:
        raise DataError("no user has a test rating: enlarge the test part")
    Range(int, 1, shape[1]).check("k", k)
    k = int(k)  # numpy's small integers wrap
    sought = np.flatnonzero(np.diff(test.indptr))
    found, shown = [], np.zeros(shape[1], dtype=np.bool_)
    many = max(1, BLOCK // shape[1])
    for start in range(0, sought.size, many):
        users = sought[start : start + many]
        first, hits = _first(model, test, hidden, k, users)
        shown[first[first >= 0]] = True
        found.append(_measures(hits, np.diff(test.indptr)[users], k))
    means = dict(zip(MEANS, np.concatenate(found).mean(axis=0).tolist(), strict=True))
    error = rmse(np.ones(test.n_ratings), model.predict(test.users, test.items))
    return Ranking(**means, coverage=float(shown.mean()), rmse=error)


def gains(
    model: Recommender, test: Ratings, hidden: Ratings, k: int, users: NDArray[np.int64]
) -> Floats:
    """Return the NDCG of some users with test ratings, shape (users,); see `ranking`."""
    hits = _first(model, test, hidden, k, users)[1]
    found = _measures(hits, np.diff(test.indptr)[users], k)
    return found[:, MEANS.index("ndcg")]


def best(scores: Floats, k: int) -> NDArray[np.int64]:
    """Return the k best items of each row, best first, shape (rows, k), k ≤ items.

    Equal scores are ordered by item number, as by a stable sort of all, which takes longer.
    """
    least = -np.partition(-scores, k - 1, axis=1)[:, k - 1 : k]
    above, equal = scores > least, scores == least
    equal &= np.cumsum(equal, axis=1) <= k - above.sum(axis=1, keepdims=True)
    items = np.nonzero(above | equal)[1].reshape(len(scores), k)  # ascending in each row
    order = np.argsort(-np.take_along_axis(scores, items, axis=1), axis=1, kind="stable")
    return np.take_along_axis(items, order, axis=1)


def _first(
    model: Recommender, test: Ratings, hidden: Ratings, k: int, users: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Marks]:
    """Return the first k items of some users, and a mark for each hit, both (users, k).

    If fewer than k items are not hidden, the number −1 stands for each missing item.
    """
    scores = model.predict_all(users)
    if not np.isfinite(scores).all():
        raise ModelError(
            "predictions are NaN or infinite, as the training diverged: lower its rate"
        )
    scores[_marked(hidden, users)] = -np.inf
    first = best(scores, k)
    left_out = np.isneginf(np.take_along_axis(scores, first, axis=1))
    hits = np.take_along_axis(_marked(test, users), first, axis=1) & ~left_out
    return np.where(left_out, -1, first), hits


def _measures(hits: Marks, n: NDArray[np.int64], k: int) -> Floats:
    """Return the `MEANS` of each user, shape (users, 6); each user has `n` ≥ 1 test items."""
    place = np.arange(1, k + 1)
    found, most = np.cumsum(hits, axis=1), np.minimum(k, n)
    average = (hits * found / place).sum(axis=1) / most
    gain = 1 / np.log2(place + 1)
    ideal = np.cumsum(gain)[most - 1]
    total = found[:, -1]
    # With P = H/k and R = H/n, 2PR / (P + R) is 2H / (k + n).
    discounted = (hits * gain).sum(axis=1) / ideal
    f1 = 2 * total / (k + n)
    return np.column_stack((total / k, total / n, f1, average, discounted, total > 0))


def _marked(ratings: Ratings, users: NDArray[np.int64]) -> Marks:
    """Return a bool table of the items that some users rated, a row per user."""
    block = Block.of(ratings, users)
    marks = np.zeros((users.size, ratings.n_items), dtype=np.bool_)
    marks[np.repeat(np.arange(users.size), block.counts), block.items] = True
    return marks


class Popularity(Trained):
    """Recommender that scores an item by the number of ratings, a sum over the users."""

    def __init__(self, train: Ratings) -> None:
        self.train = train
        self._counts = np.bincount(train.items, minlength=train.n_items).astype(np.float64)

    def predict(self, users: ArrayLike, items: ArrayLike) -> NDArray[np.float64]:
        """Return the number of ratings of each item."""
        return np.asarray(self._counts[pairs(users, items, self.n_users, self.n_items)[1]])
