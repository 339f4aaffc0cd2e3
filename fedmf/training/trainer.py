"""Federated training of factors, with `FedMF`, `FedALS` or your own model.

After each round the trainer records errors. The trainer can compute errors because a simulation
has all ratings. In a deployment the users would have to sum their squared errors securely, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Self

import numpy as np

from fedmf.aggregate import Aggregate
from fedmf.aggregate.vectors import Rows, Table
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.data.checks import check_parts
from fedmf.data.internal import internal, to_public
from fedmf.errors import DataError, Diverged, SettingError
from fedmf.models import Factors, FederatedModel, FedMF
from fedmf.models.federated import Raters
from fedmf.models.warm import warm
from fedmf.settings import BelowOne, Count, Has, Seed
from fedmf.training.history import Floats, History, RoundRecord, mae, rmse
from fedmf.training.loop import Loop, Training, check_learnt, keep
from fedmf.training.schedule import Callbacks, Draw, Scheduled, Summing
from fedmf.training.steps import LocalSteps

SUCH = "FedMF(); models of features, such as FedLR(), are for ContextTrainer"

# Share of the elements sent in a round that may be clipped. A gradient beyond the clip belongs
# to a rating far from the prediction, which is rare. Many clipped gradients show too small a
# clip, or a training that diverges. On ml-100k at most .0005 exceed a clip of 2, an eighth of
# the default.
MOST_CLIPPED = 0.01
ROOM = 1.1  # starting factors of some spread are farther from the ratings than 0 is


class Trainer(Scheduled):
    """Trainer of a federated model on ratings; each user is a client of the aggregation.

    The ratings' own scale is mapped to the internal scale 1 to 5, and the model trains there.
    Predictions and all errors are on the ratings' own scale. A model with ``needs_mean`` also
    gets the mean rating, by one more secure sum before the first round.

    Parameters
    ----------
    model : model to train, with hyper-parameters; `FedMF()` by default
    aggregation : sum of the users' gradients; `PlainSum()` by default
    rounds : int, number of rounds, ≥ 1
    seed
        Seed of every random choice of the training, ≥ 0. The keys and masks of secure
        aggregation come from the operating system; the sum does not depend on them.
    cohort
        See `Schedule`. Models that need counts count the raters in each round for a sampled
        cohort, and only once if all users take part.
    dropout
        Probability in [0, 1) that a user drops out of a round, before the message of an evenly
        drawn phase. Users who send no masked input are not in the sum. Such users keep their
        factors, unless the model finds p_u from Q alone, like ``FedMF(update="ridge")``.
    callbacks : functions that are called with the record of each finished round

    Attributes
    ----------
    model_ : Factors, the trained model
    history_ : History, a record of each round
    """

    model_: Factors
    _former = MappingProxyType({"factors_": "model_"})

    def __init__(
        self,
        model: Annotated[FederatedModel, Has("local_steps", SUCH)] | None = None,
        aggregation: Summing | None = None,
        *,
        rounds: Count = 40,
        seed: Seed = 0,
        cohort: int | float | None = None,
        dropout: BelowOne = 0.0,
        callbacks: Callbacks = (),
    ) -> None:
        super().__init__(aggregation, seed=seed, cohort=cohort, dropout=dropout)
        self.model: FederatedModel = FedMF() if model is None else model
        self.rounds, self.callbacks = rounds, callbacks
        self.__post_init__()

    def fit(
        self, train: Ratings, test: Ratings | None = None, *, start: Factors | None = None
    ) -> Self:
        """Train from the start, and measure the errors after each round.

        A KeyboardInterrupt ends the training early and keeps the finished rounds;
        ``history_.interrupted`` is then True. After any other error, also of a callback, the
        trainer has no fitted attributes.

        Parameters
        ----------
        train, test : training and test part over the same users and items; see `Split`
        start
            Earlier factors to continue from, perhaps with new ratings. Users and items are
            matched by id; users and items that `start` lacks begin at random. Cohorts and
            dropouts are drawn as for rounds 1, 2, …; another seed gives other cohorts and
            dropouts.

        Raises
        ------
        ModelError
            If `start` does not fit the model, or knows no item of the ratings.
        SettingError
            If the cohort does not fit the data, or the parts differ in users or items. Also if
            the aggregation clipped a vector and the model cannot bear that, or clipped many
            elements. `Diverged` if the factors or errors leave the scale.
        DataError
            If `train` or `test` has no rating, or no item has enough raters.
        RoundAborted
            If the mean rating cannot be summed, or every round was aborted.
        """
        self._forget()
        check_parts(train, test)
        self.schedule.size(train.n_users)  # raises before any work
        rest = None if test is None else internal(test)
        return self.fit_internal(self.model, internal(train), rest, train.scale, start)

    def fit_internal(
        self,
        model: FederatedModel,
        train: Ratings,
        test: Ratings | None,
        scale: tuple[float, float],
        start: Factors | None = None,
    ) -> Self:
        """Train on ratings, or residuals, that are in units of the internal scale already.

        `model` is the trainer's model, perhaps at a known mean. Predictions and errors are
        mapped to the public `scale`. For `start`, errors and interrupts see `fit`.
        """
        self._forget()
        loop, interrupted = Loop(self.aggregation, self.schedule, self.rounds), False
        try:
            if getattr(model, "needs_mean", False):
                model = model.at_mean(loop.means(train)[0])
        except KeyboardInterrupt:
            interrupted = True
        p, q = model.initial(train, self.schedule.rng(Draw.START))
        p, q = warm(p, q, start, train, scale=scale)
        check_finite(model, p, q)
        first = Factors.of(p, q, train, scale=scale)
        if interrupted:
            self.model_, self.history_ = first, History(interrupted=True)
            return self

        def report(record: RoundRecord) -> None:
            if self.cohort is None:  # the raters of all rounds are the same
                self._check_trained(model, train, History((record,)))
            self.report(record)

        rounds = loop.iterate(FactorTraining(model, train, test), first)
        factors, history = keep(rounds, first, report)
        check_learnt(history)
        self._check_trained(model, train, history)
        self.model_, self.history_ = factors, history
        return self

    @staticmethod
    def _check_trained(model: FederatedModel, train: Ratings, history: History) -> None:
        """Raise DataError if there was a sum, and no sum trained an item."""
        trained = [one.trained_items for one in history if one.aborted is None]
        if trained and all(number == 0 for number in trained):
            least = getattr(model, "min_raters", "enough")
            raise DataError(
                f"no item of {train.name} has {least} raters in a round: lower min_raters"
            )


class FactorSteps(LocalSteps):
    """Local steps of a `FederatedModel`: each user computes a new p_u and a message.

    The new p_u is stored until the sum is known; `factors` stays unchanged.

    Parameters
    ----------
    model : model with hyper-parameters
    factors : P and Q before the round
    ratings : ratings of all users
    raters : number of raters of each item; None if the raters are not counted
    """

    def __init__(
        self, model: FederatedModel, factors: Factors, ratings: Ratings, raters: Raters | None
    ) -> None:
        super().__init__(ratings, (ratings.n_items, model.width))
        self.model, self.factors, self.raters = model, factors, raters
        self._trained = model.trained_items(raters, ratings.n_items)
        self._stepped = factors.user_factors.copy()

    def rows(self, block: Block) -> Rows:
        """Return the rows of a block's users; raises SettingError if a number is not finite."""
        p, q = self.factors.user_factors[block.users], self.factors.item_factors
        stepped, rows = self.model.local_steps(q, p, block, self._trained)
        self._stepped[block.users] = stepped  # repeatable, so a block may be computed twice
        check_finite(self.model, rows.values)
        return rows

    def moved(self, survivors: Sequence[int]) -> Floats:
        """Return P with the new p_u of the survivors, the users in the sum."""
        p, users = self.factors.user_factors.copy(), np.array(survivors)
        p[users] = self._stepped[users]
        return p

    def solved(self, q: Floats) -> Floats:
        """Return P after every user has solved for p_u with Q."""
        p = self.factors.user_factors.copy()
        for block in self.blocks(range(self.ratings.n_users)):
            p[block.users] = self.model.find_users(q, p[block.users], block)
        return p


