"""Vectors of the users, computed from their ratings: the local part of every sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate import Aggregate
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.data import Ratings
from fedmf.data.blocks import Block, blocks
from fedmf.errors import SettingError

Users = NDArray[np.int64]

LARGEST = 4096.0  # so that sums of 32,768 ratings, two from the middle, fit a clip of 16
STEP, REST = 16.0, 256.0  # the rest is exact to a quarter at 10 fractional bits


class LocalSteps(ABC):
    """Local steps of all users from the same state, which compute the users' vectors.

    A vector is computed at each look-up and not stored. Only a single user's vector is in
    memory at a time, or for sums in the clear the vectors of a single block of users.

    Parameters
    ----------
    ratings : ratings of all users
    shape : (m, k), the shape of every user's table
    at_once
        Number of users in a block for sums in the clear. None for as many users as fit into the
        cache with the rows of their ratings.
    """

    def __init__(
        self, ratings: Ratings, shape: tuple[int, int], at_once: int | None = None
    ) -> None:
        self.ratings, self.shape, self._at_once = ratings, shape, at_once

    @abstractmethod
    def rows(self, block: Block) -> Rows:
        """Return the rows of a block's users; a user's rows do not depend on other users."""

    def vector(self, user: int) -> Rows:
        """Return the rows of a user, as a sparse table."""
        return self.rows(Block.of(self.ratings, np.array([user])))

    def blocks(self, users: Sequence[int]) -> Iterator[Block]:
        """Return the users in blocks that are summed at once."""
        some, at_once = np.array(users, dtype=np.int64), self._at_once
        if at_once is None:
            return blocks(self.ratings, some, self.shape[1])
        starts = range(0, some.size, at_once)
        return (Block.of(self.ratings, some[start : start + at_once]) for start in starts)

    def vectors(self, cohort: Users) -> Vectors:
        """Return the vectors of a cohort, for an aggregation."""

        def pieces(users: Sequence[int]) -> Iterator[Rows]:
            return map(self.rows, self.blocks(users))

        return Vectors(cohort.tolist(), self.vector, self.shape, pieces)


class Means(LocalSteps):
    """Vectors of two numbers in two parts; the sums give both means. See `Loop.means`.

    A user sends Σ (r − c) and the number of ratings, where c is the middle of the scale.
    Multiples of `STEP` are divided by `LARGEST`, and the rest by `REST`.
    """

    def __init__(self, ratings: Ratings) -> None:
        super().__init__(ratings, (1, 4))
        self._centre = sum(ratings.scale) / 2

    def mean(self, total: Aggregate) -> float:
        """Return the mean of a sum, clipped to the scale; the scale's middle without ratings.

        A sum of few fractional bits may be far from the sum of the ratings. Raises SettingError
        if the sum was clipped.
        """
        if total.clipped:
            raise SettingError(
                f"the sum of a user's ratings is beyond the aggregation's clip of "
                f"{LARGEST:g} times that number: raise that"
            )
        rest, count = self._sums(total)
        mean = self._centre + rest / count if count > 0 else self._centre
        return float(np.clip(mean, *self.ratings.scale))

    def count(self, total: Aggregate) -> float:
        """Return the mean number of ratings of the users of a sum."""
        return max(self._sums(total)[1], 0.0) / len(total.survivors)

    def _sums(self, total: Aggregate) -> tuple[float, float]:
        rest, count = LARGEST * total.sum[:2] + REST * total.sum[2:]
        return float(rest), float(count)

    def rows(self, block: Block) -> Rows:
        """Return Σ (r − c) and the number of ratings of each of a block's users."""
        starts, counts = block.indptr[:-1], block.counts
        sums = np.zeros((counts.size, 2))
        some = counts > 0  # reduceat gives an element for an empty row
        sums[some, 0] = np.add.reduceat(block.values - self._centre, starts[some])
        sums[:, 1] = counts
        rest = sums % STEP
        sent = np.concatenate(((sums - rest) / LARGEST, rest / REST), axis=1)
        return Rows(np.zeros(counts.size, dtype=np.int32), sent, 1)


class Marks(LocalSteps):
    """Vectors with the number 1 for each rated item; the sums are the numbers of raters."""

    def rows(self, block: Block) -> Rows:
        """Return a 1 for each rated item of a block's users."""
        ones = np.ones((block.items.size, 1), dtype=np.int64)
        return Rows(block.items, ones, self.ratings.n_items)
