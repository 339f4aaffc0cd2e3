"""Interface of all recommenders: predict ratings, and recommend unrated items.

`Recommender` is a model of known users and items; a `Stored` can be saved.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data import Ratings
from fedmf.data.ratings import Ids
from fedmf.errors import ModelError
from fedmf.models.factors_file import SEEN
from fedmf.settings import is_whole

Floats = NDArray[np.float64]


class Recommender(ABC):
    """Base class of models of known users and items, numbered 0, 1, … as in the ratings."""

    @property
    def scale(self) -> tuple[float, float] | None:
        """Public scale (low, high) of the predictions; None without a scale."""
        return None

    @property
    def ranks(self) -> bool:
        """True if the model was trained to rank items. A model of ratings ranks badly."""
        return False

    @property
    @abstractmethod
    def n_users(self) -> int:
        """Number of users."""

    @property
    @abstractmethod
    def n_items(self) -> int:
        """Number of items, m."""

    @abstractmethod
    def seen(self, user: int) -> NDArray[np.integer]:
        """Return the items that a user, 0 ≤ user < n_users, rated in training."""

    @abstractmethod
    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return the predicted rating r̂_ui of each pair of a user and an item.

        The result is float64, of the shape of `users`, and not clipped to the scale.

        Parameters
        ----------
        users, items : int arrays of equal shape, 0 ≤ user < n_users and 0 ≤ item < n_items

        Raises
        ------
        ModelError
            If a number is out of range or the shapes differ, or nothing is fitted yet.
        """

    def predict_all(self, users: ArrayLike) -> Floats:
        """Return r̂ of all items for some users, float64 of shape (len(users), n_items).

        The numbers equal the results of `predict`, up to rounding. Raises ModelError if a user
        is out of range.
        """
        rows = numbers("user", users, self.n_users).reshape(-1)
        shape = rows.size, self.n_items
        items = np.broadcast_to(np.arange(self.n_items), shape)
        return self.predict(np.broadcast_to(rows[:, None], shape), items)

    def contributions(self, user: int, item: int, values: ArrayLike | None = None) -> Floats:
        """Return the contribution of each of the user's own ratings to r̂ of an item.

        The result is float64, in the order of ``seen(user)``. `Factors` and models that learn
        `Factors` have contributions.

        Parameters
        ----------
        user, item : int, 0 ≤ user < n_users and 0 ≤ item < n_items
        values
            The user's ratings, in the order of ``seen(user)``. A model that ranks takes views
            by default, which are 1; a model of ratings needs the ratings.

        Raises
        ------
        ModelError
            If the model is no sum of contributions, a number is out of range, or `values` are
            missing or do not fit.
        """
        raise ModelError(
            f"{type(self).__name__} does not explain its predictions: explain with "
            "factors, such as those of FederatedCF"
        )

    def explain(
        self, user: int, item: int, n: int = 3, values: ArrayLike | None = None
    ) -> tuple[NDArray[np.int64], Floats]:
        """Return the user's n rated items that add most to r̂ of an item: "because you rated …".

        Parameters
        ----------
        user, item, values : see `contributions`
        n : int, greatest number of rated items, ≥ 1; items without a gain are left out

        Returns
        -------
        items : int64 array, shape (≤ n,), the greatest contribution first
        contributions : float64 array with the same shape, all above 0

        Raises
        ------
        ModelError
            See `contributions`; or if n is not an integer of at least 1.
        """
        if not is_whole(n) or n < 1:
            raise ModelError(f"n = {n!r} must be an integer of at least 1")
        parts = self.contributions(user, item, values)
        first = np.argsort(-parts, kind="stable")[:n]
        first = first[parts[first] > 0]
        return self.seen(user)[first].astype(np.int64), parts[first]

    def recommend(self, user: int, k: int = 10) -> tuple[NDArray[np.int64], Floats]:
        """Return the k items with the highest r̂ that the user has not rated, best first.

        Parameters
        ----------
        user : int, 0 ≤ user < n_users
        k : int, number of items, ≥ 1; a user with fewer unrated items gets all of them

        Returns
        -------
        items : int64 array, shape (≤ k,)
            Equal predictions are ordered by item number.
        predictions : float64 array with the same shape
            See `predict`; clipped to the scale of the ratings, if the model has one.

        Raises
        ------
        ModelError
            If the user is unknown, k is not an integer of at least 1, or nothing is fitted yet.
        """
        n_users, n_items = self.n_users, self.n_items
        row = number("user", user, n_users)
        if not is_whole(k) or k < 1:
            raise ModelError(f"k = {k!r} must be an integer of at least 1")
        fresh = np.ones(n_items, dtype=np.bool_)
        fresh[self.seen(row)] = False
        items = np.flatnonzero(fresh)
        # no matrix product, which may round items of equal factors differently
        scores = self.predict(np.full(items.size, row), items)
        best = np.argsort(-scores, kind="stable")[:k]
        items, scores = items[best].astype(np.int64), scores[best]
        return items, scores if self.scale is None else np.clip(scores, *self.scale)


