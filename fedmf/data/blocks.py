"""Blocks of a few users' ratings in compressed rows, the input of the kernels in `_fast`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.data.ratings import Ratings

ELEMENTS = 1 << 17  # a megabyte of floats, so that the temporaries of a block stay in the cache


@dataclass(frozen=True, eq=False)
class Block:
    """Ratings of some users in compressed rows; see `Ratings`.

    Parameters
    ----------
    users : int64, shape (n,), numbers of the users
    indptr : int64, shape (n + 1,), ascending from 0: ratings of ``users[j]`` start at indptr[j]
    items, values : int32 and float64, shape (indptr[n],), the rated items and their ratings
    """

    users: NDArray[np.int64]
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, ratings: Ratings, users: NDArray[np.int64]) -> Block:
        """Return the ratings of `users`, int64, 0 ≤ user < n_users, in the given order."""
        starts, ends = ratings.indptr[users], ratings.indptr[users + 1]
        indptr = np.concatenate(([0], np.cumsum(ends - starts)))
        if (starts[1:] == ends[:-1]).all():  # neighbours: no need to copy
            here = slice(int(starts[0]), int(ends[-1])) if users.size else slice(0)
            return cls(users, indptr, ratings.items[here], ratings.values[here])
        where = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], ends - starts)
        return cls(users, indptr, ratings.items[where], ratings.values[where])

    @classmethod
    def of_one(cls, items: NDArray[np.int32], values: NDArray[np.float64]) -> Block:
        """Return the block of a single user, number 0, with n_u items and values."""
        indptr = np.array([0, items.size])
        return cls(np.zeros(1, dtype=np.int64), indptr, items, values)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of ratings of each user: int64, shape (n,)."""
        return np.diff(self.indptr)


def blocks(ratings: Ratings, users: NDArray[np.int64], width: int) -> Iterator[Block]:
    """Yield users in blocks that fit into the cache with `width` ≥ 1 floats per rating.

    A user with too many ratings for the cache is a separate block. See `Block.of` for `users`.
    """
    ends = np.cumsum(np.diff(ratings.indptr)[users])
    first = done = 0
    while first < users.size:
        end = int(np.searchsorted(ends, done + ELEMENTS // width, side="right"))
        end = max(end, first + 1)
        yield Block.of(ratings, users[first:end])
        first, done = end, int(ends[end - 1])
