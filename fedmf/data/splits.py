"""Splits of ratings into a training and a test part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedmf.data.checks import check_ratings
from fedmf.data.ratings import Ratings, Split
from fedmf.data.sets.folders import folder_of
from fedmf.data.sets.lines import RatingTable, damaged
from fedmf.data.sets.movielens import FORMATS
from fedmf.data.sets.sources import SOURCES
from fedmf.errors import DataError, SettingError
from fedmf.settings import Count, ProperFraction, Range, Seed, check, is_whole

FOLDS = range(1, 6)


def random_split(ratings: Ratings, test_fraction: float = 0.2, seed: int = 0) -> Split:
    """Draw the test part at random from all ratings; a user may lose all training ratings.

    Raises SettingError if an argument is of another type or out of range.

    Parameters
    ----------
    ratings : ratings to split
    test_fraction
        0 < test_fraction < 1; the test part has round(test_fraction · n_ratings) ratings.
    seed : int, seed of the generator, ≥ 0; the same ratings and seed give the same split
    """
    check_ratings(ratings=ratings)
    check(ProperFraction, test_fraction=test_fraction)
    check(Seed, seed=seed)
    n_test = round(test_fraction * ratings.n_ratings)
    return _parted(ratings, np.random.default_rng(seed).permutation(ratings.n_ratings)[:n_test])


def random_folds(ratings: Ratings, folds: int = 5, seed: int = 0) -> list[Split]:
    """Draw folds of almost equal sizes at random; each fold is the test part of a split.

    Raises SettingError if an argument is of another type or out of range.

    Parameters
    ----------
    ratings : ratings to split
    folds : int, number of folds, from 2 to the number of ratings
    seed : int, seed of the generator, ≥ 0; the same ratings and seed give the same folds
    """
    check_ratings(ratings=ratings)
    Range(int, 2, ratings.n_ratings).check("folds", folds)
    check(Seed, seed=seed)
    fold = np.random.default_rng(seed).permutation(ratings.n_ratings) % folds
    return [_parted(ratings, fold == one) for one in range(folds)]


def leave_last(ratings: Ratings, k: int = 1) -> Split:
    """Put the last `k` ratings of each user, by time, into the test part.

    The order in the file breaks ties. A user with `k` ratings or fewer has all of them in the
    training part. Raises SettingError if an argument is of another type or out of range.

    Parameters
    ----------
    ratings : ratings to split
    k : int, number of test ratings per user, ≥ 1
    """
    check_ratings(ratings=ratings)
    check(Count, k=k)
    users = ratings.users
    oldest_first = np.lexsort((ratings.times, users))  # stable, so ties keep the file's order
    newer = ratings.indptr[users + 1] - 1 - np.arange(ratings.n_ratings)
    last = (newer < k) & (np.diff(ratings.indptr)[users] > k)
    return _parted(ratings, oldest_first[last])


def time_split(ratings: Ratings, test_fraction: float = 0.2) -> Split:
    """Put the last ratings of all, by time, into the test part.

    The model sees the past alone, as in use. Users who come late have no training rating.
    Ratings of equal time are in the order of users, and then in the order of the file.

    Parameters
    ----------
    ratings : ratings to split
    test_fraction
        0 < test_fraction < 1; the test part has round(test_fraction · n_ratings) ratings.

    Raises
    ------
    SettingError
        If an argument is of another type or out of range.
    DataError
        If all ratings have the same time, as ratings that were read without times, or if the
        times are ranks within each user, which do not order the ratings of different users.
    """
    check_ratings(ratings=ratings)
    check(ProperFraction, test_fraction=test_fraction)
    if not ratings.n_ratings or ratings.times.min() == ratings.times.max():
        raise DataError(
            f"{ratings.name} has no times, or one time for all ratings: read a column of "
            "times, or split at random"
        )
    # by rank the test part would be the users with most ratings
    in_order = ratings.times[np.lexsort((ratings.times, ratings.users))] - ratings.times.min()
    ranks = np.arange(ratings.n_ratings) - ratings.indptr[ratings.users]
    if np.ptp(ratings.users) and np.array_equal(in_order, ranks):
        raise DataError(
            f"the times of {ratings.name}, 0 to {ranks.max()} from the first, are each user's "
            "own ranks: read a column of real times, or split by leave_last or at random"
        )
    n_train = ratings.n_ratings - round(test_fraction * ratings.n_ratings)
    return _parted(ratings, np.argsort(ratings.times, kind="stable")[n_train:])


def user_split(ratings: Ratings, test_fraction: float = 0.2, seed: int = 0) -> Split:
    """Draw a fraction of each user's ratings for the test part at random (FCF, section 6.3).

    For the paper's 60/20/20, split off a fifth for the test, then a quarter of the rest for
    validation. Raises SettingError if an argument is of another type or out of range.

    Parameters
    ----------
    ratings : ratings to split
    test_fraction
        0 < test_fraction < 1. A user with n ratings has round(test_fraction · n) test ratings;
        a half is rounded to the even number.
    seed : int, seed of the generator, ≥ 0; the same ratings and seed give the same split
    """
    check_ratings(ratings=ratings)
    check(ProperFraction, test_fraction=test_fraction)
    check(Seed, seed=seed)
    users = ratings.users
    shuffled = np.lexsort((np.random.default_rng(seed).random(ratings.n_ratings), users))
    n_test = np.rint(test_fraction * np.diff(ratings.indptr))
    place = np.arange(ratings.n_ratings) - ratings.indptr[users]  # within the user's row
    return _parted(ratings, shuffled[place < n_test[users]])


def official(ratings: Ratings, fold: int, root: Path | None = None) -> Split:
    """Split ml-100k by the official files u1.base, u1.test, …, for a 5-fold cross-validation.

    Parameters
    ----------
    ratings : all 100,000 ratings from `fedmf.data.load`; 20,000 are test ratings
    fold : int, number of the fold, 1 to 5
    root : see `fedmf.data.load`

    Raises
    ------
    SettingError
        If an argument is of another type or out of range.
    DataError
        If `ratings` are of another data set, a file is missing or damaged, or the two files of
        the fold do not have exactly these ratings.
    """
    check_ratings(ratings=ratings)
    if not is_whole(fold) or fold not in FOLDS:
        raise SettingError(f"fold = {fold!r} must be an integer from 1 to 5")
    if ratings.name != "ml-100k":
        raise DataError(
            f"{ratings.name} has no official splits: choose ml-100k or another split"
        )
    form = FORMATS["ml-100k"]
    folder = folder_of(SOURCES[form.name], root)
    seen = np.zeros(ratings.n_ratings, dtype=np.bool_)
    test = np.zeros(ratings.n_ratings, dtype=np.bool_)
    for part in ("base", "test"):
        path = folder / f"u{fold}.{part}"
        table = form.read_table(path)
        found = _positions(ratings, table)
        lost = (found < 0) | seen[found]
        if lost.any():
            line = int(np.argmax(lost))
            where = f"in {form.ratings}" if found[line] < 0 else "left for this file"
            pair = f"user {table.users[line]}, item {table.items[line]}"
            raise damaged(path, line + 1, f"there is no such rating ({pair}) {where}")
        seen[found] = True
        test[found] = part == "test"
    if not seen.all():
        raise DataError(
            f"u{fold}.base and u{fold}.test in {folder} have {seen.sum()} of the "
            f"{ratings.n_ratings} ratings: one file is cut short; unpack the data set again"
        )
    return _parted(ratings, test)


def _parted(ratings: Ratings, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Split:
    """Return the split with the chosen ratings, a mask or positions, as the test part."""
    test = np.zeros(ratings.n_ratings, dtype=np.bool_)
    test[chosen] = True
    return Split(train=ratings.take(~test), test=ratings.take(test))


def _positions(ratings: Ratings, table: RatingTable) -> NDArray[np.int64]:
    """Return the position in `ratings` of each line's rating, -1 for a missing rating."""
    user_ids, item_ids = ratings.user_ids.astype(np.int64), ratings.item_ids.astype(np.int64)
    pair = user_ids[ratings.users] * 10**9 + item_ids[ratings.items]
    order = np.argsort(pair)
    sought = table.users * 10**9 + table.items
    place = order[np.searchsorted(pair[order], sought).clip(max=pair.size - 1)]
    same = (pair[place] == sought) & (ratings.values[place] == table.values)
    return np.where(same, place, -1)
