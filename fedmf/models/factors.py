"""The factors a training leaves behind: predicting, recommending, saving and loading."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf import _fast
from fedmf.data import Ratings
from fedmf.errors import ModelError
from fedmf.models.factors_file import TABLES, read_tables, write_tables
from fedmf.models.recommender import Recommender, pairs

__all__ = ["Factors"]


@dataclass(frozen=True, eq=False)
class Factors(Recommender):
    """Item and user factors, and what each user has rated.

    In a deployment the server holds only Q and each user only their own p_u and ratings; a
    simulation holds all of them in one place, and so does the file it writes. Keep that file
    as carefully as the ratings.

    Parameters
    ----------
    user_factors
        P, float64, shape (n_users, k), k ≥ 1: row u is p_u of the FedMMF paper's eq. 1.
    item_factors
        Q, float64, shape (n_items, k): row i is q_i. Factors of another type of numbers, or
        laid out column by column, are converted.
    seen_indptr, seen_items
        int64 (n_users + 1,) and int32: the items each user rated in training, as of `Ratings`.
    user_ids, item_ids
        int64: the data set's own ids.

    Raises
    ------
    ModelError
        If the shapes do not fit together, or the factors are no real numbers.
    """

    user_factors: NDArray[np.float64]
    item_factors: NDArray[np.float64]
    seen_indptr: NDArray[np.int64]
    seen_items: NDArray[np.int32]
    user_ids: NDArray[np.int64]
    item_ids: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in ("user_factors", "item_factors"):
            object.__setattr__(self, name, _table(getattr(self, name)))
        (n_users, k), (n_items, k_items) = self.user_factors.shape, self.item_factors.shape
        if (
            k != k_items
            or not k
            or self.user_ids.shape != (n_users,)
            or self.item_ids.shape != (n_items,)
            or self.seen_indptr.shape != (n_users + 1,)
            or self.seen_items.shape != (self.seen_indptr[-1],)
        ):
            raise ModelError(
                f"the model's tables do not fit together: {n_users} users of {k} factors, "
                f"{n_items} items of {k_items}, {self.user_ids.size} user ids, "
                f"{self.item_ids.size} item ids, {self.seen_items.size} rated items"
            )

    @classmethod
    def of(
        cls,
        user_factors: NDArray[np.float64],
        item_factors: NDArray[np.float64],
        ratings: Ratings,
    ) -> Factors:
        """Return the factors of a training on `ratings`.

        Parameters
        ----------
        user_factors, item_factors
            P and Q, as of `Factors`.
        ratings
            What was trained on: says what each user has seen, and the ids.

        Raises
        ------
        ModelError
            If the factors are not of these users and items.
        """
        return cls(
            user_factors,
            item_factors,
            ratings.indptr,
            ratings.items,
            ratings.user_ids,
            ratings.item_ids,
        )

    @property
    def n_users(self) -> int:
        """The number of users."""
        return int(self.user_factors.shape[0])

    @property
    def n_items(self) -> int:
        """The number of items, m."""
        return int(self.item_factors.shape[0])

    @property
    def k(self) -> int:
        """The number of latent factors."""
        return int(self.item_factors.shape[1])

    def predict(self, users: ArrayLike, items: ArrayLike) -> NDArray[np.float64]:
        """Return r̂_ui = q_i · p_u (eq. 1) of each pair; not clipped to the scale.

        Parameters
        ----------
        users, items
            Integers of one shape, 0 ≤ user < n_users and 0 ≤ item < n_items.

        Returns
        -------
        float64 array, of the same shape

        Raises
        ------
        ModelError
            If a number is out of range or the shapes differ.
        """
        rows, columns = pairs(users, items, self.n_users, self.n_items)
        found = np.empty(rows.shape)
        _fast.predict(
            self.user_factors,
            self.item_factors,
            rows.reshape(-1),
            columns.reshape(-1),
            found.reshape(-1),
        )
        return found

    def seen(self, user: int) -> NDArray[np.int32]:
        """Return the items that a user has rated in training."""
        return self.seen_items[self.seen_indptr[user] : self.seen_indptr[user + 1]]

    def __repr__(self) -> str:
        return f"<Factors: {self.n_users} users, {self.n_items} items, k = {self.k}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the factors to `path` at once: readers see the old file or the new one.

        Parameters
        ----------
        path
            A file, new or to be replaced, in a folder that exists.

        Raises
        ------
        ModelError
            If the file cannot be written.
        """
        write_tables(path, {name: getattr(self, name) for name in TABLES})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Factors:
        """Read what `save` wrote.

        Parameters
        ----------
        path
            The file.

        Raises
        ------
        ModelError
            If the file is missing, is not a model, has another version, is cut short or
            damaged, or its tables are not such as `save` writes; the message says which.
        """
        factors = cls(**read_tables(path))
        _refuse_bad_numbers(factors, path)
        return factors


def _table(factors: ArrayLike) -> NDArray[np.float64]:
    """Return factors as the kernels take them: float64, row by row."""
    table = np.asarray(factors)
    if table.ndim != 2 or table.dtype.kind not in "fiu":
        raise ModelError(
            "the factors must be two tables of real numbers, one row per user and per item"
        )
    return np.ascontiguousarray(table, dtype=np.float64)


def _refuse_bad_numbers(factors: Factors, path: str | os.PathLike[str]) -> None:
    for name in ("user_factors", "item_factors"):
        if not np.isfinite(getattr(factors, name)).all():
            raise ModelError(
                f"the model {path} is refused: its {name} are not all finite: train it anew"
            )
    indptr, items = factors.seen_indptr, factors.seen_items
    if indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ModelError(f"the model {path} is refused: seen_indptr must ascend from 0")
    if items.size and not (items.min() >= 0 and items.max() < factors.n_items):
        raise ModelError(
            f"the model {path} is refused: seen_items must be among the items 0 to "
            f"{factors.n_items - 1}"
        )
