"""Training loop: cohort, local steps, sum, server step and record, round by round.

Each round's cohort and dropouts are drawn from the seed and the number of the round alone. So
two trainings with the same seed and different aggregations have the same cohorts and dropouts,
and must give the same integers.

A `Training` never changes a state in place. So a round that is aborted or interrupted leaves
the state and all users unchanged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from fedmf.aggregate import Aggregate, Aggregation, RoundAborted
from fedmf.data import Ratings
from fedmf.errors import SettingError
from fedmf.models.federated import Raters
from fedmf.training.history import History, RoundRecord
from fedmf.training.schedule import Draw, Schedule
from fedmf.training.steps import LocalSteps, Marks, Means, Users

State = TypeVar("State")
Steps = TypeVar("Steps", bound=LocalSteps)

COSTS = ("client_seconds", "server_seconds", "key_holder_seconds", "bytes_up", "bytes_down")


Counted = tuple[Raters, Aggregate]


class Training(ABC, Generic[State, Steps]):
    """Base class of the steps of a round, from one state of the model to the next.

    Attributes
    ----------
    ratings : ratings of all users
    needs_counts : True if the raters of each item must be counted before the first sum
    clip_remedy : remedy if the aggregation clipped an element; None if clipping is harmless
    """

    ratings: Ratings
    needs_counts: bool = False
    clip_remedy: str | None = "raise that"

    def count(self, of: Callable[..., Counted]) -> tuple[Raters, Sequence[Aggregate]]:
        """Count the raters before the first sum, or before the sums of each cohort.

        ``of(ratings, name)`` counts the raters by a separate sum, "count" by default. Returns
        the raters and all sums.
        """
        raters, total = of(self.ratings)
        return raters, (total,)

    @abstractmethod
    def local_steps(self, state: State, raters: Raters | None) -> Steps:
        """Return the local steps of a round; `raters` is None if nothing is counted."""

    @abstractmethod
    def server_step(self, state: State, steps: Steps, total: Aggregate) -> State:
        """Return the state after the server's step; `total` is the sum of users' vectors."""

    def check_clipping(self, total: Aggregate) -> None:
        """Raise SettingError if elements were clipped and the model does not bear that."""
        if total.clipped and self.clip_remedy is not None:
            raise SettingError(
                f"{total.clipped} elements of the users' vectors are beyond the aggregation's "
                f"clip: {self.clip_remedy}"
            )

    def excess(self, total: Aggregate, raters: Raters | None) -> float:
        """Return the number of clipped elements beyond the number that a step bears."""
        return 0.0

    def check_excess(self, clipped: int, excess: float) -> None:
        """Raise SettingError if `excess` is positive; `clipped` is the number of elements."""

    def round_over(self, state: State, number: int) -> State:
        """Return the state at the end of round `number`; called for aborted rounds, too."""
        return state

    def measured(self, record: RoundRecord, state: State, raters: Raters | None) -> RoundRecord:
        """Return the record of a round, with the errors of the state after the round added."""
        return record


class Round(NamedTuple, Generic[State]):
    """Finished round: the new state, the raters or None, the record, and the sum or None."""

    state: State
    raters: Raters | None
    record: RoundRecord
    total: Aggregate | None


@dataclass(frozen=True, eq=False)
class Loop:
    """Training loop of `rounds` ≥ 1 rounds; `session` is the prefix of the sums' names."""

    aggregation: Aggregation
    schedule: Schedule
    rounds: int
    session: str = "fedmf"

    def iterate(
        self,
        training: Training[State, Steps],
        start: State,
        first: int = 1,
        raters: Raters | None = None,
    ) -> Iterator[Round[State]]:
        """Yield each finished round; an interrupt loses only the current round.

        `first` is the number of the first round, and `raters` are the raters of the round
        before.
        """
        state = start
        for number in range(first, self.rounds + 1):
            with np.errstate(all="ignore"):  # trainings check for infinite numbers
                done = self._round(training, number, state, raters)
            state, raters = done.state, done.raters
            yield done

    def count(
        self, number: int, users: Users, ratings: Ratings, name: str = "count"
    ) -> Counted:
        """Let `users`, ascending, count the raters of each item by a separate sum.

        Returns the raters and the sum; raises RoundAborted if too many users drop out.
        """
        counted = self.aggregation.count(
            Marks(ratings, (ratings.n_items, 1)).vectors(users),
            dropouts=self.schedule.dropouts(Draw.COUNT_DROPOUTS, number, users),
            session=f"{self.session} {name} {number}".encode(),
        )
        return Raters(counted.integers, len(counted.survivors) / users.size), counted

    def means(self, ratings: Ratings) -> tuple[float, float]:
        """Return the mean rating, and the mean number of ratings of a user, by a sum.

        The sum is over the users of the first round; see `Means`. An aborted sum is retried;
        after `rounds` aborted sums RoundAborted is raised. Raises SettingError if the sum is
        clipped.
        """
        users, means = self.schedule.users(1, ratings.n_users), Means(ratings)
        for number in range(1, self.rounds + 1):
            try:
                total = self.aggregation.sum(
                    means.vectors(users),
                    dropouts=self.schedule.dropouts(Draw.MEAN_DROPOUTS, number, users),
                    session=f"{self.session} mean {number}".encode(),
                )
            except RoundAborted:
                if number == self.rounds:
                    raise
            else:
                break
        return means.mean(total), means.count(total)

    def _round(
        self, training: Training[State, Steps], number: int, state: State, raters: Raters | None
    ) -> Round[State]:
        start = perf_counter()
        n_users = training.ratings.n_users
        users = self.schedule.users(number, n_users)
        if users.size < n_users:
            raters = None  # each cohort counts the raters in that cohort
        total, aborted = None, None
        counted: Sequence[Aggregate] = ()
        try:
            if raters is None and training.needs_counts:
                raters, counted = training.count(partial(self.count, number, users))
            steps = training.local_steps(state, raters)
            total = self.aggregation.sum(
                steps.vectors(users),
                dropouts=self.schedule.dropouts(Draw.DROPOUTS, number, users),
                session=f"{self.session} sum {number}".encode(),
            )
        except RoundAborted as error:
            aborted = str(error)
        else:
            training.check_clipping(total)
            training.check_excess(total.clipped, training.excess(total, raters))
            state = training.server_step(state, steps, total)
        state = training.round_over(state, number)
        record = record_of(number, users.size, total, counted, aborted=aborted)
        record = training.measured(record, state, raters)
        record = replace(record, seconds=perf_counter() - start)
        return Round(state, raters, record, total)


