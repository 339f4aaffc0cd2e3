"""Result of a member: the rounds and one-shot sums that the member completed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self


class Completed(int):
    """Count of a member's completed rounds and reports, with the numbers of both.

    Attributes
    ----------
    rounds : tuple of int
        Numbers of the rounds with an acknowledged last answer. A round does not count if the
        member began a later attempt at the round and did not complete the later attempt.
    reports : tuple of int
        Numbers of the one-shot sums with an acknowledged report. The helpers open the sum
        later, and no member learns the outcome.
    """

    rounds: tuple[int, ...]
    reports: tuple[int, ...]

    def __new__(cls, rounds: Iterable[int] = (), reports: Iterable[int] = ()) -> Self:
        """Return the total count, with the numbers of both."""
        found = tuple(rounds), tuple(reports)
        made = super().__new__(cls, sum(map(len, found)))
        made.rounds, made.reports = found
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return class and arguments, so that copies and pickles keep the numbers."""
        return type(self), (self.rounds, self.reports)
