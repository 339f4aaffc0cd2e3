"""Federated recommenders of implicit feedback: raters counted once, then a sum each round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate import Aggregate, RoundAborted
from fedmf.aggregate.aggregation import Progress
from fedmf.data import Ratings
from fedmf.errors import DataError
from fedmf.fcf.confidence import Confidence, Implicit, solve
from fedmf.models import Factors
from fedmf.training.loop import Loop, Round, Steps, Training, keep
from fedmf.training.schedule import Scheduled

__all__ = ["XY", "FederatedRecommender", "ImplicitTraining"]

Floats = NDArray[np.float64]


class XY(NamedTuple):
    """State of a training: X, shape (n_users, k), and Y, shape (n_items, k)."""

    x: Floats
    y: Floats


class ImplicitTraining(Training[XY, Steps]):
    """Training on implicit feedback; every user updates x_u, whoever is in the sum.

    Parameters
    ----------
    model
        Hyper-parameters.
    confidence
        Preferences and confidences of the ratings that are trained.
    seed
        Seed of the starting Y, at least 0.
    """

    def __init__(self, model: Implicit, confidence: Confidence, seed: int) -> None:
        self.model, self.confidence, self.ratings = model, confidence, confidence.ratings
        self._tables = confidence.tables()
        self.start = self.with_users(model.start(self.ratings, seed))

    def with_users(self, y: Floats) -> XY:
        """Return Y with the X that is exact for it (eq. 7)."""
        return XY(solve(y, *self._tables, self.model.reg), y)

    def of_all(self, total: Aggregate) -> Floats:
        """Return a sum scaled from the users who stayed to all of them."""
        return total.sum * (self.ratings.n_users / len(total.survivors))


class FederatedRecommender(Scheduled):
    """Learns from sums over users, each of whom may vanish from any of them.

    Ratings of items that fewer than `min_raters` users rated are left out of the training, as
    if they were not there: users count first, by a sum of its own. 1 leaves none out and counts
    nothing. The sums tell Σ_u (c − 1) x_u x_uᵀ and Σ_u c p x_u over an item's raters (of FCF
    those of one epoch together, where x_u is held fixed and Y is known). Over one rater that is
    x_u itself, which 3 prevents where nobody vanishes. Over fewer raters than K it is the space
    that their x_u span, and a user of several such items is found where the spaces meet: K and
    more are safe from that, which is no proof. Where users vanish a margin must be added as of
    `FedMF.min_raters`, there times the rounds, here times all sums: raters are counted once.

    Attributes
    ----------
    factors_ : Factors
        X and Y, and what each user has seen.
    history_ : History
        A record of each sum, without errors.
    """

    model: Implicit
    epochs: int
    min_raters: int
    progress: Progress
    factors_: Factors

    def _learn(
        self, training: ImplicitTraining[Steps], ratings: Ratings, number: int, what: str
    ) -> Self:
        """Keep what so many rounds teach; `what` names them to `progress`.

        Raises
        ------
        KeyboardInterrupt
            On Ctrl-C before the first sum came about, with nothing fitted, as the factors are
            still noise; also on a second one while X is solved for the Y of an interrupted
            training, with Y and the X before fitted.
        """
        state, history = keep(
            self._rounds(training, number),
            training.start,
            lambda record: self.progress(what, record.round, number),
        )
        if history.interrupted and all(one.aborted is not None for one in history):
            raise KeyboardInterrupt
        self.history_ = history
        self.factors_ = Factors.of(*state, ratings)
        if history.interrupted:  # perhaps within an epoch
            self.factors_ = Factors.of(*training.with_users(state.y), ratings)
        return self

    def _rounds(self, training: ImplicitTraining[Steps], number: int) -> Iterator[Round[XY]]:
        """Yield so many rounds; RoundAborted after the last if every sum was lost."""
        learnt, lost = False, ""
        for one in self._loop(number).iterate(training, training.start):
            learnt, lost = learnt or one.total is not None, one.record.aborted or lost
            yield one
        if not learnt:
            raise _nothing_learnt(lost)

    def _confidence(self, ratings: Ratings) -> Confidence:
        """Return what the ratings of items with raters enough say.

        A count that is lost is repeated.

        Raises
        ------
        DataError, SettingError
            As of `Implicit.confidence`; also if no item has raters enough.
        RoundAborted
            If it is lost `epochs` times.
        """
        confidence = self.model.confidence(ratings)  # of all: the checks come first
        if self.min_raters == 1:
            return confidence
        users, lost = np.arange(ratings.n_users), ""
        for number in range(1, self.epochs + 1):
            try:
                raters, _ = self._loop(self.epochs).count(ratings, number, users)
            except RoundAborted as error:
                lost = str(error)
                continue
            enough = raters.at_least(self.min_raters)[ratings.items]
            if not enough.any():
                raise DataError(
                    f"no item of {ratings.name} was counted {self.min_raters} raters: lower "
                    "min_raters"
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
