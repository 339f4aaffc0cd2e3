"""FCF: federated collaborative filtering on implicit feedback, by summed item gradients.

Symbols and equations follow Ammad-ud-din et al. 2019, section 4. The points that the paper
leaves open are decided as follows. An epoch is an update of the x_u (eq. 7) and then several
sums of gradients, 10 by default, with the x_u fixed. Adam restarts in each epoch; without
restarts the result is further from CF (table fcf-2 has both). Adam has the powers t that eq. 15
and 16 omit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from fedmf.aggregate import Aggregate, PlainSum
from fedmf.aggregate.vectors import Rows
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.errors import SettingError
from fedmf.fcf.confidence import Confidence, Floats, Implicit
from fedmf.fcf.federated import XY, FederatedRecommender, ImplicitTraining
from fedmf.models.federated import Raters
from fedmf.settings import BelowOne, Count, Has, Seed
from fedmf.training import Adam
from fedmf.training.optimisers import Optimiser
from fedmf.training.schedule import Callbacks, Summing
from fedmf.training.steps import LocalSteps

DIVERGED = "the factors diverge: lower the optimiser's rate"
BLOCK = 1 << 18  # elements of a block of users' gradients: two megabytes


@dataclass(frozen=True, eq=False)
class Step:
    """State after a sum of gradients; `epoch`, and `step` within the epoch, count from 1.

    `user_factors` is the X, shape (n_users, k), of the gradients. `item_factors` is the Y,
    shape (n_items, k), after the server's step. `aggregate` is None if the round was aborted.
    """

    epoch: int
    step: int
    user_factors: Floats
    item_factors: Floats
    aggregate: Aggregate | None


class FCF(FederatedRecommender):
    """Federated collaborative filtering (FCF, algorithm 1).

    Every user sends the gradients f(u, i) of *all* items, m · K elements. An unrated item has
    p = 0 and c = 1 and pulls the prediction to 0. ``min_raters=1`` is the paper's method, which
    leaves no item out. Dropouts within an epoch expose users; see docs/privacy.md.

    Parameters
    ----------
    model, min_raters, dropout, seed, callbacks : see `FederatedRecommender`
    rounds : int, number of epochs, ≥ 1; ``history_`` has a record of each sum
    aggregation
        Sum of the users' gradients; ``PlainSum(clip=16, fractional_bits=24)`` by default. The
        clip must exceed the elements of a gradient, about (1 + α r) · |x| at most.
    optimiser : step of the server, `Adam()` by default, or plain `Descent` (eq. 10)
    steps : int, number of sums of gradients in an epoch, ≥ 1
    reset : bool, True if the optimiser restarts with each epoch
    """

    def __init__(
        self,
        model: Annotated[Implicit, Has("confidence", "Implicit()")] | None = None,
        aggregation: Summing | None = None,
        *,
        optimiser: Annotated[Optimiser, Has("fresh", "Adam()")] | None = None,
        rounds: Count = 20,
        steps: Count = 10,
        reset: bool = True,
        min_raters: Count = 3,
        dropout: BelowOne = 0.0,
        seed: Seed = 0,
        callbacks: Callbacks = (),
    ) -> None:
        fine = PlainSum(clip=16.0, fractional_bits=24)
        super().__init__(
            model,
            fine if aggregation is None else aggregation,
            rounds=rounds,
            min_raters=min_raters,
            dropout=dropout,
            seed=seed,
            callbacks=callbacks,
        )
        self.optimiser: Optimiser = Adam() if optimiser is None else optimiser
        self.steps, self.reset = steps, reset
        self.__post_init__()

    def _check(self) -> None:
        if self.model.power or self.model.centred or self.model.reg is None:
            raise SettingError(
                f"model = {self.model!r} is not for FCF: leave power and centred out and give "
                "reg a number, or use FederatedCF"
            )

    def iterate(self, ratings: Ratings) -> Iterator[Step]:
        """Yield the state after each sum; errors as in `fit`."""
        training = self.training(self.confidence(ratings))
        x = training.start.x
        for one in self.iterated(training):
            epoch, step = divmod(one.record.round - 1, self.steps)
            yield Step(epoch + 1, step + 1, x, one.state.y, one.total)
            x = one.state.x

    def training(self, confidence: Confidence) -> ImplicitTraining[_Gradients]:
        """Return the steps of users and server; see `FederatedRecommender`."""
        return _Descent(self, confidence)


class _Gradients(LocalSteps):
    """Users' gradients of all items; the table that a user sends has a row for each factor."""

    def __init__(self, state: XY, confidence: Confidence) -> None:
        m, k = state.y.shape
        super().__init__(confidence.ratings, (k, m), max(BLOCK // (m * k), 1))
        self._state, self._confidence = state, confidence

    def rows(self, block: Block) -> Rows:
        k, m = self.shape
        factors = np.tile(np.arange(k, dtype=np.int32), block.users.size)
        tables = gradients(*self._state[:2], self._confidence, block.users)
        return Rows(factors, tables.reshape(-1, m), k)


class _Descent(ImplicitTraining[_Gradients]):
    """Steps of the optimiser along the gradient of Y (eq. 12); X is fixed during an epoch."""

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
            raise SettingError(DIVERGED)
        y, reg = state.y, self._fcf.model.reg or 0.0
        # Eq. 12. The regularisation needs no user, so the server adds it.
        slope = -2.0 * self.of_all(total).reshape(y.T.shape).T + 2.0 * reg * y
        return state._replace(y=y - self._move(slope))

    def round_over(self, state: XY, number: int) -> XY:
        """At the end of an epoch, update all x_u and, with `reset`, restart the optimiser."""
        if number % self._fcf.steps:
            return state
        if self._fcf.reset:
            self._move = self._fcf.optimiser.fresh()
        after = self.with_users(*state[1:])
        if not np.isfinite(after.x).all():  # squares of a finite Y can overflow
            raise SettingError(DIVERGED)
        return after


def gradients(x: Floats, y: Floats, confidence: Confidence, users: ArrayLike) -> Floats:
    """Return some users' gradients f(u, i) = c_ui (p_ui − x_u · y_i) x_u of all items (eq. 11).

    Parameters
    ----------
    x, y : float64, user factors (n_users, k) and item factors (m, k)
    confidence : confidences of all ratings
    users : numbers of b users; their gradients are returned

    Returns
    -------
    float64 array, shape (b, k, m)
        A user's table has a row for each factor, like the paper's Y: long rows are quicker to
        multiply and to add up than short rows.
    """
    numbers = np.asarray(users, dtype=np.int64)
    mine = x[numbers]
    # Summed in a fixed order, for any number of users: a matrix product would round a user's
    # numbers differently alone and in a block.
    columns = y.T.copy()  # contiguous columns
    residual = -mine[:, :1] * columns[0]
    for factor in range(1, y.shape[1]):
        residual -= mine[:, factor : factor + 1] * columns[factor]
    row, rated = confidence.of_users(numbers)
    where = (row, confidence.ratings.items[rated])
    residual[where] = (
        confidence.weighted[rated] + (1.0 + confidence.excess[rated]) * residual[where]
    )
    return np.asarray(mine[:, :, None] * residual[:, None, :])
