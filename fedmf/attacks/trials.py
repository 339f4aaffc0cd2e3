"""Trials of the attacks on ratings and on masked ratings, with and without secure sums."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from fedmf.aggregate import Phase, PlainSum, SecAggSum
from fedmf.aggregate.aggregation import Progress, silent
from fedmf.aggregate.vectors import Vectors
from fedmf.attacks import observed
from fedmf.attacks.leakage import (
    Floats,
    Unmasked,
    from_one_round,
    from_ridge,
    from_sum,
    from_two_rounds,
    on_grid,
)
from fedmf.attacks.masked_ratings import ranking, recovery
from fedmf.attacks.observed import PAPER, Outcome, Users, View
from fedmf.data import Features, Ratings
from fedmf.data.checks import check_ratings
from fedmf.data.features import known_features
from fedmf.errors import SettingError
from fedmf.masks import FMMask, NNMask, RidgeMask
from fedmf.masks.mmf import masked
from fedmf.models import FedMF
from fedmf.settings import Range, Seed, check
from fedmf.training import Schedule


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
    some = observed.attacked(ratings, users, seed)
    ratings, grid = observed.gridded(ratings)
    model = observed.at_mean(model, ratings)

    def found(view: View) -> Floats:
        seen = map(view, some.tolist())
        if one_round:
            parts = [from_one_round(first, model.reg, grid) for first, _ in seen]
        else:
            parts = [on_grid(from_two_rounds(*both, model.reg), grid) for both in seen]
        return np.concatenate(parts)

    seen = observed.views(ratings, some, model, seed, progress)
    name = f"gradient leakage, {'one round' if one_round else 'two rounds'}"
    return Outcome.of(name, observed.all_of(ratings, some), *map(found, seen))


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
    ratings, grid = observed.gridded(ratings)
    gone = np.random.default_rng((seed, 3)).random(ratings.n_users) < dropout
    dropouts: dict[int, Phase] = dict.fromkeys(np.flatnonzero(gone).tolist(), "masked_input")
    left = ratings.take(~gone[ratings.users])
    raters = observed.count_raters(left)
    lone = left.take(raters[left.items] == 1)
    model = observed.at_mean(replace(model, min_raters=min_raters), ratings)
    seen = observed.train(model, ratings, 1, seed, progress)[0]
    vectors = Vectors(seen.gradients, seen.gradients.__getitem__, seen.q.shape)
    found = []
    for aggregation in (PlainSum(), SecAggSum(progress=progress)):
        total = aggregation.sum(vectors, dropouts=dropouts).sum.reshape(seen.q.shape)
        found.append(from_sum(seen.q, total, raters, model.reg, grid, model.centre)[1])
    plain, secure = found
    name = "items with one rater left" if dropout else "items with one rater"
    name += f", of at least {min_raters}" if min_raters > 1 else ""
    return Outcome.of(name, lone.values[np.argsort(lone.items)], plain, secure, secure)


SHUFFLES = 20


def inversion(
    ratings: Ratings,
    users: ArrayLike,
    mask: RidgeMask,
    *,
    features: Features | None = None,
    model: FedMF = PAPER,
    seed: int = 0,
    progress: Progress = silent,
) -> Outcome:
    """Undo the masks of FedMMF, as an attacker who knows the mean rating of each user.

    The attack starts from the gradients of two rounds, which give the masked ratings up to the
    sign. Masks of higher order have no closed form, and are undone by retraining:
    benches/papers/retraining.py of a checkout.

    Parameters
    ----------
    ratings, users, model, progress : see `leakage`
    mask : mask of every party
    features : a row for each item, known to masks and attacker; by default `known_features`
    seed : int, seed of the training and of all masks, ≥ 0

    Returns
    -------
    Outcome : shares of the attacked users' ratings

    Raises
    ------
    SettingError, ModelError, DataError
        See `leakage`, `Mask.fit` and `known_features`. SettingError also if the mask is not a
        RidgeMask.
    """
    some = observed.attacked(ratings, users, seed)
    if not isinstance(mask, RidgeMask):
        raise SettingError(f"mask = {mask!r} must be a RidgeMask")
    known = known_features(ratings) if features is None else features
    ratings, grid = observed.gridded(ratings)
    hidden = masked(ratings, mask.fit(known, ratings, seed))
    model = observed.at_mean(model, hidden)

    def found(view: View) -> Floats:
        rho = observed.leaked(view, some, model)
        return _from_ridge(ratings, some, rho, known, grid)

    seen = observed.views(hidden, some, model, seed, progress)
    truth = observed.all_of(ratings, some)
    return Outcome.of("mask inversion, one-order", truth, *map(found, seen))


def on_masked_ratings(
    ratings: Ratings,
    users: ArrayLike,
    *,
    ranked: bool,
    amount: float,
    mask: RidgeMask | FMMask | NNMask | None = None,
    features: Features | None = None,
    model: FedMF = PAPER,
    seed: int = 0,
    progress: Progress = silent,
) -> Outcome:
    """Run one of the paper's own two attacks, `recovery` or `ranking`, on masked ratings.

    Parameters
    ----------
    ratings, users, features, model, progress : see `inversion`
    ranked : bool, True to run `ranking`, False to run `recovery`
    amount : float, parameter ``top`` of `ranking`, or ``tolerance`` of `recovery`
    mask : mask of every party; two-order by default, as in the paper
    seed : int, seed of the training, of all masks and of the order of ties, ≥ 0

    Returns
    -------
    Outcome : mean rates of the attacked users
        ``chance`` is the rate of the same attack on the secure run's numbers, shuffled within
        each user. The shuffle keeps the distribution of the numbers.

    Raises
    ------
    SettingError, ModelError, DataError
        See `inversion`. SettingError also if `amount` is out of range.
    """
    some = observed.attacked(ratings, users, seed)
    two_order = FMMask() if mask is None else mask
    known = known_features(ratings) if features is None else features
    hidden = masked(ratings, two_order.fit(known, ratings, seed))
    model = observed.at_mean(model, hidden)
    truth = ratings.take(np.isin(ratings.users, some))

    def rate(values: Floats) -> float:
        found = truth.with_values(values, (-np.inf, np.inf))
        attack = partial(ranking, seed=seed) if ranked else recovery
        return float(attack(truth, found, amount).mean())

    plain = rate(observed.all_of(hidden, some))
    _, secure, summed = observed.views(hidden, some, model, seed, progress)
    under = np.concatenate(observed.leaked(secure, some, model))
    rng = np.random.default_rng((seed, 2))
    shuffled = [
        rate(under[np.lexsort((rng.random(under.size), truth.users))]) for _ in range(SHUFFLES)
    ]
    return Outcome(
        attack="ranking attack" if ranked else "recovery attack",
        plain=plain,
        secure=rate(under),
        summed=rate(np.concatenate(observed.leaked(summed, some, model))),
        chance=float(np.mean(shuffled)),
        ratings=truth.n_ratings,
    )


def _from_ridge(
    ratings: Ratings, users: Users, rho: list[Floats], features: Features, grid: Floats
) -> Floats:
    """Undo the masks of all users: each mask alone, then all masks with the median penalty."""

    def both_signs(penalty: float | None) -> list[Unmasked]:
        found = []
        for user, one in zip(users.tolist(), rho, strict=True):
            items, values = ratings.of_user(user)
            x, mean = features.matrix[items], float(values.mean())
            signs = [from_ridge(sign * one, x, mean, grid, penalty) for sign in (1, -1)]
            found.append(min(signs, key=lambda it: it.misfit))
        return found

    penalties = np.array([one.penalty for one in both_signs(None)])
    known = penalties[np.isfinite(penalties)]
    agreed = float(np.median(known)) if known.size else None
    return np.concatenate([one.ratings for one in both_signs(agreed)])
