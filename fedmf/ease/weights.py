"""`ItemWeights`, the trained model: scores of items from the items that a user rated."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data.ratings import Ids
from fedmf.errors import ModelError
from fedmf.models import Factors
from fedmf.models.factors_file import SEEN, Form, read_tables, write_tables
from fedmf.models.recommender import Stored, numbers, one_user, pairs, rated

Floats = NDArray[np.float64]

KIND = "item weights"
FORM: Form = {"weights": (np.float64,), "kept": (np.int32,), **SEEN}


@dataclass(frozen=True, eq=False)
class ItemWeights(Stored):
    """Weights B between items: the score of item i for user u is (x_u B)_i.

    An item that is not kept has the score 0. In a deployment the server sends B and the kept
    items, and each user computes their scores. A saved file has the rated items of all users,
    too: protect the file like the ratings. Raises ModelError if the shapes do not match.

    Parameters
    ----------
    weights : B, float64, shape (m, m), m the number of kept items
    kept : int32, shape (m,), item numbers, ascending
    seen_indptr, seen_items : see `Factors`
    user_ids, item_ids : int64 or text, the data set's own ids
    """

    weights: Floats
    kept: NDArray[np.int32]
    seen_indptr: NDArray[np.int64]
    seen_items: NDArray[np.int32]
    user_ids: Ids
    item_ids: Ids

    def __post_init__(self) -> None:
        m = self.kept.size
        if (
            self.weights.shape != (m, m)
            or not np.isfinite(self.weights).all()
            or self.kept.shape != (m,)
            or (m and (self.kept[0] < 0 or self.kept[-1] >= self.item_ids.size))
            or (np.diff(self.kept) <= 0).any()
            or not self._seen_fits()
        ):
            raise ModelError(
                f"the model's tables do not fit together: weights of shape "
                f"{self.weights.shape}, {m} kept items of {self.item_ids.size}, "
                f"{self.user_ids.size} users, {self.seen_items.size} rated items"
            )

    @property
    def ranks(self) -> bool:
        """True: the scores rank items and are no ratings."""
        return True

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return the score (x_u B)_i of each pair; see `Recommender.predict`."""
        rows, columns = pairs(users, items, self.n_users, self.n_items)
        scores = np.zeros(rows.shape)
        for user in np.unique(rows):
            mine = rows == user
            scores[mine] = self._scores(int(user))[columns[mine]]
        return scores

    def predict_all(self, users: ArrayLike) -> Floats:
        """Return the scores of all items for some users; see `Recommender.predict_all`."""
        rows = numbers("user", users, self.n_users).reshape(-1).tolist()
        return np.array([self._scores(user) for user in rows]).reshape(-1, self.n_items)

    def contributions(self, user: int, item: int, values: ArrayLike | None = None) -> Floats:
        """Return B_ji of each item j that the user rated, or 0 where j or i is not kept.

        The sum is the score. `values` do not count. See `Recommender.contributions`.
        """
        row, column = pairs([user], [item], self.n_users, self.n_items)
        whole = np.zeros(self.n_items)
        place = np.flatnonzero(self.kept == column[0])
        if place.size:
            whole[self.kept] = self.weights[:, place[0]]
        return whole[self.seen(int(row[0]))]

    def fold_in(self, items: ArrayLike, ratings: ArrayLike | None = None) -> ItemWeights:
        """Return the model of a new user, number 0. Nothing is sent, and B stays.

        Parameters
        ----------
        items : ids of the rated items, distinct, shape (n,)
        ratings : finite numbers, shape (n,), which do not count; None for none

        Raises
        ------
        ModelError
            If an item is unknown or occurs twice, or the ratings are no n finite numbers.
        """
        given = np.ones(np.size(items)) if ratings is None else ratings
        numbers, _ = rated(items, given, self.item_ids, None)
        return replace(self, **one_user(numbers))

    def factors(self) -> Factors:
        """Return the same scores as factors of rank m: P has the rows x_u, and Q is Bᵀ.

        Use the factors for export only: `fold_in` and `contributions` of `Factors` follow
        another model.
        """
        p, q = np.zeros((self.n_users, self.n_items)), np.zeros((self.n_items, self.kept.size))
        p[np.repeat(np.arange(self.n_users), np.diff(self.seen_indptr)), self.seen_items] = 1.0
        q[self.kept] = self.weights.T
        return Factors(p[:, self.kept], q, ranks=True, **self._seen_tables)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to `path`, atomically; raises ModelError if that fails."""
        tables: dict[str, Any] = {name: getattr(self, name) for name in FORM}
        write_tables(path, KIND, tables)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ItemWeights:
        """Read a file that `save` wrote; raises ModelError as `Factors.load` does."""
        try:
            model = cls(**read_tables(path, KIND, FORM))
            model._check_seen(path)
        except (IndexError, TypeError, ValueError) as error:
            raise ModelError(
                f"the model {path} has inconsistent tables: {error}; train it again"
            ) from error
        return model

    def _scores(self, user: int) -> Floats:
        """Return the scores of all items for a user."""
        seen = self.seen(user)
        places = np.searchsorted(self.kept, seen[np.isin(seen, self.kept)])
        scores = np.zeros(self.n_items)
        scores[self.kept] = self.weights[np.sort(places)].sum(axis=0)
        return scores

    def __repr__(self) -> str:
        return (
            f"<ItemWeights: {self.n_users} users, {self.n_items} items, {self.kept.size} kept>"
        )
