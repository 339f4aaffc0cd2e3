"""The ratings of a few users at a time, as the kernels take them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.data.ratings import Ratings

__all__ = ["Block", "blocks"]

ELEMENTS = 1 << 17  # a megabyte of floats: what is made of a block stays in the cache


@dataclass(frozen=True, eq=False)
class Block:
    """The ratings of some users in compressed rows, as of `Ratings`.

    Parameters
    ----------
    users
        int64, shape (n,): whose they are.
    indptr
        int64, shape (n + 1,), ascending from 0: user j's are those from indptr[j] on.
    items, values
        int32 and float64, shape (indptr[n],).
    """

    users: NDArray[np.int64]
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, ratings: Ratings, users: NDArray[np.int64]) -> Block:
        """Return the ratings of some users, in the order given.

        Parameters
        ----------
        ratings
            Of these users and others.
        users
            int64, shape (n,), 0 ≤ user < n_users.
        """
        starts, ends = ratings.indptr[users], ratings.indptr[users + 1]
        indptr = np.concatenate(([0], np.cumsum(ends - starts)))
        if (starts[1:] == ends[:-1]).all():  # neighbours: no need to copy
            here = slice(int(starts[0]), int(ends[-1])) if users.size else slice(0)
            return cls(users, indptr, ratings.items[here], ratings.values[here])
        where = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], ends - starts)
        return cls(users, indptr, ratings.items[where], ratings.values[where])

    @classmethod
    def of_one(cls, items: NDArray[np.int32], values: NDArray[np.float64]) -> Block:
        """Return a block of one user, number 0.

        Parameters
        ----------
        items, values
            int32 and float64, shape (n_u,): what the user rated, and how.
        """
        indptr = np.array([0, items.size])
        return cls(np.zeros(1, dtype=np.int64), indptr, items, values)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many ratings each user has: int64, shape (n,)."""
        return np.diff(self.indptr)


def blocks(ratings: Ratings, users: NDArray[np.int64], width: int) -> Iterator[Block]:
    """Part users into blocks such that `width` numbers to a rating fit into the cache.

    A user with more ratings than that is a block of their own.

    Parameters
    ----------
    ratings, users
        As of `Block.of`.
    width
        At least 1: how many floats are made of a rating.
    """
    ends = np.cumsum(np.diff(ratings.indptr)[users])
    first = done = 0
    while first < users.size:
        end = int(np.searchsorted(ends, done + ELEMENTS // width, side="right"))
        end = max(end, first + 1)
        yield Block.of(ratings, users[first:end])
        first, done = end, int(ends[end - 1])
