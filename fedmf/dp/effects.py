"""Rounds of `DPFedMF`: the users' messages, and the server's estimate from noised sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fedmf import _fast
from fedmf.aggregate import Aggregate
from fedmf.aggregate.vectors import Rows
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.data.internal import internal
from fedmf.models import Factors
from fedmf.models.federated import Floats, Raters
from fedmf.models.mf import NEUTRAL
from fedmf.training.history import RoundRecord, mae, rmse
from fedmf.training.loop import Training
from fedmf.training.steps import LocalSteps

# Chosen on validation ratings of ml-100k and ml-1m: docs/privacy.md, "Noised item effects".
MARK = 0.5
"""Number for each rated item beside the residual, in ratings of the internal scale."""
SPREAD = 0.4
"""Standard deviation of an effect around the prior mean."""
RIDGE = np.array([3.0, 50.0, 50.0])
"""Penalties of a user's bias, taste for good items and taste for popular items."""
LINK, FREE = 50.0, 0.1
"""Penalties of the features and of the constant in the regression of effects on features."""
FEW = 0.1
"""Least mass of an item, as of a single rater with some hundred ratings."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """State of the training: released sums, and the factors that follow from the sums.

    Parameters
    ----------
    factors
        Rows (μ + b_i, 1, b_i / `SPREAD`, x_i) of the items with effect b and popularity x, and
        rows (1, b_u, s_u, t_u) of the users. The rows of the items are private outputs.
    sums
        Float64, shape (m, 3): totals over the rounds of the two columns of the noised sums, and
        of the b_i that the residuals were against.
    variance : float, total of the variances of the noise in a number of the sums
    rounds : int, number of the sums
    """

    factors: Factors
    sums: Floats
    variance: float = 0.0
    rounds: int = 0


def first(ratings: Ratings, scale: tuple[float, float]) -> Estimate:
    """Return the state before any sum: no effects, and the users' own biases."""
    nothing = np.zeros((ratings.n_items, 3))
    items = rows_of(nothing[:, 0], nothing[:, 1])
    factors = Factors.of(solved(items, ratings), items, ratings, scale=scale)
    return Estimate(factors, nothing)


def rows_of(effects: Floats, popularity: Floats) -> Floats:
    """Return the rows of the items; see `Estimate`."""
    ones = np.ones(effects.size)
    return np.column_stack((NEUTRAL + effects, ones, effects / SPREAD, popularity))


def solved(items: Floats, ratings: Ratings) -> Floats:
    """Return the rows of all users, each a ridge regression on that user's own ratings."""
    n, free = ratings.n_users, RIDGE.size
    rows, zeros = np.ones((n, free + 1)), np.zeros((n, free))
    block = ratings.indptr, ratings.items, ratings.values
    _fast.draw_users(*block, items, rows, 1, np.ones(n), np.diag(RIDGE), zeros, zeros)
    return rows


class Residuals(LocalSteps):
    """Messages of a round: a row (w e, w `MARK`) for each rated item, of an L2 norm of 1.

    e is the residual r − r̂ of the rating on the internal scale, and w a weight of the user that
    gives the message this norm. So every user with a rating counts alike, whatever the number
    of ratings.
    """

    def __init__(self, factors: Factors, ratings: Ratings) -> None:
        super().__init__(ratings, (ratings.n_items, 2))
        self.factors = factors

    def rows(self, block: Block) -> Rows:
        """Return the rows of a block's users."""
        users = np.repeat(np.arange(block.users.size), block.counts)
        rated, found = block.items.astype(np.int64), np.empty(users.size)
        p, q = self.factors.user_factors[block.users], self.factors.item_factors
        _fast.predict(p, q, users, rated, found)
        sent = np.column_stack((block.values - found, np.full(found.size, MARK)))
        squares = np.bincount(users, (sent**2).sum(axis=1), block.users.size)
        return Rows(block.items, sent / np.sqrt(squares[users])[:, None], self.shape[0])


