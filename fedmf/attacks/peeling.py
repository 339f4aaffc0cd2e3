"""Attack that reads users' whole profiles from an exact item–item table XᵀX.

X is the binary table of the rated items, a row for each user. XᵀX is a sum over users, and all
that EASE needs (Steck, "Embarrassingly shallow autoencoders for sparse data", 2019). The row of
an item with a single rater is that user's whole profile. Subtracting the profile leaves the
table of the other users, and new items have a single rater there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data import Ratings
from fedmf.data.checks import check_ratings
from fedmf.errors import SettingError


def gram_of(ratings: Ratings) -> NDArray[np.int64]:
    """Return XᵀX of the rated items: int64, shape (m, m), numbers of two items' common raters.

    The values of the ratings do not count. Raises SettingError for another type.
    """
    check_ratings(ratings=ratings)
    marks = np.zeros((ratings.n_users, ratings.n_items))
    marks[ratings.users, ratings.items] = 1.0
    return np.rint(marks.T @ marks).astype(np.int64)


def from_gram(gram: ArrayLike) -> list[NDArray[np.int64]]:
    """Return the profiles found in XᵀX, each as ascending item numbers.

    Numbers of a noised table are rounded first; the profiles found there are wrong.

    Parameters
    ----------
    gram : finite numbers, shape (m, m), symmetric

    Raises
    ------
    SettingError
        If the table is not square or a number is not finite.
    """
    given = np.asarray(gram)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or not np.isfinite(given).all():
        raise SettingError(
            f"gram of shape {given.shape} must be a square table of finite numbers, as of "
            "gram_of(ratings)"
        )
    rest, found = np.rint(given).astype(np.int64), []
    for _ in range(len(rest)):  # each pass takes the last rater of at least one item
        lone = np.flatnonzero(np.diag(rest) == 1)
        if not lone.size:
            break
        profile = np.flatnonzero(rest[lone[0]])
        rest[np.ix_(profile, profile)] -= 1
        found.append(profile)
    return found


def peeled(ratings: Ratings, gram: ArrayLike) -> float:
    """Return the share of users with their whole profile among the profiles found in a table.

    Users without a rating are not counted; 0.0 if no user has a rating.

    Parameters
    ----------
    ratings : ratings of all users, for the comparison
    gram : exact or noised XᵀX of these ratings; see `from_gram`
    """
    check_ratings(ratings=ratings)
    found = {profile.tobytes() for profile in from_gram(gram)}
    profiles = [
        np.sort(ratings.of_user(user)[0]).astype(np.int64)
        for user in range(ratings.n_users)
        if ratings.of_user(user)[0].size
    ]
    right = sum(profile.tobytes() in found for profile in profiles)
    return right / len(profiles) if profiles else 0.0
