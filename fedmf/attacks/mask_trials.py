"""The attacks on masked ratings end to end: FedMMF, with and without secure sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.attacks.inversion import Unmasked, from_ridge
from fedmf.attacks.masked_ratings import ranking, recovery
from fedmf.attacks.observed import Progress
from fedmf.attacks.outcome import Outcome, all_of, chance, grid_of, share_right
from fedmf.attacks.retraining import OTHER_SEED, from_retraining
from fedmf.attacks.views import PAPER, Users, attacked, leaked, quiet, views
from fedmf.data import Features, Ratings
from fedmf.data.features import known_features
from fedmf.errors import SettingError
from fedmf.masks import FMMask, NNMask, RidgeMask
from fedmf.masks.mmf import masked
from fedmf.models import FedMF

__all__ = ["inversion", "on_masked_ratings"]

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
    progress: Progress = quiet,
) -> Outcome:
    """Attack FedMMF: from its plain gradients, or from the masked ratings themselves.

    One-order masks go all the way: the gradients of two rounds give the masked ratings up to
    their sign, and these the ratings. The others start from the masked ratings, which the
    paper would also have collected centrally (section 4.2.2). Known of each user is the mean
    rating.

    Parameters
    ----------
    ratings, users, model, progress
        See `leakage`.
    mask
        Mask of every party.
    features
        A row for each item, what the masks and the attacker know of it; by default what the
        data set comes with (`known_features`: genres and year, of Last.fm tags).
    seed
        Seed of the training and of all masks, at least 0.

    Returns
    -------
    Outcome
        Shares of the attacked users' ratings.

    Raises
    ------
    SettingError, ModelError, DataError
        See `leakage`, `Mask.fit` and `known_features`; also if the mask is of another kind.
    """
    some = attacked(ratings, users, seed)
    grid = grid_of(ratings)
    if type(mask) not in NAMES:
        raise SettingError(f"mask = {mask!r} must be a RidgeMask, an FMMask or an NNMask")
    known = known_features(ratings) if features is None else features
    hidden = masked(ratings, mask.fit(known, ratings, seed))
    plain, secure, summed = views(hidden, some, model, seed, progress)
    truth = all_of(ratings, some)

    def found(rho: list[Floats]) -> Floats:
        if isinstance(mask, RidgeMask):
            return _from_ridge(ratings, some, rho, known, grid)
        return _from_retraining(
            ratings, some, rho, mask, known, grid, seed + OTHER_SEED, progress
        )

    collected = [hidden.of_user(user)[1] for user in some.tolist()]
    start = leaked(plain, some, model) if isinstance(mask, RidgeMask) else collected
    return Outcome(
        attack=f"mask inversion, {NAMES[type(mask)]}",
        plain=share_right(found(start), truth),
        secure=share_right(found(leaked(secure, some, model)), truth),
        summed=share_right(found(leaked(summed, some, model)), truth),
        chance=chance(truth),
        ratings=truth.size,
    )


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
    progress: Progress = quiet,
) -> Outcome:
    """Try the paper's own two attacks on masked ratings, or on what there is in their place.

    Parameters
    ----------
    ratings, users, features, model, progress
        See `inversion`.
    ranked
        Whether to rank (section 4.2.2) or to recover (4.2.1).
    amount
        The part h of the items, or the tolerance.
    mask
        Two-order by default, as in the paper.
    seed
        Seed of the training, of all masks and of ties, at least 0.

    Returns
    -------
    Outcome
        Means over the users. Chance is the same attack on the numbers that the secure run
        gives, shuffled within each user: how they are spread counts in both, and only which
        belongs to which rating is lost.

    Raises
    ------
    SettingError, ModelError, DataError
        See `inversion`; also if `amount` is out of range.
    """
    some = attacked(ratings, users, seed)
    two_order = FMMask() if mask is None else mask
    known = known_features(ratings) if features is None else features
    hidden = masked(ratings, two_order.fit(known, ratings, seed))
    truth = ratings.take(np.isin(ratings.users, some))

    def rate(values: Floats) -> float:
        found = truth.with_values(values, (-np.inf, np.inf))
        if ranked:
            return float(ranking(truth, found, amount, seed).mean())
        return float(recovery(truth, found, amount).mean())

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
    """Undo the masks of all users: each for itself, then all with the penalty most agree on."""

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


def _from_retraining(
    ratings: Ratings,
    users: Users,
    rho: list[Floats],
    mask: FMMask | NNMask,
    features: Features,
    grid: Floats,
    seed: int,
    progress: Progress,
) -> Floats:
    some = ratings.take(np.isin(ratings.users, users))
    rated = np.maximum(np.diff(some.indptr), 1)
    means = np.bincount(some.users, some.values, some.n_users) / rated
    hidden = some.with_values(np.concatenate(rho), (-np.inf, np.inf))
    return from_retraining(hidden, mask, features, means, grid, seed=seed, progress=progress)
