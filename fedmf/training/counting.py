"""What users send of their rated items alone, and the count of each item's raters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate import Aggregate, Aggregation
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.data import Ratings
from fedmf.data.blocks import Block, blocks
from fedmf.models.raters import Raters
from fedmf.training.schedule import Draw, Schedule

__all__ = ["count_raters", "vectors_of"]


def count_raters(
    aggregation: Aggregation,
    schedule: Schedule,
    number: int,
    users: NDArray[np.int64],
    ratings: Ratings,
    session: bytes,
) -> tuple[Raters, Aggregate]:
    """Let users count, for each item, how many of them rated it.

    Parameters
    ----------
    aggregation
        How the ones are summed.
    schedule, number
        Say who vanishes: those of round `number` that are drawn for counting.
    users
        int64, ascending: who counts.
    ratings
        Of these users and others.
    session
        The name of the sum, its own in the training.

    Raises
    ------
    RoundAborted
        If too few users are left.
    """

    def ones(block: Block) -> Rows:
        marks = np.ones((block.items.size, 1), dtype=np.int64)
        return Rows(block.items, marks, ratings.n_items)

    counted = aggregation.count(
        vectors_of(users, ratings, ones, 1),
        dropouts=schedule.dropouts(Draw.COUNT_DROPOUTS, number, users),
        session=session,
    )
    return Raters(counted.integers, len(counted.survivors) / users.size), counted


def vectors_of(
    users: NDArray[np.int64], ratings: Ratings, step: Callable[[Block], Rows], width: int
) -> Vectors:
    """Return the users' tables of `width` numbers per item, which `step` makes of any block."""

    def one(user: int) -> Rows:
        return step(Block.of(ratings, np.array([user])))

    def many(some: Sequence[int]) -> Iterator[Rows]:
        return map(step, blocks(ratings, np.array(some), width))

    return Vectors(users.tolist(), one, (ratings.n_items, width), many)
