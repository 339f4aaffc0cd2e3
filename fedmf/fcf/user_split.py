"""Parting the ratings user by user, so that everyone is judged by the same share of theirs."""

from __future__ import annotations

import numpy as np

from fedmf.data import Ratings, Split
from fedmf.errors import SettingError

__all__ = ["user_split"]


def user_split(ratings: Ratings, test_fraction: float = 0.2, seed: int = 0) -> Split:
    """Put a fraction of each user's ratings to the test, drawn at random (FCF, section 6.3).

    Twice over it gives the paper's 60/20/20: a fifth for the test, then a quarter of the rest
    for validation. An item with few ratings may lose all of them from the training part.

    Parameters
    ----------
    test_fraction
        0 < test_fraction < 1; of a user's n ratings round(test_fraction · n) go to the test
        (a half to the even number).
    seed
        Of the generator, seed ≥ 0; the same ratings and seed give the same split.

    Raises
    ------
    SettingError
        If the fraction or the seed is out of range.
    """
    if not 0 < test_fraction < 1:
        raise SettingError(f"test_fraction = {test_fraction} is not between 0 and 1")
    if seed < 0:
        raise SettingError(f"seed = {seed} is negative; it must be at least 0")
    users = ratings.users
    shuffled = np.lexsort((np.random.default_rng(seed).random(ratings.n_ratings), users))
    n_test = np.rint(test_fraction * np.diff(ratings.indptr))
    place = np.arange(ratings.n_ratings) - ratings.indptr[users]  # within the user's row
    test = np.zeros(ratings.n_ratings, dtype=np.bool_)
    test[shuffled] = place < n_test[users]
    return Split(train=ratings.take(~test), test=ratings.take(test))
