"""Common part of `FCF` and `FederatedCF`: raters are counted once, then a round is one sum."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate import Aggregate, PlainSum, RoundAborted
from fedmf.data import Ratings
from fedmf.errors import DataError
from fedmf.fcf.confidence import Confidence, Implicit, solve
from fedmf.models import Factors
from fedmf.models.warm import warm
from fedmf.settings import BelowOne, Count, Has, Seed
from fedmf.training.loop import Loop, Round, Steps, Training, keep
from fedmf.training.schedule import Callbacks, Scheduled, Summing

Floats = NDArray[np.float64]

FORMER = MappingProxyType({"factors_": "model_", "epochs": "rounds", "progress": "callbacks"})
"""Present names by former names of recommenders for implicit feedback; see `Estimator`."""


class XY(NamedTuple):
    """State of a training: X, shape (n_users, k), and Y, shape (n_items, k)."""

    x: Floats
    y: Floats


class ImplicitTraining(Training[XY, Steps]):
    """Steps of a training on implicit feedback. Dropped-out users still update x_u."""

    def __init__(self, model: Implicit, confidence: Confidence, seed: int) -> None:
        self.model, self.confidence, self.ratings = model, confidence, confidence.ratings
        self._tables = confidence.tables()
        self._penalty = model.penalty(self._tables[0].sum(axis=1), self.ratings.n_items)
        self.start = self.with_users(model.start(self.ratings, seed))

    def with_users(self, y: Floats) -> XY:
        """Return Y with the X that is exact for Y (eq. 7)."""
        return XY(solve(y, *self._tables, self._penalty), y)

    def of_all(self, total: Aggregate) -> Floats:
        """Scale a sum over the survivors to all users, by n_users / number of survivors."""
        return total.sum * (self.ratings.n_users / len(total.survivors))


class FederatedRecommender(Scheduled):
    """Base class of recommenders for implicit feedback that learn from sums over users.

    Ratings of items with fewer than `min_raters` raters are left out of the training.
    docs/privacy.md has the reason and the limits. The raters are counted first, by a separate
    sum.

    Parameters
    ----------
    model : hyper-parameters, as in `CF`; `Implicit()` by default
    aggregation : sum of the users' vectors; ``PlainSum(clip=256, fractional_bits=32)`` if None
    rounds : int, number of updates of X, ≥ 1
    min_raters : int, least number of raters of a trained item, ≥ 1; with 1 nothing is counted
    dropout
        Probability in [0, 1) that a user drops out of a sum; see `Schedule`. The sum over the
        survivors is scaled to all users. An aborted sum leaves Y unchanged.
    seed : int, seed of the dropouts and of the starting Y, the same Y as in `CF`, ≥ 0
    callbacks : functions that are called with the record of each finished sum

    Attributes
    ----------
    model_ : Factors, X and Y
    history_ : History, a record of each sum, without errors
    """

    model: Implicit
    steps: int = 1  # sums from one update of the users' factors to the next
    model_: Factors
    _former = FORMER

    def __init__(
        self,
        model: Annotated[Implicit, Has("confidence", "Implicit()")] | None = None,
        aggregation: Summing | None = None,
        *,
        rounds: Count = 20,
        min_raters: Count = 3,
        dropout: BelowOne = 0.0,
        seed: Seed = 0,
        callbacks: Callbacks = (),
    ) -> None:
        fine = PlainSum(clip=256.0, fractional_bits=32)
        summing = fine if aggregation is None else aggregation
        super().__init__(summing, seed=seed, dropout=dropout)
        self.model: Implicit = Implicit() if model is None else model
        self.rounds, self.min_raters, self.callbacks = rounds, min_raters, callbacks
        self.__post_init__()

    @abstractmethod
    def training(self, confidence: Confidence) -> ImplicitTraining[Any]:
        """Return the steps of users and server, for the confidences of the trained items."""

    @property
    def sums(self) -> int:
        """Number of sums in a training, without the count of raters."""
        return self.rounds * self.steps

    def fit(
        self, train: Ratings, test: Ratings | None = None, *, start: Factors | None = None
    ) -> Self:
        """Learn X and Y from ratings of at least 0, such as `fedmf.fcf.views` returns.

        A second Ctrl-C, while X is solved for Y, leaves Y and the earlier X as the result.

        Parameters
        ----------
        train : ratings of all users
        test : not used, since no error is recorded
        start
            Earlier factors that Y continues from, perhaps with new ratings; items are matched
            by id. Rounds may be divided among several calls, for `FCF` with ``reset=True``.

        Raises
        ------
        ModelError
            If `start` does not fit the model, or knows no item of the ratings.
        DataError
            If a rating is negative, or no item has enough raters.
        SettingError
            If a number exceeds the aggregation's clip, the factors diverge, or the ratings have
            fewer than 3 users.
        RoundAborted
            If the count of raters is aborted in every attempt, or all sums are aborted.
        KeyboardInterrupt
            On Ctrl-C before the first sum is finished; nothing is fitted then. Later Ctrl-C
            ends the training early without an error and keeps the finished sums.
        """
        self._forget()
        training = self.training(self._confidence(train))
        if start is not None:
            y = warm(*training.start, start, train, ranks=True)[1]
            training.start = training.with_users(y)
        state, history = keep(self._rounds(training), training.start, self.report)
        if history.interrupted and all(one.aborted is not None for one in history):
            raise KeyboardInterrupt
        self.history_ = history
        self.model_ = self.model.factors(*state, train)
        if history.interrupted:  # perhaps between two updates of X
            self.model_ = self.model.factors(*training.with_users(state.y), train)
        return self

    def _rounds(self, training: ImplicitTraining[Steps]) -> Iterator[Round[XY]]:
        """Yield all rounds; raises RoundAborted after the last if all were aborted."""
        learnt, lost = False, ""
        for one in self._loop(self.sums).iterate(training, training.start):
            learnt, lost = learnt or one.total is not None, one.record.aborted or lost
            yield one
        if not learnt:
            raise _nothing_learnt(lost)

    def _confidence(self, ratings: Ratings) -> Confidence:
        """Return the confidences of items with enough raters; try to count `rounds` times."""
        confidence = self.model.confidence(ratings)  # validates all ratings before the sums
        self.schedule.size(ratings.n_users)
        if self.min_raters == 1:
            return confidence
        users, lost = np.arange(ratings.n_users), ""
        for number in range(1, self.rounds + 1):
            try:
                raters, _ = self._loop(self.rounds).count(ratings, number, users)
            except RoundAborted as error:
                lost = str(error)
                continue
            enough = raters.at_least(self.min_raters)[ratings.items]
            if not enough.any():
                raise DataError(
                    f"no item of {ratings.name} has {self.min_raters} raters: lower min_raters"
                )
            return self.model.confidence(ratings.take(enough))
        raise _nothing_learnt(lost)

    def _loop(self, rounds: int) -> Loop:
        return Loop(self.aggregation, self.schedule, rounds, "fedmf implicit")


def _nothing_learnt(lost: str) -> RoundAborted:
    return RoundAborted(
        f"no sum came about, the last one for: {lost}. Lower the aggregation's threshold, or "
        "the dropout"
    )
