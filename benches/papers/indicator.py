"""Privacy indicator of the FedMMF paper (section 3.3).

The indicator measures how well a mask fits and **is no measure of protection**. Masked ratings
reveal the ratings even at the smallest J (`fedmf.attacks.from_ridge`): a public rule has fitted
the mask to those ratings.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fedmf.data import Ratings
from fedmf.data.checks import check_ratings
from fedmf.errors import SettingError
from fedmf.masks.protocol import FittedMask
from fedmf.settings import NotNegative, ProperFraction, check, is_number


def indicator(ratings: Ratings, mask: FittedMask) -> NDArray[np.float64]:
    """Return each user's J, the mean of (R − f_u)² with ratings scaled to [0, 1].

    For the ratings that the mask was fitted on, J is eq. 15. For held-out ratings J estimates
    the expectation of eq. 13. The paper calls a user with a small J well protected. Raises
    SettingError if `ratings` is not `Ratings`, and ModelError if a user or item of a rating is
    unknown to `mask`.

    Parameters
    ----------
    ratings : ratings over the same users and items as `mask`
    mask : masks of all users, the result of `Mask.fit`

    Returns
    -------
    j : float64, shape (n_users,), ≥ 0; NaN for users without a rating in `ratings`
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
    """Return the mean of `indicator` over the users with a rating; NaN without any rating."""
    j = indicator(ratings, mask)
    there = j[~np.isnan(j)]
    return float(there.mean()) if there.size else math.nan


def well_masked(ratings: Ratings, mask: FittedMask, at_most: float) -> tuple[int, ...]:
    """Return the users, ascending, with an `indicator` ≤ `at_most`: the paper's "good" masks.

    In the paper's mixed mode (`MixedSum`) these users send plain gradients. A small J shows
    that a mask fits well, but a mask that fits well can still be undone. Users without a rating
    are left out. Raises SettingError if `at_most` is not a number of at least 0; for other
    errors see `indicator`.
    """
    if not is_number(at_most) or not at_most >= 0:  # infinity is valid: all users
        raise SettingError(f"at_most = {at_most!r} must be a number of at least 0")
    return tuple(np.flatnonzero(indicator(ratings, mask) <= at_most).tolist())


def samples_needed(epsilon: float, delta: float, bits: float) -> int:
    """Return the number of ratings for J to be within ε of the best with probability 1 − δ.

    Theorem 1 with the sample size corrected: n ≥ 2 ln(2|F| / δ) / ε², which is eq. 18 with the
    ε/2 that eq. 20 needs. The paper's eq. 23 has half of that size. Raises SettingError if a
    value is out of range.

    Parameters
    ----------
    epsilon, delta : float, 0 < ε < 1 and 0 < δ < 1
    bits : float, ≥ 0, log₂ |F|: the number of a mask's parameters times the bits of a parameter
    """
    check(ProperFraction, epsilon=epsilon, delta=delta)
    check(NotNegative, bits=bits)
    return math.ceil(2 * (math.log(2 / delta) + bits * math.log(2)) / epsilon**2)
