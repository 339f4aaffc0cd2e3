"""FCF: federated collaborative filtering on implicit feedback, by summed item gradients.

Symbols and equations are those of Ammad-ud-din et al. 2019, section 4. What the paper leaves
open is decided as follows. An epoch is one update of the x_u (eq. 7) and then several sums of
gradients, 10 by default, over which the x_u are held fixed; Adam starts anew in each epoch
(carried on over epochs it ends further from CF: table fcf-2 has both), with the powers t that
eq. 15 and 16 omit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.aggregate import Aggregate, PlainSum
from fedmf.aggregate.aggregation import Progress
from fedmf.aggregate.vectors import Rows
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.errors import SettingError
from fedmf.fcf.confidence import Confidence, Implicit
from fedmf.fcf.federated import XY, FederatedRecommender, ImplicitTraining
from fedmf.models.federated import Raters
from fedmf.settings import Count, Fraction, Has, Seed
from fedmf.training import Adam
from fedmf.training.loop import LocalSteps
from fedmf.training.optimisers import Optimiser
from fedmf.training.schedule import Summing

__all__ = ["FCF", "Step", "gradients"]

Floats = NDArray[np.float64]

BLOCK = 1 << 18  # elements of several users' gradients that are made at once: two megabytes


@dataclass(frozen=True, eq=False)
class Step:
    """What one sum of gradients brought.

    Parameters
    ----------
    epoch, step
        1, 2, …; the step within the epoch.
    user_factors
        X, shape (n_users, k), that the gradients are of.
    item_factors
        Y, shape (n_items, k), after the server's step.
    aggregate
        The sum; None if it was lost, as too few users stayed.
    """

    epoch: int
    step: int
    user_factors: Floats
    item_factors: Floats
    aggregate: Aggregate | None


class FCF(FederatedRecommender):
    """Federated collaborative filtering (FCF, algorithm 1).

    Every user sends f(u, i) of *all* items, m · K elements: an item that is not rated has
    p = 0 and c = 1, and pulls the prediction to 0.

    Parameters
    ----------
    model
        The hyper-parameters that CF has too; `Implicit()` by default.
    aggregation
        How the users' gradients are summed; ``PlainSum(clip=16, fractional_bits=24)`` by
        default. An element is at most (1 + α r) · |x| in size or so.
    optimiser
        How the server moves: `Adam` by default, or plain `Descent` (eq. 10).
    epochs, steps
        How many, and how many sums of gradients in each; at least 1.
    reset
        Whether the optimiser forgets the past when an epoch begins.
    min_raters
        Ratings of items that fewer users rated, 3 by default, are left out as if they were not
        there; `FederatedRecommender` says what is prevented so, and what is not. The paper's
        protocol has no such minimum: 1.
    dropout
        The probability in [0, 1) with which a user vanishes in a sum, as of `Schedule`. The
        sum of those who stayed is scaled to all users; a sum that is lost, as too few stayed,
        leaves Y as it is. Whoever is missing from one sum of an epoch and not from the others
        is exposed, as their x_u, held fixed, makes out the difference. With ``steps=1`` no two
        sums are of the same x_u; but of an item whose raters but one vanish, one sum tells.
    seed
        Of the starting Y and of who vanishes, at least 0. CF with the same seed has the same
        start.
    progress
        Called after each sum with what was done, and how many of how many are over.

    Raises
    ------
    SettingError
        If a setting is out of range.
    """

    def __init__(
        self,
        model: Annotated[Implicit, Has("confidence", "Implicit()")] | None = None,
        aggregation: Summing | None = None,
        *,
        optimiser: Annotated[Optimiser, Has("fresh", "Adam()")] | None = None,
        epochs: Count = 20,
        steps: Count = 10,
        reset: bool = True,
        min_raters: Count = 3,
        dropout: Fraction = 0.0,
        seed: Seed = 0,
        progress: Progress = lambda what, done, of: None,
    ) -> None:
        fine = PlainSum(clip=16.0, fractional_bits=24)
        summing = fine if aggregation is None else aggregation
        super().__init__(summing, seed=seed, cohort=None, dropout=dropout)
        self.model = Implicit() if model is None else model
        self.epochs, self.min_raters, self.progress = epochs, min_raters, progress
        self.optimiser: Optimiser = Adam() if optimiser is None else optimiser
        self.steps, self.reset = steps, reset
        self.__post_init__()

    def fit(self, ratings: Ratings) -> Self:
        """Learn X and Y from ratings of at least 0, such as `fedmf.fcf.views` of them.

        Raises
        ------
        DataError
            If a rating is negative.
        SettingError
            If the gradients exceed the aggregation's clip, or the factors all bounds.
        RoundAborted
            If the raters cannot be counted, or no sum at all comes about.
        KeyboardInterrupt
            On Ctrl-C before the first sum came about; later it ends the training early, and
            what the finished sums taught is kept.
        """
        self._forget()
        training = _Descent(self, self._confidence(ratings))
        return self._learn(training, ratings, self.epochs * self.steps, "sums")

    def iterate(self, ratings: Ratings) -> Iterator[Step]:
        """Yield what each sum brought; errors as of `fit`."""
        training = _Descent(self, self._confidence(ratings))
        x = training.start.x
        for one in self._rounds(training, self.epochs * self.steps):
            epoch, step = divmod(one.record.round - 1, self.steps)
            yield Step(epoch + 1, step + 1, x, one.state.y, one.total)
            x = one.state.x


class _Gradients(LocalSteps):
    """Gradients of all items, a row for each factor."""

    def __init__(self, state: XY, confidence: Confidence) -> None:
        m, k = state.y.shape
        super().__init__(confidence.ratings, (k, m), max(BLOCK // (m * k), 1))
        self._state, self._confidence = state, confidence

    def rows(self, block: Block) -> Rows:
        k, m = self.shape
        factors = np.tile(np.arange(k, dtype=np.int32), block.users.size)
        tables = gradients(*self._state, self._confidence, block.users)
        return Rows(factors, tables.reshape(-1, m), k)


class _Descent(ImplicitTraining[_Gradients]):
    """Steps of the optimiser along the gradient of Y (eq. 12), X held fixed over an epoch."""

    clip_remedy = (
        "raise that, as in aggregation=SecAggSum(clip=256, fractional_bits=24), or lower "
        "alpha, or the optimiser's rate if the factors diverge"
    )

    def __init__(self, fcf: FCF, confidence: Confidence) -> None:
        super().__init__(fcf.model, confidence, fcf.seed)
        self._fcf, self._move = fcf, fcf.optimiser.fresh()

    def local_steps(self, state: XY, raters: Raters | None) -> _Gradients:
        return _Gradients(state, self.confidence)

    def server_step(self, state: XY, steps: _Gradients, total: Aggregate) -> XY:
        if not np.isfinite(total.sum).all():
            raise SettingError(
                "the factors have grown beyond all bounds: lower the optimiser's rate"
            )
        x, y = state
        # Eq. 12; the regularisation needs no user and is the server's.
        slope = -2.0 * self.of_all(total).reshape(y.T.shape).T + 2.0 * self.model.reg * y
        return XY(x, y - self._move(slope))

    def round_over(self, state: XY, number: int) -> XY:
        """Let an epoch end: the users update x_u, and the optimiser may start anew."""
        if number % self._fcf.steps:
            return state
        if self._fcf.reset:
            self._move = self._fcf.optimiser.fresh()
        return self.with_users(state.y)


def gradients(x: Floats, y: Floats, confidence: Confidence, users: ArrayLike) -> Floats:
    """Return users' f(u, i) = c_ui (p_ui − x_u · y_i) x_u of every item i (eq. 11).

    Parameters
    ----------
    x, y
        Shapes (n_users, k) and (m, k).
    confidence
        What the users rated.
    users
        Whose gradients to return, b of them.

    Returns
    -------
    float64 array, shape (b, k, m)
        A row for each factor, as the paper's Y has: long rows are quicker to multiply and to
        add up than short ones.
    """
    numbers = np.asarray(users, dtype=np.int64)
    mine = x[numbers]
    # Summed in one order, whatever the number of users: a matrix product would round a user's
    # numbers differently alone and in a block.
    columns = y.T.copy()  # in one piece each
    residual = -mine[:, :1] * columns[0]
    for factor in range(1, y.shape[1]):
        residual -= mine[:, factor : factor + 1] * columns[factor]
    row, rated = confidence.of_users(numbers)
    where = (row, confidence.ratings.items[rated])
    residual[where] = (
        confidence.weighted[rated] + (1.0 + confidence.excess[rated]) * residual[where]
    )
    return np.asarray(mine[:, :, None] * residual[:, None, :])
