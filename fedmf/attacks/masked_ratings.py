"""Attacks on masked ratings of the FedMMF paper.

The attacks (sections 4.2.1 and 4.2.2) only scale or rank masked ratings. So a low success rate
is no sign of safety: `from_ridge` undoes masks, starting from the same numbers.
"""

from __future__ import annotations

import math

import numpy as np

from fedmf.attacks.leakage import Floats
from fedmf.data import Ratings
from fedmf.data.checks import check_ratings
from fedmf.settings import Positive, UpToOne, check


def recovery(ratings: Ratings, masked: Ratings, tolerance: float) -> Floats:
    """Return each user's recovery rate α (section 4.2.1).

    The adversary knows a user's lowest and highest rating and stretches the masked ratings to
    that range. A rating is recovered if the stretched value is less than `tolerance` off.
    Raises SettingError if an argument is of another type or out of range.

    Parameters
    ----------
    ratings, masked : the true ratings, and their residuals under the masks
    tolerance : float, error level g of the paper, > 0, in the unit of the ratings

    Returns
    -------
    rates : float64, shape (users with a rating,), in [0, 1]
    """
    check_ratings(ratings=ratings, masked=masked)
    check(Positive, tolerance=tolerance)
    rates = []
    for truth, hidden in _users(ratings, masked):
        width = np.ptp(hidden)
        place = (hidden - hidden.min()) / width if width else np.zeros_like(hidden)
        found = truth.min() + place * np.ptp(truth)
        rates.append((np.abs(found - truth) < tolerance).mean())
    return np.array(rates)


def ranking(ratings: Ratings, masked: Ratings, top: float, seed: int = 0) -> Floats:
    """Return each user's hit ratio β (section 4.2.2).

    For each user, the ⌈top · n⌉ items with the highest masked ratings are compared with the
    same number of items with the highest ratings. The share of common items is β. Ties, which
    the paper leaves open, are broken at random. Raises SettingError if an argument is of
    another type or out of range.

    Parameters
    ----------
    ratings, masked : see `recovery`
    top : float, h, the share of each user's n rated items to compare, 0 < top ≤ 1
    seed : int, seed of the order of ties, ≥ 0

    Returns
    -------
    ratios : float64, shape (users with a rating,), in [0, 1]
    """
    check_ratings(ratings=ratings, masked=masked)
    check(UpToOne, top=top)
    rng = np.random.default_rng(seed)
    ratios = []
    for truth, hidden in _users(ratings, masked):
        wanted = math.ceil(round(top * truth.size, 9))  # .3 · 10 is a little more than 3
        best = [np.lexsort((rng.random(one.size), -one))[:wanted] for one in (truth, hidden)]
        ratios.append(np.isin(best[1], best[0]).mean())
    return np.array(ratios)


def _users(ratings: Ratings, masked: Ratings) -> list[tuple[Floats, Floats]]:
    return [
        (ratings.of_user(user)[1], masked.of_user(user)[1])
        for user in np.flatnonzero(np.diff(ratings.indptr)).tolist()
    ]
