"""Two rounds of a training as a server sees them: plain, under masks, and summed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.attacks.leakage import Seen, from_two_rounds
from fedmf.attacks.observed import Progress, in_the_clear, train, under_masks
from fedmf.data import Ratings
from fedmf.data.checks import check_ratings
from fedmf.errors import SettingError
from fedmf.models import PRESETS, FedMF
from fedmf.models.recommender import numbers
from fedmf.settings import Seed, check

__all__ = ["PAPER", "Users", "View", "attacked", "leaked", "quiet", "views"]

Floats = NDArray[np.float64]
Users = NDArray[np.int64]
View = Callable[[int], tuple[Seen, Seen]]
"""A user as the server sees them in the first round and in the second."""

PAPER = PRESETS["paper"].model  # leaves no item out, as the paper does not


def quiet(what: str, done: int, of: int) -> None:
    """Report no progress."""


def attacked(ratings: Ratings, users: ArrayLike, seed: int) -> Users:
    """Return who is attacked, ascending and each once, of what a trial was asked for.

    Raises
    ------
    SettingError
        If these are no ratings, nobody is attacked or somebody without a rating, or the seed is
        no whole number of at least 0.
    ModelError
        If a user is not among those of the ratings.
    """
    check_ratings(ratings=ratings)
    check(Seed, seed=seed)
    some = np.unique(numbers("user", users, ratings.n_users))
    if not some.size:
        raise SettingError("nobody is attacked: name a user, or draw some with chosen()")
    silent = some[np.diff(ratings.indptr)[some] == 0]
    if silent.size:
        raise SettingError(
            f"user {silent[0]} has no rating to be found: draw users with chosen()"
        )
    return some


def views(
    ratings: Ratings, users: Users, model: FedMF, seed: int, progress: Progress
) -> tuple[View, View, View]:
    """Train for two rounds; return what the server then has of a user, by three ways to sum.

    These are the user's own gradients, their masked inputs, and the sum over all users.
    """
    rounds = train(model, ratings, 2, seed, progress)
    secure = [under_masks(one, set(users.tolist()), seed, progress) for one in rounds]

    def plain(user: int) -> tuple[Seen, Seen]:
        return in_the_clear(rounds[0], user), in_the_clear(rounds[1], user)

    def at(tables: Callable[[int], list[Floats]]) -> View:
        def view(user: int) -> tuple[Seen, Seen]:
            items = rounds[0].gradients[user].indices
            first, second = (
                Seen(one.q[items], table[items])
                for one, table in zip(rounds, tables(user), strict=True)
            )
            return first, second

        return view

    return (
        plain,
        at(lambda user: [one.masked[user] for one in secure]),
        at(lambda user: [one.total for one in secure]),
    )


def leaked(view: View, users: Users, model: FedMF) -> list[Floats]:
    """Return what the gradients of two rounds say each user rated; 0 where they say nothing."""
    return [np.nan_to_num(from_two_rounds(*view(user), model.reg)) for user in users.tolist()]