class Stored(Recommender):
    """Base class of trained models that can be saved.

    Attributes
    ----------
    seen_indptr, seen_items
        int64, shape (n_users + 1,), and int32: the items that each user rated in training, in
        the layout of ``indptr`` and ``items`` of `Ratings`.
    user_ids, item_ids : int64 or text, the data set's own ids
    """

    seen_indptr: NDArray[np.int64]
    seen_items: NDArray[np.int32]
    user_ids: Ids
    item_ids: Ids

    @property
    def n_users(self) -> int:
        """Number of users."""
        return int(self.user_ids.size)

    @property
    def n_items(self) -> int:
        """Number of items, m."""
        return int(self.item_ids.size)

    def seen(self, user: int) -> NDArray[np.int32]:
        """Return the items that a user has rated in training."""
        user = number("user", user, self.n_users)
        return self.seen_items[self.seen_indptr[user] : self.seen_indptr[user + 1]]

    @property
    def _seen_tables(self) -> dict[str, Any]:
        """Tables of the rated items and of the ids, by name."""
        return {name: getattr(self, name) for name in SEEN}

    def _seen_fits(self) -> bool:
        """Return True if the tables of rated items fit the number of users."""
        return self.seen_indptr.shape == (self.n_users + 1,) and self.seen_items.shape == (
            self.seen_indptr[-1],
        )

    def _check_seen(self, path: str | os.PathLike[str]) -> None:
        """Validate the rated items of a model file; raises ModelError."""
        if self.seen_indptr[0] != 0 or (np.diff(self.seen_indptr) < 0).any():
            raise ModelError(
                f"seen_indptr of the model {path} does not ascend from 0: train the model again"
            )
        items = self.seen_items
        if items.size and not (items.min() >= 0 and items.max() < self.n_items):
            raise ModelError(
                f"seen_items of the model {path} are not among the items 0 to "
                f"{self.n_items - 1}: train the model again"
            )


def all_users(ratings: Ratings) -> dict[str, Any]:
    """Return the tables of a `Stored` with the users of `ratings`, and `item_ids`."""
    return {
        "seen_indptr": ratings.indptr,
        "seen_items": ratings.items,
        "user_ids": ratings.user_ids,
        "item_ids": ratings.item_ids,
    }


def one_user(items: NDArray[np.int32]) -> dict[str, Any]:
    """Return the tables of a `Stored` with a single user, number 0, and the rated items."""
    return {
        "seen_indptr": np.array([0, items.size]),
        "seen_items": items,
        "user_ids": np.zeros(1, dtype=np.int64),
    }


class Trained(Recommender):
    """Recommender for the users and items of the training ratings, `train`."""

    train: Ratings

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.train.n_users

    @property
    def n_items(self) -> int:
        """Number of items, m."""
        return self.train.n_items

    def seen(self, user: int) -> NDArray[np.integer]:
        """Return the items that a user rated in training."""
        return self.train.of_user(number("user", user, self.n_users))[0]


def numbers(what: str, numbers: ArrayLike, bound: int) -> NDArray[np.int64]:
    """Return numbers as int64; raises ModelError unless all are integers in 0 ≤ n < bound."""
    array = np.asarray(numbers)
    if array.size and not (
        array.dtype.kind in "iu" and array.min() >= 0 and array.max() < bound
    ):
        raise ModelError(
            f"{what} {numbers!r} is not among the model's 0 to {bound - 1}: pass the number of "
            f"the {what}, which is the place of the id in {what}_ids"
        )
    return array.astype(np.int64)  # [] is an array of floats for numpy


def number(what: str, one: object, bound: int) -> int:
    """Return `one` as int; raises ModelError unless `one` is an integer in 0 ≤ one < bound."""
    if not is_whole(one):
        raise ModelError(
            f"{what} {one!r} must be one integer from 0 to {bound - 1}: pass the number of the "
            f"{what}, which is the place of the id in {what}_ids"
        )
    return int(numbers(what, one, bound))


def pairs(
    users: ArrayLike, items: ArrayLike, n_users: int, n_items: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return users and items as int64; ModelError if out of range or of different shapes."""
    rows, columns = numbers("user", users, n_users), numbers("item", items, n_items)
    if rows.shape != columns.shape:
        raise ModelError(
            f"predict needs one item per user, not {rows.shape} users and {columns.shape} items"
        )
    return rows, columns


def rated(
    items: ArrayLike, ratings: ArrayLike, item_ids: Ids, scale: tuple[float, float] | None
) -> tuple[NDArray[np.int32], Floats]:
    """Return the numbers of a new user's items, and the ratings, each of shape (n,).

    Raises ModelError if an id is unknown or occurs twice, the shapes differ, or a rating is no
    number within the scale.

    Parameters
    ----------
    items, ratings : ids of the rated items, and the ratings on the public scale
    item_ids : ids of all items, in any order
    scale : public scale; None for any finite rating
    """
    known = {one: number for number, one in enumerate(item_ids.tolist())}
    wanted = np.asarray(items).reshape(-1).tolist()
    unknown = [one for one in wanted if one not in known]
    if unknown or len(set(wanted)) < len(wanted):
        what = f"{unknown[0]!r} is unknown" if unknown else f"{wanted} has an item twice"
        raise ModelError(f"items: {what}; pass each rated item once, by the data set's own id")
    values = np.asarray(ratings)
    low, high = scale or (-np.inf, np.inf)
    if values.shape != (len(wanted),) or values.dtype.kind not in "iuf":
        if len(wanted) or values.size:
            raise ModelError(
                f"ratings = {ratings!r} must be one number for each item, {len(wanted)} in all"
            )
        values = np.zeros(0)
    values = values.astype(np.float64)
    if not (np.isfinite(values) & (values >= low) & (values <= high)).all():
        what = "finite" if scale is None else f"within {low:g} to {high:g}"
        raise ModelError(f"ratings = {ratings!r} must be {what}")
    return np.array([known[one] for one in wanted], dtype=np.int32), values
