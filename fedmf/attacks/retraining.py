"""Ratings from masked ratings: guess them, fit the mask to the guess, and compare.

Masks without a closed form are fitted by a program that every party has, from ratings on a
grid. So a guess can be checked: the right ratings are those that, less the mask fitted to
them, leave the masked ratings ρ. A guess is ρ + t D on the grid, D being an estimate of the
mask and t one of a few amplitudes; the best guess gives the next D. The first comes from
stationarity. Of a factorisation machine it is the linear part, as of a ridge regression (see
`from_ridge`); l2 alone keeps most users' interactions at zero. Of a neural network it is one
fitted to ρ with a weaker penalty: what ρ holds of the features is what the penalty held back,
so that ρ points where the mask does.

The adversary needs the masked ratings, the items' features, the mask's hyper-parameters (they
are the program's, and the same for everybody) and the mean of each user's ratings. It does not
need the seeds of the parties' starting parameters: it fits from its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedmf.attacks.leakage import on_grid
from fedmf.data import Features, Ratings
from fedmf.masks import FMMask, NNMask

__all__ = ["OTHER_SEED", "from_retraining"]

Floats = NDArray[np.float64]

AMPLITUDES = (0.0, 0.3, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0)
WEAKER = 2.0  # by how much the penalty is, for the first estimate
EXPLAINED = 0.02  # rms of what a guess leaves unexplained, in ratings: it is right
OTHER_SEED = 10**6  # added to that of a trial, so that no start is a party's own
BEYOND = 100.0  # no masked rating is that far from zero; what no gradient gave can be


def from_retraining(
    masked: Ratings,
    mask: FMMask | NNMask,
    features: Features,
    means: Floats,
    grid: Floats,
    *,
    passes: int = 3,
    seed: int = OTHER_SEED,
    progress: Callable[[str, int, int], None] = lambda what, done, of: None,
) -> Floats:
    """Return the ratings behind the masked ratings of many users.

    Parameters
    ----------
    masked
        ρ in place of the ratings.
    mask
        Its hyper-parameters.
    features
        A row for each item.
    means
        float64, shape (n_users,): the mean of each user's ratings; of those without one,
        anything.
    grid
        float64, ascending and evenly spaced: every rating there is.
    passes
        How often the estimates of the masks are renewed.
    seed
        Of the adversary's own starting parameters; other than the parties', which it does not
        know.

    Returns
    -------
    ratings
        float64, shape (n_ratings,), on the grid.
    """
    users, rho = masked.users, np.clip(masked.values, -BEYOND, BEYOND)
    rated = np.maximum(np.diff(masked.indptr), 1)

    def mean(values: Floats) -> Floats:
        return np.asarray(np.bincount(users, values, masked.n_users) / rated)

    def centred(values: Floats) -> Floats:
        return np.asarray(values - mean(values)[users])

    def fitted(values: Floats, which: NDArray[np.bool_], like: FMMask | NNMask) -> Floats:
        """Fit masks to what some users may have rated; the others' predictions are void."""
        guessed = masked.with_values(values, (-np.inf, np.inf)).take(which[users])
        return like.fit(features, guessed, seed).predict(users, masked.items)

    left = np.full(masked.n_users, np.inf)
    best = on_grid(centred(rho) + means[users], grid)
    if isinstance(mask, FMMask):  # (2 / n) Xᵀρ = 2 l2 w, where the loss is smallest
        w = _sums(users, features.matrix[masked.items] * rho[:, None], rated.size)
        w /= (mask.l2 * rated)[:, None]
        estimate = centred((features.matrix[masked.items] * w[users]).sum(axis=1))
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
            progress(
                "fitting masks to guesses",
                number * len(AMPLITUDES) + done,
                passes * len(AMPLITUDES),
            )
        estimate = centred(found)
    return best


def _sums(users: NDArray[np.int32], rows: Floats, n_users: int) -> Floats:
    """Add up the rows of each user."""
    total = np.zeros((n_users, rows.shape[1]))
    np.add.at(total, users, rows)
    return total
