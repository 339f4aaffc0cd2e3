"""Success of an attack: against plain sums, against secure ones, and against guessing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.attacks.leakage import on_grid
from fedmf.data import Ratings
from fedmf.errors import DataError

__all__ = ["Outcome", "all_of", "chance", "grid_of", "share_right"]

Floats = NDArray[np.float64]

EXACT = 1e-9


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The shares of ratings that an attack gives exactly; see `on_masked_ratings` for others.

    Parameters
    ----------
    attack
        Its name.
    plain
        From what a server sees without secure aggregation.
    secure
        The same computed from what it sees with it: a user's masked input.
    summed
        The same from the sum over all users; None where the attack has no use for it.
    chance
        What who knows nothing of the user gets by always guessing the most frequent rating; of
        the attacks on masked ratings, what shuffled numbers give.
    ratings
        How many there were to be found.
    """

    attack: str
    plain: float
    secure: float
    summed: float | None
    chance: float
    ratings: int


def grid_of(ratings: Ratings) -> Floats:
    """Return all ratings that can be given, ascending: in half steps if anybody gave a half.

    Raises
    ------
    DataError
        If a rating is on neither grid: every attack that looks for ratings on one would miss
        it, which must not be taken for safety.
    """
    low, high = ratings.scale
    if np.isfinite(high - low):
        step = 1.0 if ((ratings.values - low) % 1 == 0).all() else 0.5
        grid = np.arange(low, high + step / 2, step)
        if grid.size > 1:  # for there to be a step
            off = np.abs(on_grid(ratings.values, grid) - ratings.values)
            if (off < EXACT).all():
                return grid
    raise DataError(
        f"the ratings of {ratings.name}, {low:g} to {high:g}, are not in whole or half steps: "
        "these trials need such ratings; from_two_rounds takes any"
    )


def share_right(found: Floats, truth: Floats) -> float:
    """Return the share of ratings found exactly; NaN is not found."""
    return float((np.abs(found - truth) < EXACT).mean()) if truth.size else 0.0


def chance(truth: Floats) -> float:
    """Return the share of the most frequent rating."""
    return float(np.unique(truth, return_counts=True)[1].max() / truth.size)


def all_of(ratings: Ratings, users: NDArray[np.int64]) -> Floats:
    """Return the ratings of some users, one user after the other."""
    return np.concatenate([ratings.of_user(int(user))[1] for user in users])
