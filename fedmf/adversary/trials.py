"""The attacks end to end: a training is watched, and attacked with and without secure sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedmf.adversary.inversion import Unmasked, from_ridge
from fedmf.adversary.leakage import Seen, from_one_round, from_two_rounds, on_grid
from fedmf.adversary.masked_ratings import ranking, recovery
from fedmf.adversary.observed import (
    Progress,
    count_raters,
    in_the_clear,
    train,
    under_masks,
)
from fedmf.adversary.outcome import Outcome, all_of, chance, grid_of, share_right
from fedmf.adversary.retraining import OTHER_SEED, from_retraining
from fedmf.adversary.singletons import from_sum
from fedmf.aggregate import Phase, PlainSum, SecAggSum
from fedmf.data import Ratings
from fedmf.errors import SettingError
from fedmf.features import Features, item_features
from fedmf.masks import FMMask, NNMask, RidgeMask
from fedmf.mf import FedMF
from fedmf.mmf import masked
from fedmf.presets import PRESETS
from fedmf.sums.vectors import Vectors

__all__ = ["chosen", "inversion", "leakage", "on_masked_ratings", "singletons"]

Floats = NDArray[np.float64]
Users = NDArray[np.int64]
View = Callable[[int], tuple[Seen, Seen]]

PAPER = PRESETS["paper"].model  # leaves no item out, as the paper does not

SHUFFLES = 20
NAMES = {RidgeMask: "one-order", FMMask: "two-order", NNMask: "high-order"}


def _quiet(what: str, done: int, of: int) -> None:
    pass


def chosen(ratings: Ratings, n_users: int | None, seed: int) -> Users:
    """Draw the users who are attacked, ascending, among those with a rating; None for all.

    Raises
    ------
    SettingError
        If there are not so many.
    """
    there = np.flatnonzero(np.diff(ratings.indptr))
    if n_users is None:
        return there
    if not 1 <= n_users <= there.size:
        raise SettingError(
            f"{n_users} users to attack: ask for at least 1 and at most the {there.size} there"
        )
    return np.sort(np.random.default_rng(seed).permutation(there)[:n_users])


def leakage(
    ratings: Ratings,
    users: Users,
    *,
    one_round: bool = False,
    model: FedMF = PAPER,
    seed: int = 0,
    progress: Progress = _quiet,
) -> Outcome:
    """Attack the gradients of the first two rounds of FedMF, or those of the first alone.

    What is plain is in the 2^−16 of the fixed point that all sums of fedmf share.
    """
    grid = grid_of(ratings)

    def found(view: View) -> Floats:
        parts = []
        for user in users.tolist():
            first, second = view(user)
            if one_round:
                parts.append(from_one_round(first, model.reg, grid))
            else:
                parts.append(on_grid(from_two_rounds(first, second, model.reg), grid))
        return np.concatenate(parts)

    truth = all_of(ratings, users)
    plain, secure, summed = _views(ratings, users, model, seed, progress)
    return Outcome(
        attack="gradient leakage, one round" if one_round else "gradient leakage, two rounds",
        plain=share_right(found(plain), truth),
        secure=share_right(found(secure), truth),
        summed=share_right(found(summed), truth),
        chance=chance(truth),
        ratings=truth.size,
    )


def inversion(
    ratings: Ratings,
    users: Users,
    mask: RidgeMask | FMMask | NNMask,
    *,
    model: FedMF = PAPER,
    seed: int = 0,
    progress: Progress = _quiet,
) -> Outcome:
    """Attack FedMMF: from its plain gradients, or from the masked ratings themselves.

    One-order masks go all the way: the gradients of two rounds give the masked ratings up to
    their sign, and these the ratings. The others start from the masked ratings, which the
    paper would also have collected centrally (section 4.2.2). Known of each user is the mean
    rating.
    """
    features = item_features(ratings)
    hidden = masked(ratings, mask.fit(features, ratings, seed))
    plain, secure, summed = _views(hidden, users, model, seed, progress)
    truth = all_of(ratings, users)

    def leaked(view: View) -> list[Floats]:
        return [np.nan_to_num(from_two_rounds(*view(u), model.reg)) for u in users.tolist()]

    def found(rho: list[Floats]) -> Floats:
        if isinstance(mask, RidgeMask):
            return _from_ridge(ratings, users, rho, features)
        return _from_retraining(
            ratings, users, rho, mask, features, seed + OTHER_SEED, progress
        )

    collected = [hidden.of_user(user)[1] for user in users.tolist()]
    start = leaked(plain) if isinstance(mask, RidgeMask) else collected
    return Outcome(
        attack=f"mask inversion, {NAMES[type(mask)]}",
        plain=share_right(found(start), truth),
        secure=share_right(found(leaked(secure)), truth),
        summed=share_right(found(leaked(summed)), truth),
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
    progress: Progress = _quiet,
) -> Outcome:
    """Attack the sum over all users, at the items that one of them rated.

    Secure aggregation is no remedy, for it gives exactly this sum; that items with few raters
    are left out is one. So ``secure`` is found from the secure sum as a whole, and equals
    ``plain``, which is found from the sum in the clear.

    With this `dropout`, each user vanishes after the count and before the sum. Attacked are the
    items with one rater left, and the server is told which they are.
    """
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
        items, found = from_sum(seen.q, total, raters, model.reg, grid_of(ratings))
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


def on_masked_ratings(
    ratings: Ratings,
    users: Users,
    *,
    ranked: bool,
    amount: float,
    mask: RidgeMask | FMMask | NNMask | None = None,
    model: FedMF = PAPER,
    seed: int = 0,
    progress: Progress = _quiet,
) -> Outcome:
    """Try the paper's own two attacks on masked ratings, or on what there is in their place.

    Parameters
    ----------
    ranked
        Whether to rank (section 4.2.2) or to recover (4.2.1).
    amount
        The part h of the items, or the tolerance.
    mask
        Two-order by default, as in the paper.

    Returns
    -------
    Outcome
        Means over the users. Chance is the same attack on the numbers that the secure run
        gives, shuffled within each user: how they are spread counts in both, and only which
        belongs to which rating is lost.
    """
    two_order = FMMask() if mask is None else mask
    hidden = masked(ratings, two_order.fit(item_features(ratings), ratings, seed))
    _, secure, summed = _views(hidden, users, model, seed, progress)
    some = ratings.take(np.isin(ratings.users, users))

    def rate(values: Floats) -> float:
        found = some.with_values(values, (-np.inf, np.inf))
        if ranked:
            return float(ranking(some, found, amount, seed).mean())
        return float(recovery(some, found, amount).mean())

    def leaked(view: View) -> Floats:
        parts = [np.nan_to_num(from_two_rounds(*view(u), model.reg)) for u in users.tolist()]
        return np.concatenate(parts)

    under = leaked(secure)
    rng = np.random.default_rng((seed, 2))
    shuffled = [
        rate(under[np.lexsort((rng.random(under.size), some.users))]) for _ in range(SHUFFLES)
    ]
    return Outcome(
        attack="ranking attack" if ranked else "recovery attack",
        plain=rate(np.concatenate([hidden.of_user(user)[1] for user in users.tolist()])),
        secure=rate(under),
        summed=rate(leaked(summed)),
        chance=float(np.mean(shuffled)),
        ratings=some.n_ratings,
    )


def _views(
    ratings: Ratings, users: Users, model: FedMF, seed: int, progress: Progress
) -> tuple[View, View, View]:
    """Train for two rounds; return what the server then has of a user, by three ways to sum."""
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


def _from_ridge(
    ratings: Ratings, users: Users, rho: list[Floats], features: Features
) -> Floats:
    """Undo the masks of all users: each for itself, then all with the penalty most agree on."""
    grid = grid_of(ratings)

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
    seed: int,
    progress: Progress,
) -> Floats:
    some = ratings.take(np.isin(ratings.users, users))
    rated = np.maximum(np.diff(some.indptr), 1)
    means = np.bincount(some.users, some.values, some.n_users) / rated
    hidden = some.with_values(np.concatenate(rho), (-np.inf, np.inf))
    return from_retraining(
        hidden, mask, features, means, grid_of(ratings), seed=seed, progress=progress
    )
