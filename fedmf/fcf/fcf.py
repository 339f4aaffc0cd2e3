"""FCF: federated collaborative filtering on implicit feedback, by summed item gradients.

Symbols and equations are those of Ammad-ud-din et al. 2019, section 4. What the paper leaves
open is decided as follows. An epoch is one update of the x_u (eq. 7) and then several sums of
gradients, 10 by default, over which the x_u are held fixed; Adam starts anew in each epoch
(carried on over epochs it ends further from CF: table fcf-2 has both), with the powers t that
eq. 15 and 16 omit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate import Aggregate, Aggregation, PlainSum, RoundAborted
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.data import Ratings
from fedmf.errors import SettingError
from fedmf.fcf.confidence import Confidence, Implicit, solve
from fedmf.fcf.federated import FederatedRecommender, nothing_learnt
from fedmf.models import Factors
from fedmf.settings import check_able, check_whole
from fedmf.training import Adam
from fedmf.training.optimisers import Optimiser

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
        model: Implicit | None = None,
        aggregation: Aggregation | None = None,
        *,
        optimiser: Optimiser | None = None,
        epochs: int = 20,
        steps: int = 10,
        reset: bool = True,
        min_raters: int = 3,
        dropout: float = 0.0,
        seed: int = 0,
        progress: Callable[[str, int, int], None] = lambda what, done, of: None,
    ) -> None:
        check_whole(steps=steps)
        super().__init__(
            Implicit() if model is None else model,
            PlainSum(clip=16.0, fractional_bits=24) if aggregation is None else aggregation,
            epochs=epochs,
            min_raters=min_raters,
            dropout=dropout,
            seed=seed,
            progress=progress,
        )
        self.optimiser: Optimiser = Adam() if optimiser is None else optimiser
        check_able("fresh", "Adam()", optimiser=self.optimiser)
        self.steps, self.reset = int(steps), reset

    def fit(self, ratings: Ratings) -> Self:
        """Learn X and Y from ratings of at least 0, such as `implicit.views` of them.

        Raises
        ------
        DataError
            If a rating is negative.
        SettingError
            If the gradients exceed the aggregation's clip, or the factors all bounds.
        RoundAborted
            If the raters cannot be counted, or no sum at all comes about.
        KeyboardInterrupt
            On Ctrl-C; the finished epochs are kept, see `Recommender`.
        """
        self._forget()
        confidence = self._confidence(ratings)
        learnt = False
        for done, step in enumerate(self._iterate(confidence), start=1):
            learnt = learnt or step.aggregate is not None
            if learnt and step.step == self.steps:
                y = step.item_factors  # with each user's own last update
                x = solve(y, *confidence.tables(), self.model.reg)
                self.factors_ = Factors.of(x, y, ratings)
            self.progress("sums", done, self.epochs * self.steps)
        return self

    def iterate(self, ratings: Ratings) -> Iterator[Step]:
        """Yield what each sum brought; errors as of `fit`."""
        yield from self._iterate(self._confidence(ratings))

    def _iterate(self, confidence: Confidence) -> Iterator[Step]:
        tables = confidence.tables()
        y = self.model.start(confidence.ratings, self.seed)
        move = self.optimiser.fresh()
        summed, lost = False, ""
        for epoch in range(1, self.epochs + 1):
            x = solve(y, *tables, self.model.reg)
            if self.reset:
                move = self.optimiser.fresh()
            for step in range(1, self.steps + 1):
                number = (epoch - 1) * self.steps + step
                try:
                    total, of_all = self._sum(_vectors(x, y, confidence), number)
                except RoundAborted as error:
                    lost = str(error)
                    yield Step(epoch, step, x, y, None)
                    continue
                summed = True
                _check(total)
                # Eq. 12; the regularisation needs no user and is the server's.
                slope = -2.0 * of_all.reshape(y.T.shape).T + 2.0 * self.model.reg * y
                y = y - move(slope)
                yield Step(epoch, step, x, y, total)
        if not summed:
            raise nothing_learnt(lost)


def _vectors(x: Floats, y: Floats, confidence: Confidence) -> Vectors:
    """Return everyone's gradients as what is to be summed."""
    m, k = y.shape
    factors = np.arange(k, dtype=np.int32)
    at_once = max(BLOCK // (m * k), 1)

    def of_user(user: int) -> Rows:
        return Rows(factors, gradients(x, y, confidence, [user])[0], k)

    def of_users(users: Sequence[int]) -> Iterator[Rows]:
        for start in range(0, len(users), at_once):
            part = users[start : start + at_once]
            tables = gradients(x, y, confidence, part)
            yield Rows(np.tile(factors, len(part)), tables.reshape(-1, m), k)

    return Vectors(range(x.shape[0]), of_user, (k, m), of_users)


def gradients(x: Floats, y: Floats, confidence: Confidence, users: Sequence[int]) -> Floats:
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


def _check(total: Aggregate) -> None:
    if total.clipped:
        raise SettingError(
            f"{total.clipped} elements of the users' gradients lie beyond the clip of the "
            "aggregation: raise that, as in aggregation=SecAggSum(clip=256, fractional_bits="
            "24), or lower alpha, or the optimiser's rate if the factors diverge"
        )
    if not np.isfinite(total.sum).all():
        raise SettingError(
            "the factors have grown beyond all bounds: lower the optimiser's rate"
        )
