"""Cohorts and dropouts of the rounds, drawn from the seed alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate import PHASES, Aggregation, Phase
from fedmf.errors import SettingError
from fedmf.models.recommender import Estimator
from fedmf.settings import Fraction, Has, Seed, Settings, is_number, part_of
from fedmf.training.history import History

__all__ = ["Draw", "Schedule", "Scheduled", "Summing"]

SMALLEST_COHORT = 3
FIRST = ("model", "aggregation")  # settings shown without their names
REPORTS = ("callbacks", "progress")  # settings without influence on the result

Summing = Annotated[Aggregation, Has("sum", "SecAggSum()")]
"""An aggregation as a declared setting."""


class Draw(IntEnum):
    """Purpose of random numbers."""

    START = 0
    COHORT = 1
    COUNT_DROPOUTS = 2
    DROPOUTS = 3


@dataclass(frozen=True, kw_only=True)
class Schedule(Settings):
    """Random choices of a training, independent of its state and of the aggregation.

    Parameters
    ----------
    seed
        Seed, ≥ 0. It reveals the cohort of every round. If privacy relies on sampling, it must
        be as secret as a key, and as hard to guess.
    cohort
        A number of users of at least 3, a fraction of them in (0, 1], or None for all. A
        fraction is rounded up to whole users: `fedmf.models.noise_multiplier` takes the rate
        ``size(n_users) / n_users``.
    dropout : float, probability with which a user drops out of a round, in [0, 1)
    """

    seed: Seed = 0
    cohort: int | float | None = None
    dropout: Fraction = 0.0

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
        """Return the generator of a purpose in round `number`."""
        return np.random.default_rng((self.seed, draw, number))

    def size(self, n_users: int) -> int:
        """Return how many of `n_users` take part in a round; raises SettingError if too few."""
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
        """Return the users of round `number`, ascending; raises SettingError as `size` does.

        Without a cohort that is everyone, however few.
        """
        if self.cohort is None:
            return np.arange(n_users)
        drawn = self.rng(Draw.COHORT, number).permutation(n_users)[: self.size(n_users)]
        return np.sort(drawn).astype(np.int64)

    def dropouts(self, draw: Draw, number: int, users: NDArray[np.int64]) -> dict[int, Phase]:
        """Return the dropouts of round `number`, each with the first phase that they miss.

        Every user drops out with the same probability, and every phase is as likely.
        """
        rng = self.rng(draw, number)
        gone = rng.random(users.size) < self.dropout
        phases = rng.integers(len(PHASES), size=users.size)
        return {
            int(user): PHASES[phase]
            for user, phase in zip(users[gone], phases[gone], strict=True)
        }


class Scheduled(Estimator):
    """Estimator that learns in rounds, each a sum over the users of a `Schedule`.

    Attributes
    ----------
    history_ : History, a record of each round
    """

    model: object
    history_: History

    def __init__(
        self,
        aggregation: Aggregation,
        *,
        seed: int,
        cohort: int | float | None,
        dropout: float,
    ) -> None:
        self.aggregation = aggregation
        self.schedule = Schedule(seed=seed, cohort=cohort, dropout=dropout)

    @property
    def seed(self) -> int:
        """Seed of every random choice that training makes."""
        return self.schedule.seed

    @property
    def cohort(self) -> int | float | None:
        """Users in a round: a number, a fraction, or None for all."""
        return self.schedule.cohort

    @property
    def dropout(self) -> float:
        """Probability with which a user drops out of a round."""
        return self.schedule.dropout

    def __repr__(self) -> str:
        shown = [name for name in self._names() if name not in FIRST + REPORTS]
        rest = [f"{one}={getattr(self, one)!r}" for one in shown if hasattr(self, one)]
        return f"{type(self).__name__}({self.model!r}, {self.aggregation!r}, {', '.join(rest)})"
