"""Interface of all recommenders: predict ratings, and recommend unrated items.

`Recommender` is a model of known users and items. An `Estimator` has settings and learns a
recommender by `fit`, then predicts and recommends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import wraps
from types import MappingProxyType
from typing import Any, ClassVar, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data import Ratings
from fedmf.data.ratings import Ids
from fedmf.errors import ModelError, SettingError
from fedmf.settings import Settings, is_whole

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


class Estimator(Recommender, Settings):
    """Recommender that learns by `fit`; names of fitted attributes end in underscores."""

    model_: Recommender
    _former: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Present names of settings and attributes by former names, which go with 1.1."""

    def __init_subclass__(cls) -> None:
        """Let the constructor take former names of settings, with a warning."""
        if (present := vars(cls).get("__init__")) is not None:

            @wraps(present)
            def init(self: Estimator, *parts: object, **settings: object) -> None:
                present(self, *parts, **self._renamed(settings))

            cls.__init__ = init  # type: ignore[assignment, method-assign]

    def __getattr__(self, name: str) -> Any:
        """Return an attribute under the former name, with a warning."""
        if (now := self._former.get(name, "")) in vars(self):
            self._renamed({name: None})  # warns
            return vars(self)[now]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def set_params(self, **params: object) -> Self:
        """Change settings in place; see `Settings.set_params`."""
        return super().set_params(**self._renamed(params))

    def _renamed(self, settings: dict[str, object]) -> dict[str, object]:
        """Return settings under their present names, with a warning for each former name."""
        found: dict[str, object] = {}
        for name, value in settings.items():
            if name in self._former:
                text = f"{type(self).__name__}.{name} is now {self._former[name]}"
                warn(f"{text}; the old name goes with 1.1", DeprecationWarning, stacklevel=3)
            now = self._former.get(name, name)
            found[now] = (_Progress(self, value),) if name == "progress" else value
        return found

    @property
    def n_users(self) -> int:
        """Number of users; ModelError before `fit`."""
        return self._fitted().n_users

    @property
    def n_items(self) -> int:
        """Number of items, m; ModelError before `fit`."""
        return self._fitted().n_items

    @property
    def scale(self) -> tuple[float, float] | None:
        """Public scale of the predictions, or None; ModelError before `fit`."""
        return self._fitted().scale

    @property
    def ranks(self) -> bool:
        """True if the model was trained to rank items; ModelError before `fit`."""
        return self._fitted().ranks

    def seen(self, user: int) -> NDArray[np.integer]:
        """Return the items that a user rated in training; ModelError before `fit`."""
        return self._fitted().seen(user)

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return r̂_ui of each pair; see `Recommender.predict`."""
        return self._fitted().predict(users, items)

    def predict_all(self, users: ArrayLike) -> Floats:
        """Return r̂ of all items for some users; see `Recommender.predict_all`."""
        return self._fitted().predict_all(users)

    def contributions(self, user: int, item: int, values: ArrayLike | None = None) -> Floats:
        """Return the contributions of a user's ratings; see `Recommender.contributions`."""
        return self._fitted().contributions(user, item, values)

    def _forget(self) -> None:
        """Delete the fitted attributes, before a new `fit`."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            del vars(self)[name]

    def _fitted(self) -> Recommender:
        if "model_" not in vars(self):
            raise ModelError("the model is not trained yet: call fit first")
        return self.model_


@dataclass(frozen=True, eq=False)
class _Progress:
    """Former function `progress` of an estimator, as a function of a round's record."""

    estimator: Any
    progress: Any  # function of the text, the finished rounds and all rounds

    def __call__(self, record: Any) -> None:
        rounds = self.estimator.rounds * getattr(self.estimator, "steps", 1)
        self.progress("rounds", record.round, rounds)


def not_continued(estimator: Estimator, start: object) -> None:
    """Raise SettingError for a start of an estimator that begins every training anew."""
    if start is not None:
        raise SettingError(
            f"{type(estimator).__name__} does not continue a training: leave start out"
        )


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
            raise ModelError(f"ratings = {ratings!r} must be {len(wanted)} numbers")
        values = np.zeros(0)
    values = values.astype(np.float64)
    if not (np.isfinite(values) & (values >= low) & (values <= high)).all():
        raise ModelError(f"ratings = {ratings!r} must be within {low:g} to {high:g}")
    return np.array([known[one] for one in wanted], dtype=np.int32), values