def record_of(
    number: int,
    cohort: int,
    total: Aggregate | None,
    counted: Sequence[Aggregate] = (),
    **more: Any,
) -> RoundRecord:
    """Return the record of a round, given the sum or None, and the counts of raters.

    `more` are further attributes of the record.
    """
    sums = [*counted, *([] if total is None else [total])]
    costs = {name: sum(getattr(one, name) for one in sums) for name in (*COSTS, "clipped")}
    return RoundRecord(
        round=number,
        cohort=cohort,
        survivors=0 if total is None else len(total.survivors),
        digest=None if total is None else total.digest,
        count_digest=" ".join(one.digest for one in counted) or None,
        **costs | more,
    )


def keep(
    rounds: Iterable[Round[State]], start: State, report: Callable[[RoundRecord], None]
) -> tuple[State, History]:
    """Run all `rounds` of `Loop.iterate`; return the last state and the history.

    A KeyboardInterrupt ends the training early and keeps the finished rounds. The state is
    `start` if no round was finished. `report` is called with the record of each round.
    """
    done: tuple[State, tuple[RoundRecord, ...]] = (start, ())
    interrupted = False
    try:
        for one in rounds:
            # a single assignment: an interrupt cannot separate state and records
            done = (one.state, (*done[1], one.record))
            report(one.record)
    except KeyboardInterrupt:
        interrupted = True
    return done[0], History(done[1], interrupted)


def check_learnt(history: History) -> None:
    """Raise RoundAborted if every round was aborted, unless Ctrl-C ended the training."""
    if not history.interrupted and all(one.aborted is not None for one in history):
        raise RoundAborted(f"every sum was aborted, the last for: {history.last.aborted}")
