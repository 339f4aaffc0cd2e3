"""Common part of `FCF` and `FederatedCF`: the count of raters, the rounds, and the fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from fedmf.aggregate import Aggregate, PlainSum, RoundAborted
from fedmf.data import Ratings
from fedmf.data.checks import check_ratings
from fedmf.errors import DataError
from fedmf.fcf.confidence import POPULAR, Confidence, Floats, Implicit, solve
from fedmf.models import Factors
from fedmf.models.warm import warm
from fedmf.settings import BelowOne, Count, Has, Seed
from fedmf.training.history import History, RoundRecord
from fedmf.training.loop import Loop, Round, Steps, Training, keep
from fedmf.training.schedule import Callbacks, Scheduled, Summing

FORMER = MappingProxyType({"factors_": "model_", "epochs": "rounds", "progress": "callbacks"})
"""Present names by former names of recommenders for implicit feedback; see `Estimator`."""


class XY(NamedTuple):
    """State of a training: X, shape (n_users, k), Y, shape (n_items, k), and x̄, shape (k,)."""

    x: Floats
    y: Floats
    centre: Floats


class ImplicitTraining(Training[XY, Steps]):
    """Steps of a training on implicit feedback. Dropped-out users still update x_u."""

    def __init__(self, model: Implicit, confidence: Confidence, seed: int) -> None:
        self.model, self.confidence, self.ratings = model, confidence, confidence.ratings
        self._penalty = model.penalty(confidence.by_users.sums)
        # the first column of a centred Y becomes the popularity, the same for all users
        centre = np.eye(model.k)[0] * model.centred
        self.start = self.with_users(model.start(self.ratings, seed), centre)

    def with_users(self, y: Floats, centre: Floats) -> XY:
        """Return Y and x̄ with the X that is exact for both (eq. 7)."""
        return XY(solve(y, self.confidence.by_users, self._penalty, centre), y, centre)

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
    expected : int, number of sums of a fit, set when the fit begins
    """

    model: Implicit
    steps: int = 1  # sums from one update of the users' factors to the next
    model_: Factors
    _former = FORMER
    _session = "fedmf implicit"

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

    def sums(self, n_items: int) -> int:
        """Return the number of sums of a training, without the counts of raters."""
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
            by id. Rounds may be divided among several calls, for `FCF` with ``reset=True``. A
            start with a λ that ranks by popularity is not continued.

        Raises
        ------
        ModelError
            If `start` does not fit the model, or knows no item of the ratings.
        DataError
            If a rating is negative, or no item has enough raters.
        SettingError
            If a number exceeds the aggregation's clip, the factors diverge, or `train` is not
            `Ratings`, of at least 3 users.
        RoundAborted
            If the count of raters is aborted in every attempt, or all sums are aborted.
        KeyboardInterrupt
            On Ctrl-C before the first sum is finished; nothing is fitted then. Later Ctrl-C
            ends the training early without an error and keeps the finished sums.
        """
        check_ratings(train=train)
        self._forget()
        self.expected = self.sums(train.n_items)
        system, tried = self.chosen(train)
        training = system.training(system.confidence(train))
        if start is not None:
            x, y, centre = training.start
            y = warm(x, y, start, train, ranks=True)[1]
            centre = start.centre if start.centre.size else centre
            # factors of mere popularity have shrunk so far that they would hardly grow again
            if start.implicit.reg < POPULAR:
                training.start = training.with_users(y, centre)
        rounds = system.iterated(training, len(tried) + 1)
        state, history = keep(rounds, training.start, self.report)
        if history.interrupted and all(one.aborted is not None for one in history):
            raise KeyboardInterrupt
        self.history_ = History((*tried, *history), history.interrupted)
        self.model_ = system.model.factors(*state, train)
        if history.interrupted:  # perhaps between two updates of X
            state = training.with_users(*state[1:])
            self.model_ = system.model.factors(*state, train)
        return self

    def chosen(self, train: Ratings) -> tuple[FederatedRecommender, Sequence[RoundRecord]]:
        """Return the recommender with all settings chosen, and records of the choice's sums."""
        return self, ()

    def iterated(
        self, training: ImplicitTraining[Steps], first: int = 1
    ) -> Iterator[Round[XY]]:
        """Yield all rounds, the first with the number `first`, from the training's start.

        Raises RoundAborted after the last if all were aborted.
        """
        learnt, lost = False, ""
        last = first - 1 + self.sums(training.ratings.n_items)
        for one in self.loop(last).iterate(training, training.start, first):
            learnt, lost = learnt or one.total is not None, one.record.aborted or lost
            yield one
        if not learnt:
            raise _nothing_learnt(lost)

    def confidence(self, ratings: Ratings) -> Confidence:
        """Return the confidences of items with enough raters; try to count `rounds` times."""
        confidence = self.model.confidence(ratings)  # validates all ratings before the sums
        self.schedule.size(ratings.n_users)
        if self.min_raters == 1:
            return confidence
        users, lost = np.arange(ratings.n_users), ""
        for number in range(1, self.rounds + 1):
            try:
                raters, _ = self.loop(self.rounds).count(number, users, ratings)
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

    def loop(self, rounds: int) -> Loop:
        """Return the loop of a training of `rounds` sums."""
        return Loop(self.aggregation, self.schedule, rounds, self._session)


def _nothing_learnt(lost: str) -> RoundAborted:
    return RoundAborted(
        f"no sum came about, the last one for: {lost}. Lower the aggregation's threshold, or "
        "the dropout"
    )
