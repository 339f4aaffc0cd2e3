"""Common part of `FCF` and `FederatedCF`, and exact CF from secure sums.

Raters are counted once, then a round is one sum. Users of `FederatedCF` send moments of x_u
instead of gradients.

For y_i in eq. 9 (Ammad-ud-din et al. 2019) two sums are enough: Σ_u c_ui x_u x_uᵀ and
Σ_u c_ui p_ui x_u. As c = 1 for unrated items, the first sum has two parts. Σ_u x_u x_uᵀ is a
single table for all items; the item's raters add (c − 1) x_u x_uᵀ. So K(K+1)/2 + K numbers per
item and epoch replace K numbers in each of ten sums. The result equals the result of CF, up to
fixed-point rounding. The paper rules out eq. 9 for lack of the users' data, but sums of the
data are enough.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from fedmf.aggregate import Aggregate, PlainSum, RoundAborted
from fedmf.aggregate.vectors import Rows
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.errors import DataError
from fedmf.fcf.confidence import Confidence, Floats, Implicit, packed_products, solve, symmetric
from fedmf.models import Factors
from fedmf.models.federated import Raters
from fedmf.models.warm import warm
from fedmf.settings import BelowOne, Count, Has, Seed
from fedmf.training.loop import LocalSteps, Loop, Round, Steps, Training, keep
from fedmf.training.schedule import Callbacks, Scheduled, Summing

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
                raters, _ = self._loop(self.rounds).count(number, users, ratings)
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


BLOCK = 64  # users in a block; the moments of a block are computed at once


class FederatedCF(FederatedRecommender):
    """Alternating least squares on implicit feedback with one secure sum per epoch.

    With ``min_raters=1`` the result equals `CF` on all ratings. Once the x_u hardly change, the
    difference of two sums exposes a user who is in only one sum; see docs/privacy.md.

    Parameters
    ----------
    model, rounds, min_raters, dropout, seed, callbacks : see `FederatedRecommender`
    aggregation
        Sum of the users' moments; ``PlainSum(clip=256, fractional_bits=32)`` by default. With
        the default, numbers are rounded by at most 2^−33, and the sum of ten thousand users
        takes 55 bits.
    """

    def training(self, confidence: Confidence) -> ImplicitTraining[_Moments]:
        """Return the steps of users and server; see `FederatedRecommender`."""
        return _Alternating(self.model, confidence, self.seed)


class _Moments(LocalSteps):
    """Moments of the users' factors: the tables that users send."""

    def __init__(self, x: Floats, confidence: Confidence, *, weighed: bool) -> None:
        ratings, k = confidence.ratings, x.shape[1]
        width = k * (k + 1) // 2 + k + weighed
        super().__init__(ratings, (ratings.n_items + 1, width), BLOCK)
        self._x, self._confidence, self._weighed = x, confidence, weighed

    def rows(self, block: Block) -> Rows:
        return moments(self._x, self._confidence, block.users, weighed=self._weighed)


class _Alternating(ImplicitTraining[_Moments]):
    """Steps that solve for Y from the summed moments (eq. 9), and then for X."""

    clip_remedy = (
        "raise that, as in aggregation=SecAggSum(clip=4096, fractional_bits=32), or lower alpha"
    )

    def local_steps(self, state: XY, raters: Raters | None) -> _Moments:
        return _Moments(state.x, self.confidence, weighed=self.model.power > 0)

    def server_step(self, state: XY, steps: _Moments, total: Aggregate) -> XY:
        k = self.model.k
        n_products = k * (k + 1) // 2
        # the items' moments, then the moments of all users
        sums = self.of_all(total).reshape(steps.shape)
        normal = symmetric(sums[:-1, :n_products] + sums[-1, :n_products], k)
        penalty = self.model.penalty(sums[:-1, -1], self.ratings.n_users)
        normal += np.multiply.outer(penalty, np.eye(k))
        y = np.linalg.solve(normal, sums[:-1, n_products : n_products + k, None])[:, :, 0]
        return self.with_users(np.asarray(y))


def moments(
    x: Floats, confidence: Confidence, users: ArrayLike, *, weighed: bool = False
) -> Rows:
    """Return some users' summands of eq. 9, from X, shape (n_users, k), and the confidences.

    A user's table has m + 1 rows of k(k+1)/2 + k numbers. Row i < m is the upper triangle of
    (c − 1) x xᵀ, then c p x of item i. The last row is the upper triangle of x xᵀ, then zeros.
    If `weighed`, a last column has c − 1; the server computes the λ of each item from the sum.
    """
    numbers = np.asarray(users, dtype=np.int64)
    row, rated = confidence.of_users(numbers)
    mine = x[numbers]
    products = packed_products(mine)
    n_items = confidence.ratings.n_items
    n_products, k = products.shape[1], mine.shape[1]
    values = np.zeros((rated.size + numbers.size, n_products + k + weighed))
    of_items, of_all = values[: rated.size], values[rated.size :]
    of_items[:, :n_products] = confidence.excess[rated, None] * products[row]
    of_items[:, n_products : n_products + k] = confidence.weighted[rated, None] * mine[row]
    if weighed:
        of_items[:, -1] = confidence.excess[rated]
    of_all[:, :n_products] = products
    last = np.full(numbers.size, n_items, dtype=np.int32)
    return Rows(np.append(confidence.ratings.items[rated], last), values, n_items + 1)
