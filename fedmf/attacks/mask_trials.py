"""Trials of the attacks on masked ratings end to end, with and without secure sums."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.aggregate.aggregation import Progress, silent
from fedmf.attacks.inversion import Unmasked, from_ridge
from fedmf.attacks.masked_ratings import ranking, recovery
from fedmf.attacks.observed import PAPER, Users, at_mean, attacked, leaked, views
from fedmf.attacks.outcome import Outcome, all_of, gridded
from fedmf.attacks.retraining import OTHER_SEED, from_retraining
from fedmf.data import Features, Ratings
from fedmf.data.features import known_features
from fedmf.errors import SettingError
from fedmf.masks import FMMask, NNMask, RidgeMask
from fedmf.masks.mmf import masked
from fedmf.models import FedMF

Floats = NDArray[np.float64]

SHUFFLES = 20
NAMES = {RidgeMask: "one-order", FMMask: "two-order", NNMask: "high-order"}


def inversion(
    ratings: Ratings,
    users: ArrayLike,
    mask: RidgeMask | FMMask | NNMask,
    *,
    features: Features | None = None,
    model: FedMF = PAPER,
    seed: int = 0,
    progress: Progress = silent,
) -> Outcome:
    """Undo the masks of FedMMF, as an attacker who knows the mean rating of each user.

    Against one-order masks the attack starts from the gradients of two rounds. These gradients
    give the masked ratings up to the sign. Against other masks the attack in the clear starts
    from the masked ratings themselves (section 4.2.2).

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
        RidgeMask, an FMMask or an NNMask.
    """
    some = attacked(ratings, users, seed)
    if type(mask) not in NAMES:
        raise SettingError(f"mask = {mask!r} must be a RidgeMask, an FMMask or an NNMask")
    known = known_features(ratings) if features is None else features
    ratings, grid = gridded(ratings)
    hidden = masked(ratings, mask.fit(known, ratings, seed))
    model = at_mean(model, hidden)
    plain, secure, summed = views(hidden, some, model, seed, progress)
    truth = ratings.take(np.isin(ratings.users, some))
    rated = np.maximum(np.diff(truth.indptr), 1)
    means = np.bincount(truth.users, truth.values, truth.n_users) / rated

    def found(rho: list[Floats]) -> Floats:
        if isinstance(mask, RidgeMask):
            return _from_ridge(ratings, some, rho, known, grid)
        residuals = truth.with_values(np.concatenate(rho), (-np.inf, np.inf))
        return from_retraining(
            residuals, mask, known, means, grid, seed=seed + OTHER_SEED, progress=progress
        )

    collected = [hidden.of_user(user)[1] for user in some.tolist()]
    start = leaked(plain, some, model) if isinstance(mask, RidgeMask) else collected
    rho = (start, leaked(secure, some, model), leaked(summed, some, model))
    name = f"mask inversion, {NAMES[type(mask)]}"
    return Outcome.of(name, truth.values, *map(found, rho))


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
    some = attacked(ratings, users, seed)
    two_order = FMMask() if mask is None else mask
    known = known_features(ratings) if features is None else features
    hidden = masked(ratings, two_order.fit(known, ratings, seed))
    model = at_mean(model, hidden)
    truth = ratings.take(np.isin(ratings.users, some))

    def rate(values: Floats) -> float:
        found = truth.with_values(values, (-np.inf, np.inf))
        attack = partial(ranking, seed=seed) if ranked else recovery
        return float(attack(truth, found, amount).mean())

    plain = rate(all_of(hidden, some))
    _, secure, summed = views(hidden, some, model, seed, progress)
    under = np.concatenate(leaked(secure, some, model))
    rng = np.random.default_rng((seed, 2))
    shuffled = [
        rate(under[np.lexsort((rng.random(under.size), truth.users))]) for _ in range(SHUFFLES)
    ]
    return Outcome(
        attack="ranking attack" if ranked else "recovery attack",
        plain=plain,
        secure=rate(under),
        summed=rate(np.concatenate(leaked(summed, some, model))),
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
