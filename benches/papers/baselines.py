"""Simple baselines beside the federated models: user means, biases, and SVD of Surprise.

A baseline with settings chooses them on a tenth of its own training ratings, and then trains on
all of them. So it needs no setting from another data set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from benches.papers.centralised import surprise
from benches.papers.table import Run
from fedmf.data import Ratings, Split
from fedmf.data.splits import random_split
from fedmf.training import rmse

Floats = NDArray[np.float64]
Positions = NDArray[np.integer]
Setting = TypeVar("Setting")
Baseline: TypeAlias = Callable[[Split, Run], Floats]
"""Function of a split that trains on one part and predicts the other, in its order."""

VALIDATION = 0.1
SWEEPS = 30  # of alternating biases; the slopes are then below 1e-4
SHRINKAGE: Sequence[tuple[float, float]] = tuple(
    product((1, 2, 3, 5, 10, 20), (1, 2, 3, 5, 10, 20))
)
SVD_SETTINGS: Sequence[Mapping[str, float]] = (
    {"n_factors": 50, "n_epochs": 20, "reg_all": 0.02},
    {"n_factors": 50, "n_epochs": 20, "reg_all": 0.06},
    {"n_factors": 50, "n_epochs": 40, "reg_all": 0.06},
    {"n_factors": 50, "n_epochs": 40, "reg_all": 0.1},
    {"n_factors": 50, "n_epochs": 80, "reg_all": 0.1},
)
SVDPP_SETTINGS: Sequence[Mapping[str, float]] = (
    {"n_factors": 20, "n_epochs": 20, "reg_all": 0.02},
    {"n_factors": 20, "n_epochs": 20, "reg_all": 0.06},
    {"n_factors": 20, "n_epochs": 40, "reg_all": 0.1},
)


@dataclass(frozen=True)
class Biases:
    """Prediction μ + b_u + b_i; users and items without a rating have a bias of zero.

    Parameters
    ----------
    mean : float, μ, the mean of the training ratings
    users, items : float64, shapes (n_users,) and (n_items,), b_u and b_i
    """

    mean: float
    users: Floats
    items: Floats

    @classmethod
    def fit(
        cls, train: Ratings, shrink_users: float, shrink_items: float, least: int = 1
    ) -> Biases:
        """Minimise Σ (r − μ − b_u − b_i)² + λ_u Σ b_u² + λ_i Σ b_i² by alternating solutions.

        Koren, "Factor in the neighbors", TKDD 4(1), 2010, section 2.1. Items with fewer than
        `least` raters have a bias of zero, as a sum over so few would tell their ratings.
        """
        mean = float(train.values.mean())
        b_u, b_i = np.zeros(train.n_users), np.zeros(train.n_items)
        rest, users, items = train.values - mean, train.users, train.items
        n_u = np.bincount(users, minlength=train.n_users) + shrink_users
        raters = np.bincount(items, minlength=train.n_items)
        n_i = np.where(raters >= least, raters + shrink_items, np.inf)
        for _ in range(SWEEPS):
            b_i = np.bincount(items, rest - b_u[users], train.n_items) / n_i
            b_u = np.bincount(users, rest - b_i[items], train.n_users) / n_u
        return cls(mean, b_u, b_i)

    def predict(self, users: Positions, items: Positions) -> Floats:
        """Return the prediction of each pair of a user and an item."""
        return np.asarray(self.mean + self.users[users] + self.items[items])


def user_means(split: Split, run: Run) -> Floats:
    """Predict each user's mean training rating, or the mean of all for a user without one."""
    train = split.train
    counts = np.bincount(train.users, minlength=train.n_users)
    sums = np.bincount(train.users, train.values, train.n_users)
    means = np.where(counts, sums / np.maximum(counts, 1), train.values.mean())
    return np.asarray(means[split.test.users])


def biases(split: Split, run: Run, least: int = 1) -> Floats:
    """Predict μ + b_u + b_i with validated shrinkage; see `Biases.fit` for `least`."""
    return validated(partial(_with_shrinkage, least=least), SHRINKAGE, split, run)


def shrinkage_of(train: Ratings, run: Run) -> tuple[float, float]:
    """Return λ_u and λ_i of biases, chosen on a tenth of the training ratings."""
    return chosen(_with_shrinkage, SHRINKAGE, train, run)


def surprise_svd(split: Split, run: Run) -> Floats:
    """Predict by SVD of Surprise with validated settings, unclipped."""
    return validated(partial(_by_surprise, "SVD", run), SVD_SETTINGS, split, run)


def surprise_svdpp(split: Split, run: Run) -> Floats:
    """Predict by SVD++ of Surprise with validated settings, unclipped."""
    return validated(partial(_by_surprise, "SVDpp", run), SVDPP_SETTINGS, split, run)


def validated(
    predict: Callable[[Split, Setting], Floats],
    settings: Sequence[Setting],
    split: Split,
    run: Run,
) -> Floats:
    """Predict the test part with the setting of the least error on validation ratings."""
    return predict(split, chosen(predict, settings, split.train, run))


def chosen(
    predict: Callable[[Split, Setting], Floats],
    settings: Sequence[Setting],
    train: Ratings,
    run: Run,
) -> Setting:
    """Return the setting of the least error on a tenth of the training ratings."""
    part = random_split(train, VALIDATION, seed=run.seed)
    return min(settings, key=lambda one: rmse(part.test.values, predict(part, one)))


def _with_shrinkage(split: Split, shrinkage: tuple[float, float], least: int = 1) -> Floats:
    found = Biases.fit(split.train, *shrinkage, least)
    return found.predict(split.test.users, split.test.items)


def _by_surprise(
    name: Literal["SVD", "SVDpp"], run: Run, split: Split, settings: Mapping[str, float]
) -> Floats:
    chosen = dict(settings, n_epochs=run.fewer(int(settings["n_epochs"])))
    return surprise(split, name, run.seed, clip=False, **chosen)
