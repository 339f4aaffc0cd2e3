"""Base classes of estimators that learn in rounds, and the random choices of the rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate import PHASES, Aggregation, Phase, PlainSum
from fedmf.errors import SettingError
from fedmf.models.estimator import Estimator, FormerProgress
from fedmf.settings import BelowOne, Has, Seed, Settings, is_number, part_of
from fedmf.training.history import History, RoundRecord

SMALLEST_COHORT = 3
FIRST = ("model", "aggregation")  # settings shown without their names

Summing = Annotated[Aggregation, Has("sum", "SecAggSum()")]
"""Declared setting of a trainer: an object with the method ``sum``, such as SecAggSum()."""


class Functions:
    """Declaration of a setting that must be a list or tuple of functions."""

    def check(self, name: str, value: object) -> None:
        """Raise SettingError unless `value` is a list or tuple of functions."""
        if not isinstance(value, Sequence) or not all(map(callable, value)):
            raise SettingError(
                f"{name} = {value!r} must be a list of functions, such as [print]"
            )


Callbacks = Annotated[Sequence[Callable[[RoundRecord], None]], Functions()]
"""Declared setting of an estimator: functions that take the record of each finished round.

Sums have no records, and report by `fedmf.aggregate.aggregation.Progress`.
"""


class Draw(IntEnum):
    """Purposes of random numbers; each purpose has a separate generator."""

    START = 0
    COHORT = 1
    COUNT_DROPOUTS = 2
    DROPOUTS = 3
    MEAN_DROPOUTS = 4
    USERS = 5
    SERVER = 6
    BLOCK = 7


@dataclass(frozen=True, kw_only=True)
class Schedule(Settings):
    """Random choices of a training: the users of each round, and the dropouts with their phase.

    The choices do not depend on the state of the training or on the aggregation.

    Parameters
    ----------
    seed
        Seed, ≥ 0. The seed reveals the cohort of every round.
    cohort
        Users in a round: an int is their number, at least 3, a float is a fraction of all users
        in (0, 1], None is all users. A fraction is rounded up to whole users.
    dropout : float, probability that a user drops out of a round, in [0, 1)
    """

    seed: Seed = 0
    cohort: int | float | None = None
    dropout: BelowOne = 0.0

    def _check(self) -> None:
        if self.cohort is None:
            return
        if not is_number(self.cohort) or (
            isinstance(self.cohort, float) and not 0 < self.cohort <= 1
        ):
            raise SettingError(
                f"cohort = {self.cohort!r} must be a fraction in (0, 1], or a whole number of "
                "users"
            )
        if isinstance(self.cohort, int) and self.cohort < SMALLEST_COHORT:
            raise SettingError(
                f"cohort = {self.cohort!r} is too small to hide a user: choose at least "
                f"{SMALLEST_COHORT}, or a fraction such as 0.5"
            )

    def rng(self, draw: Draw, number: int = 0) -> np.random.Generator:
        """Return a new generator for a purpose in round `number`, seeded by both."""
        return np.random.default_rng((self.seed, draw, number))

    def size(self, n_users: int) -> int:
        """Return the number of users in a round; SettingError unless from 3 to `n_users`.

        Raises SettingError for fewer than 3 users, too.
        """
        if n_users < SMALLEST_COHORT:
            raise SettingError(
                f"ratings of {n_users} user{'s' * (n_users != 1)} are too few: a sum over "
                f"fewer than {SMALLEST_COHORT} hides no user, so pass ratings of more users"
            )
        size = n_users if self.cohort is None else self.cohort
        if isinstance(size, float):
            size = part_of(size, n_users)
        if not SMALLEST_COHORT <= size <= n_users:
            raise SettingError(
                f"cohort = {self.cohort!r} gives a round {size} of {n_users} users: choose "
                f"from {SMALLEST_COHORT} to all of them"
            )
        return size

    def users(self, number: int, n_users: int) -> NDArray[np.int64]:
        """Return the users of round `number`, ascending; for SettingError see `size`.

        If `cohort` is None, all users are returned, even fewer than 3.
        """
        if self.cohort is None:
            return np.arange(n_users)
        drawn = self.rng(Draw.COHORT, number).permutation(n_users)[: self.size(n_users)]
        return np.sort(drawn).astype(np.int64)

    def dropouts(self, draw: Draw, number: int, users: NDArray[np.int64]) -> dict[int, Phase]:
        """Return the users who drop out of round `number`, each with the first missed phase.

        Every user drops out with probability `dropout`, and all phases are equally likely.
        """
        rng = self.rng(draw, number)
        gone = rng.random(users.size) < self.dropout
        phases = rng.integers(len(PHASES), size=users.size)
        return {
            int(user): PHASES[phase]
            for user, phase in zip(users[gone], phases[gone], strict=True)
        }


class Iterative(Estimator):
    """Base class of estimators that learn in rounds.

    Attributes
    ----------
    history_ : History, a record of each round
    """

    rounds: int
    callbacks: Sequence[Callable[[RoundRecord], None]] = ()
    history_: History

    def report(self, record: RoundRecord) -> None:
        """Call the callbacks with the record of a finished round."""
        for callback in self.callbacks:
            if isinstance(callback, FormerProgress):
                callback(record, self.rounds * getattr(self, "steps", 1))
            else:
                callback(record)


class Scheduled(Iterative):
    """Base class of trainers; each round sums the vectors of users."""

    model: object

    def __init__(
        self,
        aggregation: Aggregation | None,
        *,
        seed: int,
        dropout: float,
        cohort: int | float | None = None,
    ) -> None:
        self.aggregation: Aggregation = PlainSum() if aggregation is None else aggregation
        self.seed, self.cohort, self.dropout = seed, cohort, dropout
        _ = self.schedule  # raises if a setting is out of range

    @property
    def schedule(self) -> Schedule:
        """Random choices of the training, which the seed determines."""
        return Schedule(seed=self.seed, cohort=self.cohort, dropout=self.dropout)

    def __repr__(self) -> str:
        names = self._names()
        first = [repr(getattr(self, name)) for name in FIRST if name in names]
        shown = [name for name in names if name not in (*FIRST, "callbacks")]
        rest = [f"{one}={getattr(self, one)!r}" for one in shown if hasattr(self, one)]
        return f"{type(self).__name__}({', '.join(first + rest)})"
