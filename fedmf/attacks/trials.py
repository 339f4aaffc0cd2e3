"""The attacks on ratings end to end: a training is watched, with and without secure sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.aggregate import Phase, PlainSum, SecAggSum
from fedmf.aggregate.vectors import Vectors
from fedmf.attacks.leakage import from_one_round, from_sum, from_two_rounds, on_grid
from fedmf.attacks.observed import Progress, count_raters, train
from fedmf.attacks.outcome import Outcome, all_of, chance, grid_of, share_right
from fedmf.attacks.views import PAPER, Users, View, attacked, quiet, views
from fedmf.data import Ratings
from fedmf.data.checks import check_ratings
from fedmf.models import FedMF
from fedmf.settings import Range, Seed, check
from fedmf.training import Schedule

__all__ = ["chosen", "leakage", "singletons"]

Floats = NDArray[np.float64]


def chosen(ratings: Ratings, n_users: int | None, seed: int) -> Users:
    """Draw the users who are attacked, ascending, among those with a rating.

    Parameters
    ----------
    ratings
        Of all users.
    n_users
        How many; None for all.
    seed
        Of the draw, at least 0.

    Raises
    ------
    SettingError
        If something else than `Ratings` is passed, or the numbers are not whole, or there are
        not so many users.
    """
    check_ratings(ratings=ratings)
    check(Seed, seed=seed)
    there = np.flatnonzero(np.diff(ratings.indptr))
    if n_users is None:
        return there
    Range(int, 1, there.size).check("n_users", n_users)
    return np.sort(np.random.default_rng(seed).permutation(there)[:n_users])


def leakage(
    ratings: Ratings,
    users: ArrayLike,
    *,
    one_round: bool = False,
    model: FedMF = PAPER,
    seed: int = 0,
    progress: Progress = quiet,
) -> Outcome:
    """Attack the gradients of the first two rounds of FedMF, or those of the first alone.

    What is plain is in the 2^−16 of the fixed point that all sums of fedmf share.

    Parameters
    ----------
    ratings
        Of all users: everybody trains.
    users
        Who is attacked: their numbers, each once, in any order; such as `chosen` draws.
    one_round
        Whether the gradients of the second round are left aside.
    model
        What is trained, by its gradients; by default the paper's, which leaves no item out.
    seed
        Of the training and of the masks, at least 0.
    progress
        Called with what is being done, and how many steps of how many are over.

    Returns
    -------
    Outcome
        Shares of the attacked users' ratings.

    Raises
    ------
    SettingError
        If something else than `Ratings` is passed, nobody is attacked or somebody without a
        rating, or the seed is no whole number of at least 0.
    ModelError
        If a user is not among those of the ratings.
    DataError
        If ratings are not in whole or half steps.
    """
    some = attacked(ratings, users, seed)
    grid = grid_of(ratings)

    def found(view: View) -> Floats:
        parts = []
        for user in some.tolist():
            first, second = view(user)
            if one_round:
                parts.append(from_one_round(first, model.reg, grid))
            else:
                parts.append(on_grid(from_two_rounds(first, second, model.reg), grid))
        return np.concatenate(parts)

    truth = all_of(ratings, some)
    plain, secure, summed = views(ratings, some, model, seed, progress)
    return Outcome(
        attack="gradient leakage, one round" if one_round else "gradient leakage, two rounds",
        plain=share_right(found(plain), truth),
        secure=share_right(found(secure), truth),
        summed=share_right(found(summed), truth),
        chance=chance(truth),
        ratings=truth.size,
    )


def singletons(
    ratings: Ratings,
    min_raters: int,
    *,
    dropout: float = 0.0,
    model: FedMF = PAPER,
    seed: int = 0,
    progress: Progress = quiet,
) -> Outcome:
    """Attack the sum over all users, at the items that one of them rated.

    Secure aggregation is no remedy, for it gives exactly this sum; that items with few raters
    are left out is one. So ``secure`` is found from the secure sum as a whole, and equals
    ``plain``, which is found from the sum in the clear.

    Parameters
    ----------
    ratings
        Of all users. Simulated ones are spread evenly and have next to no such items.
    min_raters
        Items with fewer, as they were counted, are left out; 1 for none.
    dropout
        The probability, below 1, with which each user vanishes after the count and before the
        sum. Attacked are the items with one rater left, and the server is told which they are.
    model, progress
        See `leakage`; the model is trained with `min_raters`.
    seed
        Seed of the training, of the masks and of the dropouts, at least 0.

    Returns
    -------
    Outcome
        Shares of the ratings that lone raters gave.

    Raises
    ------
    SettingError
        If something else than `Ratings` is passed, or a number is out of range.
    DataError
        If ratings are not in whole or half steps.
    """
    check_ratings(ratings=ratings)
    Schedule(seed=seed, dropout=dropout)  # refuses what is out of range
    grid = grid_of(ratings)
    gone = np.random.default_rng((seed, 3)).random(ratings.n_users) < dropout
    vanished: dict[int, Phase] = dict.fromkeys(np.flatnonzero(gone).tolist(), "masked_input")
    left = ratings.take(~gone[ratings.users])
    raters = count_raters(left)
    lone = raters[left.items] == 1
    truth = np.full(left.n_items, np.nan)
    truth[left.items[lone]] = left.values[lone]
    seen = train(replace(model, min_raters=min_raters), ratings, 1, seed, progress)[0]
    vectors = Vectors(seen.gradients, seen.gradients.__getitem__, seen.q.shape)
    shares = []
    for aggregation in (PlainSum(), SecAggSum(progress=progress)):
        total = aggregation.sum(vectors, dropouts=vanished).sum.reshape(seen.q.shape)
        items, found = from_sum(seen.q, total, raters, model.reg, grid)
        shares.append(share_right(found, truth[items]))
    given = left.values[lone]
    lonely = "items with one rater left" if dropout else "items with one rater"
    return Outcome(
        attack=f"{lonely}, of at least {min_raters}" if min_raters > 1 else lonely,
        plain=shares[0],
        secure=shares[1],
        summed=shares[1],
        chance=chance(given) if given.size else 0.0,
        ratings=given.size,
    )
