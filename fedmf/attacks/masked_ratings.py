"""Attacks on masked ratings: the two of the FedMMF paper, and the inversion of masks.

The paper's attacks (sections 4.2.1 and 4.2.2) only scale or rank masked ratings. So a low
success rate is no sign of safety: `from_ridge` and `from_retraining` undo the masks, starting
from the same numbers.

`from_retraining` inverts masks without a closed form: guess ratings, fit the mask to them,
compare.

The right ratings minus the mask fitted to them are the masked ratings ρ. A guess is ρ + t D,
rounded to the grid, for an estimate D of the mask and a few amplitudes t. The best guess gives
the next D. For a factorisation machine the first D is the linear part (see `from_ridge`), as l2
keeps the interactions near zero. For a neural network the first D is a network fitted to ρ with
a weaker penalty, as the full penalty has left that part in ρ.

The adversary needs the masked ratings, the items' features, the public hyper-parameters of the
mask and each user's mean rating. The seeds of the parties' starting parameters stay unknown.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate.aggregation import Progress, silent
from fedmf.attacks.leakage import Floats, on_grid
from fedmf.data import Features, Ratings
from fedmf.data.checks import check_ratings
from fedmf.masks import FMMask, NNMask
from fedmf.settings import Positive, UpToOne, check


def recovery(ratings: Ratings, masked: Ratings, tolerance: float) -> Floats:
    """Return each user's recovery rate α (section 4.2.1).

    The adversary knows a user's lowest and highest rating and stretches the masked ratings to
    that range. A rating is recovered if the stretched value is less than `tolerance` off.
    Raises SettingError if an argument is of another type or out of range.

    Parameters
    ----------
    ratings, masked : the true ratings, and their residuals under the masks
    tolerance : float, error level g of the paper, > 0, in the unit of the ratings

    Returns
    -------
    rates : float64, shape (users with a rating,), in [0, 1]
    """
    check_ratings(ratings=ratings, masked=masked)
    check(Positive, tolerance=tolerance)
    rates = []
    for truth, hidden in _users(ratings, masked):
        width = np.ptp(hidden)
        place = (hidden - hidden.min()) / width if width else np.zeros_like(hidden)
        found = truth.min() + place * np.ptp(truth)
        rates.append((np.abs(found - truth) < tolerance).mean())
    return np.array(rates)


def ranking(ratings: Ratings, masked: Ratings, top: float, seed: int = 0) -> Floats:
    """Return each user's hit ratio β (section 4.2.2).

    For each user, the ⌈top · n⌉ items with the highest masked ratings are compared with the
    same number of items with the highest ratings. The share of common items is β. Ties, which
    the paper leaves open, are broken at random. Raises SettingError if an argument is of
    another type or out of range.

    Parameters
    ----------
    ratings, masked : see `recovery`
    top : float, h, the share of each user's n rated items to compare, 0 < top ≤ 1
    seed : int, seed of the order of ties, ≥ 0

    Returns
    -------
    ratios : float64, shape (users with a rating,), in [0, 1]
    """
    check_ratings(ratings=ratings, masked=masked)
    check(UpToOne, top=top)
    rng = np.random.default_rng(seed)
    ratios = []
    for truth, hidden in _users(ratings, masked):
        wanted = math.ceil(round(top * truth.size, 9))  # .3 · 10 is a little more than 3
        best = [np.lexsort((rng.random(one.size), -one))[:wanted] for one in (truth, hidden)]
        ratios.append(np.isin(best[1], best[0]).mean())
    return np.array(ratios)


def _users(ratings: Ratings, masked: Ratings) -> list[tuple[Floats, Floats]]:
    return [
        (ratings.of_user(user)[1], masked.of_user(user)[1])
        for user in np.flatnonzero(np.diff(ratings.indptr)).tolist()
    ]


AMPLITUDES = (0.0, 0.3, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0)
WEAKER = 2.0  # divides the penalty for the first estimate
EXPLAINED = 0.02  # rms of the residuals of a right guess, in ratings
OTHER_SEED = 10**6  # added to the seed of a trial, so that no start is a party's own
BEYOND = 100.0  # larger than any masked rating; the noise of a masked input can be larger


def from_retraining(
    masked: Ratings,
    mask: FMMask | NNMask,
    features: Features,
    means: Floats,
    grid: Floats,
    *,
    passes: int = 3,
    seed: int = OTHER_SEED,
    progress: Progress = silent,
) -> Floats:
    """Return the ratings behind the masked ratings of many users.

    Parameters
    ----------
    masked : masked ratings ρ of all users
    mask : hyper-parameters of the mask
    features : a row for each item
    means : float64, shape (n_users,), mean of each user's ratings; any number without ratings
    grid : float64, ascending and evenly spaced, every possible rating
    passes : int, number of estimates D of the masks, ≥ 1
    seed : int, seed of the adversary's starting parameters, different from the parties' seed
    progress : see `leakage`

    Returns
    -------
    ratings : float64, shape (n_ratings,), on the grid
    """
    users, rho = masked.users, np.clip(masked.values, -BEYOND, BEYOND)
    rated = np.maximum(np.diff(masked.indptr), 1)

    def mean(values: Floats) -> Floats:
        return np.asarray(np.bincount(users, values, masked.n_users) / rated)

    def centred(values: Floats) -> Floats:
        return np.asarray(values - mean(values)[users])

    def fitted(values: Floats, which: NDArray[np.bool_], like: FMMask | NNMask) -> Floats:
        """Fit masks to the guesses of some users; predictions of other users are unused."""
        guessed = masked.with_values(values, (-np.inf, np.inf)).take(which[users])
        return like.fit(features, guessed, seed).predict(users, masked.items)

    left = np.full(masked.n_users, np.inf)
    best = on_grid(centred(rho) + means[users], grid)
    if isinstance(mask, FMMask):  # (2 / n) Xᵀρ = 2 l2 w, where the loss is smallest
        x = features.matrix[masked.items]
        w = np.zeros((rated.size, x.shape[1]))
        np.add.at(w, users, x * rho[:, None])
        w /= (mask.l2 * rated)[:, None]
        estimate = centred((x * w[users]).sum(axis=1))
    else:
        weaker = replace(mask, l2=mask.l2 / WEAKER)
        everyone = np.ones(rated.size, dtype=np.bool_)
        estimate = centred(fitted(centred(rho), everyone, weaker))
    found = np.zeros_like(rho)
    for number in range(passes):
        open_ = left > EXPLAINED
        for done, t in enumerate(AMPLITUDES, start=1):
            guess = on_grid(centred(rho + t * estimate) + means[users], grid)
            predicted = fitted(guess, open_, mask)
            error = np.sqrt(mean((rho - guess + predicted) ** 2))
            better = open_ & (error < left)
            left[better] = error[better]
            best = np.where(better[users], guess, best)
            found = np.where(better[users], predicted, found)
            steps = len(AMPLITUDES)
            progress("fitting masks to guesses", number * steps + done, passes * steps)
        estimate = centred(found)
    return best
