"""`Ratings`, the type of ratings throughout fedmf, the `Catalogue` of items, and `Split`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedmf.errors import DataError

Ids: TypeAlias = NDArray[np.int64] | NDArray[np.str_] | np.ndarray[Any, np.dtypes.StringDType]
"""A data set's own ids of users or items: integers, or texts such as names.

Texts are in an array of StringDType if a table as wide as the longest text wastes memory.
"""


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Titles, years and genres of all items, which are public.

    Raises DataError if the shapes or dtypes do not fit together.

    Parameters
    ----------
    titles : one title per item, as in the data set; a title of MovieLens ends with the year
    years : int16, shape (n_items,): year of release, 0 for an unknown year
    genres : bool, shape (n_items, n_genres): membership of the item in each genre
    genre_names : one name per column of `genres`
    """

    titles: tuple[str, ...]
    years: NDArray[np.int16]
    genres: NDArray[np.bool_]
    genre_names: tuple[str, ...]

    def __post_init__(self) -> None:
        seal(self, years=np.int16, genres=np.bool_)
        n_items = len(self.titles)
        shapes = (n_items,), (n_items, len(self.genre_names))
        if (self.years.shape, self.genres.shape) != shapes:
            raise DataError(
                f"the catalogue's {n_items} titles and {len(self.genre_names)} genre names do "
                f"not fit years {self.years.shape} and genres {self.genres.shape}"
            )

    def __len__(self) -> int:
        return len(self.titles)

    def __repr__(self) -> str:
        return f"<Catalogue: {len(self)} items, {len(self.genre_names)} genres>"


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings as compressed rows, one row per user; immutable, compared by identity.

    Rating ``j`` is by the user ``u`` with ``indptr[u] <= j < indptr[u + 1]``. A user's ratings
    are in the order of the file. Users and items are numbered 0, 1, ... by ascending original
    id. A subset (`take`) has the same numbers, even if users or items lose all ratings. Raises
    DataError if a dtype, shape or range is wrong, or a user rates an item twice.

    Parameters
    ----------
    name : name of the data set
    indptr : int64, shape (n_users + 1,), ascending from 0 to n_ratings
    items : int32, shape (n_ratings,), 0 ≤ item < n_items, distinct for each user
    values : float64, shape (n_ratings,), within `scale`
    times
        int64, shape (n_ratings,): seconds since 1970, or any numbers that order each user's
        ratings.
    n_items : number of items, rated or not
    scale : lowest and highest possible rating
    user_ids, item_ids
        int64 or text, shapes (n_users,) and (n_items,): the data set's own ids.
    catalogue : titles, years and genres of the items
    """

    name: str
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[np.float64]
    times: NDArray[np.int64]
    n_items: int
    scale: tuple[float, float]
    user_ids: Ids
    item_ids: Ids
    catalogue: Catalogue

    def __post_init__(self) -> None:
        seal(self, indptr=np.int64, items=np.int32, values=np.float64, times=np.int64)
        for name in ("user_ids", "item_ids"):
            text = getattr(getattr(self, name), "dtype", np.dtype(np.int64)).kind in "TU"
            seal(self, **{name: np.str_ if text else np.int64})
        n_ratings = self.values.size
        low, high = self.scale
        sound = {
            "indptr": self.indptr.shape == (self.user_ids.size + 1,)
            and self.indptr[0] == 0
            and self.indptr[-1] == n_ratings
            and bool((np.diff(self.indptr) >= 0).all()),
            "items": self.items.shape == (n_ratings,)
            and bool(((self.items >= 0) & (self.items < self.n_items)).all()),
            "values": self.values.ndim == 1
            and bool(((self.values >= low) & (self.values <= high)).all()),
            "times": self.times.shape == (n_ratings,),
            "item_ids": self.item_ids.shape == (self.n_items,),
            "catalogue": isinstance(self.catalogue, Catalogue)
            and len(self.catalogue) == self.n_items,
        }
        for field, good in sound.items():
            if not good:
                raise DataError(
                    f"Ratings.{field} does not fit {self.user_ids.size} users, {self.n_items} "
                    f"items and {n_ratings} ratings from {low:g} to {high:g}"
                )
        self._check_pairs()

    def _check_pairs(self) -> None:
        """Raise DataError if a user rates an item twice, as an update has one row per item."""
        first = np.arange(self.n_users, dtype=np.int64) * self.n_items
        pairs = np.repeat(first, np.diff(self.indptr)) + self.items
        pairs.sort()  # np.unique takes fifty times as long
        again = pairs[1:][pairs[1:] == pairs[:-1]]
        if again.size:
            user, item = divmod(int(again[0]), self.n_items)
            raise DataError(
                f"{self.name}: user {self.user_ids[user]} rates item {self.item_ids[item]} "
                "more than once: keep one of these ratings, or their mean"
            )

    @property
    def n_users(self) -> int:
        """Number of users, including users without a rating in this subset."""
        return self.user_ids.size

    @property
    def n_ratings(self) -> int:
        """Number of ratings."""
        return self.values.size

    @cached_property
    def users(self) -> NDArray[np.int32]:
        """User of each rating: int32, shape (n_ratings,), ascending."""
        users = np.repeat(np.arange(self.n_users, dtype=np.int32), np.diff(self.indptr))
        users.flags.writeable = False
        return users

    def of_user(self, user: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the items and values of a user, read-only; IndexError if out of range."""
        if not 0 <= user < self.n_users:
            raise IndexError(f"user {user} is not in 0 <= user < {self.n_users}")
        row = slice(self.indptr[user], self.indptr[user + 1])
        return self.items[row], self.values[row]

    def take(self, which: NDArray[np.bool_] | NDArray[np.integer[Any]]) -> Ratings:
        """Return a subset of the ratings, in the same order, over the same users and items.

        Raises IndexError if the mask has another length or a position is out of range.

        Parameters
        ----------
        which
            Mask, bool of shape (n_ratings,), True for the ratings to take. Or positions of the
            ratings as integers, in any order; a repeated position is taken once.
        """
        mask = np.zeros(self.n_ratings, dtype=np.bool_)
        mask[which] = True
        before = np.concatenate(([0], np.cumsum(mask, dtype=np.int64)))
        return replace(
            self,
            indptr=before[self.indptr],
            items=self.items[mask],
            values=self.values[mask],
            times=self.times[mask],
        )

    def with_values(self, values: NDArray[np.float64], scale: tuple[float, float]) -> Ratings:
        """Return the same pairs with other values and scale, such as a model's residuals.

        Raises DataError if `values` is not float64 of shape (n_ratings,), within `scale`.
        """
        return replace(self, values=values, scale=scale)

    def __len__(self) -> int:
        return self.n_ratings

    def __repr__(self) -> str:
        return (
            f"<Ratings {self.name!r}: {self.n_ratings} ratings of {self.n_items} items by "
            f"{self.n_users} users>"
        )


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test part of the same ratings, disjoint, over the same users and items."""

    train: Ratings
    test: Ratings


def check_size(ratings: Ratings, expected: tuple[int, int, int], files: str) -> None:
    """Validate the numbers of users, items and ratings against the published `expected`.

    Raises DataError if a number differs; the message names `files`, the files that were read.
    """
    found = (ratings.n_users, ratings.n_items, ratings.n_ratings)
    if found != expected:
        raise DataError(
            f"{ratings.name} should have {expected[0]} users, {expected[1]} items and "
            f"{expected[2]} ratings, but {found[0]}, {found[1]} and {found[2]} were found: "
            f"{files} is cut short or another edition; unpack the data set again"
        )


def seal(owner: object, **dtypes: type[np.generic]) -> None:
    """Replace arrays of a dataclass by read-only views; raises DataError for a wrong dtype."""
    for field, dtype in dtypes.items():
        array = getattr(owner, field)
        if not isinstance(array, np.ndarray) or not is_dtype(array.dtype, dtype):
            found = getattr(array, "dtype", type(array).__name__)
            raise DataError(
                f"{type(owner).__name__}.{field} must be an array of {dtype.__name__}, "
                f"not {found}"
            )
        view = array.view()
        view.flags.writeable = False
        object.__setattr__(owner, field, view)


def is_dtype(found: np.dtype[Any], wanted: type[np.generic]) -> bool:
    """Return True for the wanted dtype; a dtype of texts may have any length."""
    return found.kind in "TU" if wanted is np.str_ else found == wanted
