"""The privacy indicator of the FedMMF paper and its sample bound (section 3.3).

Both are about how well a mask fits, and **neither is a measure of protection**: masked ratings
with a J however small give the ratings away (`fedmf.attacks.from_ridge`), because the mask was
fitted to those ratings by a rule that everybody knows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fedmf.data import Ratings
from fedmf.data.checks import check_ratings
from fedmf.errors import SettingError
from fedmf.masks.protocol import FittedMask
from fedmf.settings import NotNegative, Proportion, check, is_number

__all__ = ["indicator", "mean_indicator", "samples_needed", "well_masked"]


def indicator(ratings: Ratings, mask: FittedMask) -> NDArray[np.float64]:
    """Return each user's J: the mean of (R − f_u)², ratings scaled to [0, 1].

    On the ratings that the mask was fitted on it is eq. 15; on ratings that were held out it
    estimates the expectation of eq. 13. The paper calls a small J well protected.

    Parameters
    ----------
    ratings
        Of the parties, over the users and items that the masks were fitted on.
    mask
        The parties' masks, as `Mask.fit` returns them.

    Returns
    -------
    j
        float64, shape (n_users,), at least 0; NaN for users without a rating here.

    Raises
    ------
    SettingError
        If something else than `Ratings` is passed.
    ModelError
        If the mask was fitted on other users or items.
    """
    check_ratings(ratings=ratings)
    low, high = ratings.scale
    left = (ratings.values - mask.predict(ratings.users, ratings.items)) / (high - low)
    rated = np.diff(ratings.indptr)
    total = np.bincount(ratings.users, left**2, ratings.n_users)
    j = np.full(rated.size, np.nan)
    np.divide(total, rated, out=j, where=rated > 0)
    return j


def mean_indicator(ratings: Ratings, mask: FittedMask) -> float:
    """Return the mean of J over the users who have a rating; NaN if nobody has.

    Parameters
    ----------
    ratings, mask
        As of `indicator`.

    Raises
    ------
    SettingError, ModelError
        As of `indicator`.
    """
    j = indicator(ratings, mask)
    there = j[~np.isnan(j)]
    return float(there.mean()) if there.size else math.nan


def well_masked(ratings: Ratings, mask: FittedMask, at_most: float) -> tuple[int, ...]:
    """Return the users whose J is at most a bound: the parties with "good" masks.

    In the paper's mixed mode these send plain gradients (`MixedSum`). Each can tell locally,
    from its own ratings alone; but it learns how well its mask fits, not whether it can be
    undone, and it can.

    Parameters
    ----------
    ratings, mask
        As of `indicator`.
    at_most
        The greatest J of a "good" mask, on the scale of `indicator`, at least 0.

    Returns
    -------
    users
        Their numbers, ascending; users without a rating are not among them.

    Raises
    ------
    SettingError
        If the bound is no number of at least 0, or as of `indicator`.
    ModelError
        As of `indicator`.
    """
    if not is_number(at_most) or not at_most >= 0:  # infinity is as good: everybody
        raise SettingError(f"at_most = {at_most!r} must be at least 0: J is a mean square")
    return tuple(np.flatnonzero(indicator(ratings, mask) <= at_most).tolist())


def samples_needed(epsilon: float, delta: float, bits: float) -> int:
    """Return how many ratings theorem 1 asks for: J within ε of the best, with 1 − δ.

    n ≥ 2 ln(2|F| / δ) / ε². The paper's eq. 18 is ln(2|F| / δ) / (2 ε²) for a bound of 2 ε in
    eq. 20, so that ε/2 for ε gives the 2 in front and no 2 below; its eq. 23 writes
    2 ln(2|F| / δ) / (2 ε²), half of what the proof needs. Its "≤" is of the least n that will
    do; what to have is at least this.

    Parameters
    ----------
    epsilon, delta
        Between 0 and 1, both excluded.
    bits
        log₂ |F| ≥ 0: the numbers that make up a mask, times the bits of each.

    Raises
    ------
    SettingError
        If a value is out of range.
    """
    check(Proportion, epsilon=epsilon, delta=delta)
    check(NotNegative, bits=bits)
    return math.ceil(2 * (math.log(2 / delta) + bits * math.log(2)) / epsilon**2)
