"""Trials of the attacks on ratings end to end, with and without secure sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.aggregate import Phase, PlainSum, SecAggSum
from fedmf.aggregate.aggregation import Progress, silent
from fedmf.aggregate.vectors import Vectors
from fedmf.attacks.leakage import from_one_round, from_sum, from_two_rounds, on_grid
from fedmf.attacks.observed import (
    PAPER,
    Users,
    View,
    at_mean,
    attacked,
    count_raters,
    train,
    views,
)
from fedmf.attacks.outcome import Outcome, all_of, gridded
from fedmf.data import Ratings
from fedmf.data.checks import check_ratings
from fedmf.models import FedMF
from fedmf.settings import Range, Seed, check
from fedmf.training import Schedule

Floats = NDArray[np.float64]


def chosen(ratings: Ratings, n_users: int | None, seed: int) -> Users:
    """Draw users to attack, ascending, among those with a rating.

    Raises SettingError if an argument is of another type or out of range.

    Parameters
    ----------
    ratings : ratings of all users
    n_users : int, number of users to draw; None for all
    seed : int, seed of the draw, ≥ 0
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
    progress: Progress = silent,
) -> Outcome:
    """Compute users' ratings from the gradients of the first round, or first two, of FedMF.

    Plain gradients are rounded to multiples of 2^−16, the default of fedmf's aggregations.

    Parameters
    ----------
    ratings : ratings of all users; all of them train
    users : numbers of the attacked users, in any order, such as `chosen` draws
    one_round : bool, True to use the gradients of the first round only
    model : model in training; by default the paper's, which leaves no item out
    seed : int, seed of the training and of the masks, ≥ 0
    progress : function of the name of the work, the finished steps and all steps

    Returns
    -------
    Outcome : shares of the attacked users' ratings

    Raises
    ------
    SettingError
        If an argument is of another type or out of range, the model has biases, or `users` is
        empty or has a user without ratings.
    ModelError
        If `users` has a number that is not among the ratings' users.
    DataError
        If ratings are not in whole or half steps.
    """
    some = attacked(ratings, users, seed)
    ratings, grid = gridded(ratings)
    model = at_mean(model, ratings)

    def found(view: View) -> Floats:
        seen = map(view, some.tolist())
        if one_round:
            parts = [from_one_round(first, model.reg, grid) for first, _ in seen]
        else:
            parts = [on_grid(from_two_rounds(*both, model.reg), grid) for both in seen]
        return np.concatenate(parts)

    seen = views(ratings, some, model, seed, progress)
    name = f"gradient leakage, {'one round' if one_round else 'two rounds'}"
    return Outcome.of(name, all_of(ratings, some), *map(found, seen))


def singletons(
    ratings: Ratings,
    min_raters: int,
    *,
    dropout: float = 0.0,
    model: FedMF = PAPER,
    seed: int = 0,
    progress: Progress = silent,
) -> Outcome:
    """Compute ratings from the exact sum over all users, at items with a single rater.

    Secure aggregation reveals exactly this sum, so that ``secure`` equals ``plain``. The remedy
    is to leave out items with few raters. Raises SettingError if an argument is of another type
    or out of range, and DataError if ratings are not in whole or half steps.

    Parameters
    ----------
    ratings : ratings of all users; simulated ratings have few items with a single rater, if any
    min_raters : int, least number of raters of a trained item, counted before dropouts, ≥ 1
    dropout : float, probability in [0, 1) that a user drops out after the count of raters
        The server knows the items with one rater left in the sum, and attacks them.
    model, progress : see `leakage`; `min_raters` replaces the model's own value
    seed : int, seed of the training, of the masks and of the dropouts, ≥ 0

    Returns
    -------
    Outcome : shares of the ratings of items with a single rater left
    """
    check_ratings(ratings=ratings)
    Schedule(seed=seed, dropout=dropout)  # validates both
    ratings, grid = gridded(ratings)
    gone = np.random.default_rng((seed, 3)).random(ratings.n_users) < dropout
    dropouts: dict[int, Phase] = dict.fromkeys(np.flatnonzero(gone).tolist(), "masked_input")
    left = ratings.take(~gone[ratings.users])
    raters = count_raters(left)
    lone = left.take(raters[left.items] == 1)
    model = at_mean(replace(model, min_raters=min_raters), ratings)
    seen = train(model, ratings, 1, seed, progress)[0]
    vectors = Vectors(seen.gradients, seen.gradients.__getitem__, seen.q.shape)
    found = []
    for aggregation in (PlainSum(), SecAggSum(progress=progress)):
        total = aggregation.sum(vectors, dropouts=dropouts).sum.reshape(seen.q.shape)
        found.append(from_sum(seen.q, total, raters, model.reg, grid, model.centre)[1])
    plain, secure = found
    name = "items with one rater left" if dropout else "items with one rater"
    name += f", of at least {min_raters}" if min_raters > 1 else ""
    return Outcome.of(name, lone.values[np.argsort(lone.items)], plain, secure, secure)
