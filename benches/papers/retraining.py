"""Inversion of masks without a closed form: guess ratings, fit the mask to them, compare.

The right ratings minus the mask fitted to them are the masked ratings ρ. A guess is ρ + t D,
rounded to the grid, for an estimate D of the mask and a few amplitudes t. The best guess gives
the next D. For a factorisation machine the first D is the linear part (see
`fedmf.attacks.from_ridge`), as l2 keeps the interactions near zero. For a neural network the
first D is a network fitted to ρ with a weaker penalty, as the full penalty has left that part
in ρ.

The adversary needs the masked ratings, the items' features, the public hyper-parameters of the
mask and each user's mean rating. The seeds of the parties' starting parameters stay unknown.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.aggregate.aggregation import Progress, silent
from fedmf.attacks import Outcome, observed
from fedmf.attacks.leakage import Floats, on_grid
from fedmf.data import Features, Ratings
from fedmf.data.features import known_features
from fedmf.masks import FMMask, NNMask
from fedmf.masks.mmf import masked
from fedmf.models import FedMF

AMPLITUDES = (0.0, 0.3, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0)
WEAKER = 2.0  # divides the penalty for the first estimate
EXPLAINED = 0.02  # rms of the residuals of a right guess, in ratings
OTHER_SEED = 10**6  # added to the seed of a trial, so that no start is a party's own
BEYOND = 100.0  # larger than any masked rating; the noise of a masked input can be larger


def from_retraining(
    hidden: Ratings,
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
    hidden : masked ratings ρ of all users
    mask : hyper-parameters of the mask
    features : a row for each item
    means : float64, shape (n_users,), mean of each user's ratings; any number without ratings
    grid : float64, ascending and evenly spaced, every possible rating
    passes : int, number of estimates D of the masks, ≥ 1
    seed : int, seed of the adversary's starting parameters, different from the parties' seed
    progress : see `fedmf.attacks.leakage`

    Returns
    -------
    ratings : float64, shape (n_ratings,), on the grid
    """
    users, rho = hidden.users, np.clip(hidden.values, -BEYOND, BEYOND)
    rated = np.maximum(np.diff(hidden.indptr), 1)

    def mean(values: Floats) -> Floats:
        return np.asarray(np.bincount(users, values, hidden.n_users) / rated)

    def centred(values: Floats) -> Floats:
        return np.asarray(values - mean(values)[users])

    def fitted(values: Floats, which: NDArray[np.bool_], like: FMMask | NNMask) -> Floats:
        """Fit masks to the guesses of some users; predictions of other users are unused."""
        guessed = hidden.with_values(values, (-np.inf, np.inf)).take(which[users])
        return like.fit(features, guessed, seed).predict(users, hidden.items)

    left = np.full(hidden.n_users, np.inf)
    best = on_grid(centred(rho) + means[users], grid)
    if isinstance(mask, FMMask):  # (2 / n) Xᵀρ = 2 l2 w, where the loss is smallest
        x = features.matrix[hidden.items]
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


def inversion(
    ratings: Ratings,
    users: ArrayLike,
    mask: FMMask | NNMask,
    *,
    features: Features | None = None,
    model: FedMF = observed.PAPER,
    seed: int = 0,
    progress: Progress = silent,
) -> Outcome:
    """Undo the masks of FedMMF, as an attacker who knows the mean rating of each user.

    The attack in the clear starts from the masked ratings themselves (section 4.2.2). For the
    parameters and errors see `fedmf.attacks.inversion`.
    """
    some = observed.attacked(ratings, users, seed)
    known = known_features(ratings) if features is None else features
    ratings, grid = observed.gridded(ratings)
    hidden = masked(ratings, mask.fit(known, ratings, seed))
    model = observed.at_mean(model, hidden)
    _, secure, summed = observed.views(hidden, some, model, seed, progress)
    truth = ratings.take(np.isin(ratings.users, some))
    rated = np.maximum(np.diff(truth.indptr), 1)
    means = np.bincount(truth.users, truth.values, truth.n_users) / rated

    def found(rho: list[Floats]) -> Floats:
        residuals = truth.with_values(np.concatenate(rho), (-np.inf, np.inf))
        return from_retraining(
            residuals, mask, known, means, grid, seed=seed + OTHER_SEED, progress=progress
        )

    collected = [hidden.of_user(user)[1] for user in some.tolist()]
    rho = collected, *(observed.leaked(view, some, model) for view in (secure, summed))
    name = f"mask inversion, {'two' if isinstance(mask, FMMask) else 'high'}-order"
    return Outcome.of(name, truth.values, *map(found, rho))