class Effects(Training[Estimate, Residuals]):
    """Training of `DPFedMF`.

    Parameters
    ----------
    train, test : ratings on the public scale; `test` may be None
    features : float64, shape (m, f), standardised
    deviation : function from the survivors and all users of a sum to the noise's deviation
    """

    def __init__(
        self,
        train: Ratings,
        test: Ratings | None,
        features: Floats,
        deviation: Callable[[int, int], float],
    ) -> None:
        self.ratings, self.features, self._deviation = internal(train), features, deviation
        self._train, self._test = train, test

    def local_steps(self, state: Estimate, raters: Raters | None) -> Residuals:
        """Return the messages of a round; see `Training`."""
        return Residuals(state.factors, self.ratings)

    def server_step(self, state: Estimate, steps: Residuals, total: Aggregate) -> Estimate:
        """Return the estimate from this sum and all earlier sums."""
        base = state.factors.item_factors[:, 0] - NEUTRAL
        sums = state.sums + np.column_stack((total.sum.reshape(steps.shape), base))
        noise = self._deviation(len(total.survivors), self.ratings.n_users)
        variance, rounds = state.variance + noise**2, state.rounds + 1
        found = estimated(sums / rounds, np.sqrt(variance) / rounds, self.features)
        items = rows_of(*found)
        factors = replace(
            state.factors, item_factors=items, user_factors=solved(items, self.ratings)
        )
        return Estimate(factors, sums, variance, rounds)

    def measured(
        self, record: RoundRecord, state: Estimate, raters: Raters | None
    ) -> RoundRecord:
        """Return the record with the errors, which only a simulation can know."""
        train, test = self._train, self._test
        guesses = state.factors.predict(train.users, train.items)
        record = replace(record, train_rmse=rmse(train.values, guesses))
        if test is None:
            return record
        guesses = state.factors.predict(test.users, test.items)
        errors = rmse(test.values, guesses), mae(test.values, guesses)
        return replace(record, test_rmse=errors[0], test_mae=errors[1])


def estimated(means: Floats, noise: float, features: Floats) -> tuple[Floats, Floats]:
    """Return the effect b and the popularity x of each item, shape (m,).

    The first column of a mean sum estimates Σ w e, and the second column over `MARK` the mass
    h = Σ w > 0 of an item. Masses have an exponential prior; their posterior mean is
    approximate. Given h, Σ w e + h b° estimates h b with the deviation `noise`, where b° is the
    third column. The prior of b is normal around a regression on log h, (log h)² and the
    features, whose posterior mean is found first.

    Parameters
    ----------
    means : float64, shape (m, 3), mean of `Estimate.sums` over the rounds
    noise : float, > 0, standard deviation of the noise in the first two columns
    features : float64, shape (m, f)
    """
    raw, spread = means[:, 1] / MARK, noise / MARK
    shifted = raw - spread**2 / max(raw.mean(), spread / np.sqrt(raw.size))
    # of a normal distribution cut off at 0: √(2/π) spread in the middle, and right far off
    mass = (shifted + np.sqrt(shifted**2 + (8 / np.pi) * spread**2)) / 2
    popularity = standardised(np.log(np.maximum(mass, FEW))[:, None])
    shift = mass * (means[:, 0] + mass * means[:, 2]) / noise**2
    information, prior = (mass / noise) ** 2, SPREAD**-2
    columns = np.column_stack((np.ones(raw.size), popularity, popularity**2, features))
    weight = 1 / (1 + information / prior)
    penalty = np.full(columns.shape[1], LINK)
    penalty[0] = FREE
    normal = columns.T @ (columns * (weight * information)[:, None]) + np.diag(penalty)
    expected = columns @ np.linalg.solve(normal, columns.T @ (weight * shift))
    return (shift + prior * expected) / (information + prior), popularity[:, 0]


def standardised(table: Floats) -> Floats:
    """Return columns of mean 0 and standard deviation 1; zeros for a constant column."""
    apart = table - table.mean(axis=0)
    spread = apart.std(axis=0)
    return np.asarray(np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 0))
