"""Who takes part in a round, and who vanishes in which phase: drawn from the seed alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate import PHASES, Aggregation, Phase, PlainSum
from fedmf.errors import SettingError
from fedmf.settings import check_able, check_whole, is_number, part_of, plain_numbers

__all__ = ["Draw", "Schedule", "Scheduled"]

SMALLEST_COHORT = 3


class Draw(IntEnum):
    """What random numbers are drawn for."""

    START = 0
    COHORT = 1
    COUNT_DROPOUTS = 2
    DROPOUTS = 3


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The random choices of a training; each purpose and round has a generator of its own.

    So they do not depend on what happened before, nor on how the sums are made.

    Parameters
    ----------
    seed
        At least 0. Whoever knows it knows the cohort of every round: where sampling is to help
        privacy, it must be as secret as a key, and as hard to guess.
    cohort
        A number of users of at least 3, a fraction of them in (0, 1], or None for everyone.
        A fraction is rounded up to whole users, so that the part of them that takes part,
        the rate `fedmf.models.noise_multiplier` wants, is ``size(n_users) / n_users``.
    dropout
        The probability in [0, 1) with which a user vanishes in a round.

    Raises
    ------
    SettingError
        If a setting is out of range.
    """

    seed: int = 0
    cohort: int | float | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_whole(0, seed=self.seed)
        if not is_number(self.dropout) or not 0 <= self.dropout < 1:
            raise SettingError(f"dropout = {self.dropout!r} must be a probability in [0, 1)")
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
                f"cohort = {self.cohort!r} users are too few to hide in a sum: take at least "
                f"{SMALLEST_COHORT}, or a fraction such as 0.5"
            )

    def rng(self, draw: Draw, number: int = 0) -> np.random.Generator:
        """Return the generator of a purpose in round `number`."""
        return np.random.default_rng((self.seed, draw, number))

    def size(self, n_users: int) -> int:
        """Return how many of `n_users` take part in each round.

        Raises
        ------
        SettingError
            If there are not enough of them.
        """
        size = n_users if self.cohort is None else self.cohort
        if isinstance(size, float):
            size = part_of(size, n_users)
        if not SMALLEST_COHORT <= size <= n_users:
            raise SettingError(
                f"cohort = {self.cohort!r} makes {size} of {n_users} users; a round takes at "
                f"least {SMALLEST_COHORT} and at most all of them"
            )
        return size

    def users(self, number: int, n_users: int) -> NDArray[np.int64]:
        """Return the users of round `number`, ascending; SettingError as of `size`."""
        drawn = self.rng(Draw.COHORT, number).permutation(n_users)[: self.size(n_users)]
        return np.sort(drawn).astype(np.int64)

    def dropouts(self, draw: Draw, number: int, users: NDArray[np.int64]) -> dict[int, Phase]:
        """Return who vanishes in round `number`, and before the message of which phase.

        Every user does with the same probability, and every phase is as likely.
        """
        rng = self.rng(draw, number)
        gone = rng.random(users.size) < self.dropout
        phases = rng.integers(len(PHASES), size=users.size)
        return {
            int(user): PHASES[phase]
            for user, phase in zip(users[gone], phases[gone], strict=True)
        }


class Scheduled:
    """What is trained in rounds, each a sum over the users of a schedule.

    Parameters
    ----------
    aggregation
        How the users' vectors are summed; None for `PlainSum`.
    rounds
        How many, at least 1.
    seed, cohort, dropout
        As of `Schedule`, which keeps them.

    Raises
    ------
    SettingError
        If a setting is out of range, or the aggregation none.
    """

    model: object

    def __init__(
        self,
        aggregation: Aggregation | None,
        *,
        rounds: int,
        seed: int,
        cohort: int | float | None,
        dropout: float,
    ) -> None:
        self.aggregation: Aggregation = PlainSum() if aggregation is None else aggregation
        check_able("sum", "SecAggSum()", aggregation=self.aggregation)
        check_whole(rounds=rounds)
        self.rounds = rounds
        plain_numbers(self)
        self.schedule = Schedule(seed=seed, cohort=cohort, dropout=dropout)

    @property
    def seed(self) -> int:
        """Of every random choice that training makes."""
        return self.schedule.seed

    @property
    def cohort(self) -> int | float | None:
        """Who takes part in a round: a number of users, a fraction of them, or everyone."""
        return self.schedule.cohort

    @property
    def dropout(self) -> float:
        """The probability with which a user vanishes in a round."""
        return self.schedule.dropout

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.model!r}, {self.aggregation!r}, "
            f"rounds={self.rounds}, seed={self.seed}, cohort={self.cohort}, "
            f"dropout={self.dropout})"
        )
