"""Result of a member: the rounds and one-shot sums that it answered to the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self


class Completed(int):
    """Number of rounds and reports of a member, which also has the numbers of each.

    Attributes
    ----------
    rounds : tuple of int
        Numbers of the rounds whose last answer the server acknowledged, without those that
        failed and were tried again without this member.
    reports : tuple of int
        Numbers of the one-shot sums whose report the server acknowledged. The helpers open the
        sum later, and no member hears whether they did.
    """

    rounds: tuple[int, ...]
    reports: tuple[int, ...]

    def __new__(cls, rounds: Iterable[int] = (), reports: Iterable[int] = ()) -> Self:
        """Return the number of all of them."""
        found = tuple(rounds), tuple(reports)
        made = super().__new__(cls, sum(map(len, found)))
        made.rounds, made.reports = found
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[int, ...], tuple[int, ...]]]:
        """Keep the numbers in copies and pickles, which would make an int anew."""
        return type(self), (self.rounds, self.reports)