class FactorTraining(Training[Factors, FactorSteps]):
    """Training of a `FederatedModel`, with errors on a test part if given.

    Both parts are on the internal scale. A state has the public scale, for the errors.
    """

    def __init__(
        self, model: FederatedModel, ratings: Ratings, test: Ratings | None = None
    ) -> None:
        self.model, self.ratings, self.test = model, ratings, test
        self.needs_counts = model.needs_counts
        kind = type(model).__name__
        self.clip_remedy = (
            None if model.bears_clipping else f"{kind} does not bear that: raise its clip"
        )

    def excess(self, total: Aggregate, raters: Raters | None) -> float:
        """Return the clipped elements less `MOST_CLIPPED` of the sent; see `Training`."""
        there = np.zeros(self.ratings.n_users, dtype=np.bool_)
        there[list(total.survivors)] = True
        trained = self.model.trained_items(raters, self.ratings.n_items)
        rows = np.count_nonzero(there[self.ratings.users] & trained[self.ratings.items])
        return float(total.clipped - MOST_CLIPPED * rows * self.model.width)

    def check_excess(self, clipped: int, excess: float) -> None:
        """Raise SettingError if more than `MOST_CLIPPED` of the sent elements were clipped."""
        if excess > 0:
            raise SettingError(
                f"{clipped} elements of the users' vectors, more than {MOST_CLIPPED:.0%}, are "
                f"beyond the aggregation's clip: raise that; if it is large, "
                f"{self.model.remedy}"
            )

    def local_steps(self, state: Factors, raters: Raters | None) -> FactorSteps:
        """Return the local steps of a round; see `Training`."""
        return FactorSteps(self.model, state, self.ratings, raters)

    def server_step(self, state: Factors, steps: FactorSteps, total: Aggregate) -> Factors:
        """Return the factors after the round: Q after the server's step, and the new P."""
        model, table = self.model, total.sum.reshape(steps.shape)
        q = model.server_step(state.item_factors, table, steps.raters)
        check_finite(model, q)  # before users solve with it
        # an exact p_u follows from Q alone, so users who dropped out can solve, too
        p = steps.solved(q) if model.solves_users else steps.moved(total.survivors)
        check_finite(model, p)
        return replace(state, user_factors=p, item_factors=q)

    def measured(
        self, record: RoundRecord, state: Factors, raters: Raters | None
    ) -> RoundRecord:
        """Return the record with the errors on the training ratings and any test ratings."""
        trained = None if raters is None else self.model.trained_items(raters, state.n_items)
        values, guesses = _public(state, self.ratings)
        error = rmse(values, guesses)
        record = replace(
            record,
            trained_items=None if trained is None else int(trained.sum()),
            train_rmse=error,
        )
        check_finite(self.model, np.array(error))
        self._check_error(error, state.scale)
        if self.test is None:
            return record
        values, guesses = _public(state, self.test)
        return replace(record, test_rmse=rmse(values, guesses), test_mae=mae(values, guesses))

    def _check_error(self, error: float, scale: tuple[float, float] | None) -> None:
        """Raise `Diverged` if a training error is beyond the width of the public scale.

        Factors around zero predict 0 on the internal scale until they have learnt. That may be
        farther from high ratings than the scale is wide, and is no divergence.
        """
        if scale is None or error <= scale[1] - scale[0]:
            return
        values = self.ratings.values
        unlearnt = rmse(to_public(values, scale), to_public(np.zeros_like(values), scale))
        if error > ROOM * unlearnt:
            raise Diverged(
                f"the training diverges, with an error of {error:.3g} on a scale from "
                f"{scale[0]:g} to {scale[1]:g}: {self.model.remedy}"
            )


def _public(state: Factors, ratings: Ratings) -> tuple[Floats, Floats]:
    """Return ratings given on the internal scale, and predictions, both on the public scale."""
    values = ratings.values if state.scale is None else to_public(ratings.values, state.scale)
    return values, state.predict(ratings.users, ratings.items)


def check_finite(model: FederatedModel, *tables: Table) -> None:
    """Validate that all numbers are finite; raises `Diverged` with the model's remedy."""
    if not all(np.isfinite(table).all() for table in tables):
        raise Diverged(f"the factors diverge: {model.remedy}")
