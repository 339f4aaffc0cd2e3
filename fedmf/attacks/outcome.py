"""Success of an attack against plain and secure sums, compared with guessing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.attacks.leakage import on_grid
from fedmf.data import Ratings
from fedmf.data.internal import internal, to_internal
from fedmf.errors import DataError

Floats = NDArray[np.float64]

EXACT = 1e-9


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Success of an attack, as shares of ratings found exactly, from 0 to 1.

    `on_masked_ratings` reports the mean rates of the paper's attacks instead.

    Parameters
    ----------
    attack : str, name of the attack
    plain : float, share without secure aggregation
    secure : float, share with secure aggregation, found from a user's masked input
    summed : float, share found from the sum over all users, which secure aggregation reveals
    chance : float, share found by guessing the most frequent rating
        For attacks on masked ratings, the share found with shuffled numbers.
    ratings : int, number of ratings to find
    """

    attack: str
    plain: float
    secure: float
    summed: float
    chance: float
    ratings: int

    def __repr__(self) -> str:
        found = f"plain {self.plain:.3f}, secure {self.secure:.3f}, sum {self.summed:.3f}"
        return f"<Outcome: {self.attack}, {found}, chance {self.chance:.3f}>"

    @classmethod
    def of(
        cls, attack: str, truth: Floats, plain: Floats, secure: Floats, summed: Floats
    ) -> Outcome:
        """Return the outcome of three arrays of found ratings, each of the shape of `truth`."""
        return cls(
            attack=attack,
            plain=share_right(plain, truth),
            secure=share_right(secure, truth),
            summed=share_right(summed, truth),
            chance=chance(truth),
            ratings=truth.size,
        )


def grid_of(ratings: Ratings) -> Floats:
    """Return all possible ratings, ascending, in half steps if any rating has a half.

    Raises DataError for ratings in other steps, as an attack would fail for that reason.
    """
    low, high = ratings.scale
    if np.isfinite(high - low):
        step = 1.0 if ((ratings.values - low) % 1 == 0).all() else 0.5
        grid = np.arange(low, high + step / 2, step)
        if grid.size > 1:  # else there is no step
            off = np.abs(on_grid(ratings.values, grid) - ratings.values)
            if (off < EXACT).all():
                return grid
    raise DataError(
        f"the ratings of {ratings.name}, {low:g} to {high:g}, are not in whole or half steps, "
        "which the attack needs: choose another data set"
    )


def gridded(ratings: Ratings) -> tuple[Ratings, Floats]:
    """Return the ratings on the internal scale of the training, and their grid there."""
    grid = grid_of(ratings)  # raises for a scale that cannot be mapped
    return internal(ratings), to_internal(grid, ratings.scale)


def share_right(found: Floats, truth: Floats) -> float:
    """Return the share of ratings found exactly; NaN is not found."""
    return float((np.abs(found - truth) < EXACT).mean()) if truth.size else 0.0


def chance(truth: Floats) -> float:
    """Return the share of the most frequent rating, 0 for no ratings."""
    counts = np.unique(truth, return_counts=True)[1]
    return float(counts.max() / truth.size) if truth.size else 0.0


def all_of(ratings: Ratings, users: NDArray[np.int64]) -> Floats:
    """Return the ratings of some users, one user after the other."""
    return np.concatenate([ratings.of_user(int(user))[1] for user in users])
