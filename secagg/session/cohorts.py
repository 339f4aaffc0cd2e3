"""Cohorts of a session's rounds: all members that are present, some of them, or given ones."""

from __future__ import annotations

from collections.abc import Collection, Set
from secrets import SystemRandom

from secagg._check import check_integer
from secagg.errors import ParameterError
from secagg.protocol.client_ids import ClientKey, Names
from secagg.session.presence import Note, Presence


class Choice:
    """Choice of the cohort of one round.

    Parameters
    ----------
    cohort : int or collection of clients, optional
        Number of members to choose at random, or the members to wait for. None: all.
    members : set of int
        Members of the session.
    least, most : int
        Smallest and largest size of a cohort.

    Raises
    ------
    ParameterError
        The cohort is too small or too large, or has a client that is no member.
    """

    def __init__(
        self,
        cohort: int | Collection[ClientKey] | None,
        members: Set[int],
        least: int,
        most: int,
    ) -> None:
        self._pool, self._size = frozenset(members), most
        if cohort is None:
            return
        if isinstance(cohort, Collection):
            self._pool = frozenset(Names().keys(cohort))
            if strangers := self._pool - members:
                raise ParameterError(
                    f"client {min(strangers)} of the cohort is no member of the session; pass "
                    "it to Session(members=…)"
                )
            check_integer("the size of the cohort", len(self._pool), least, most)
        else:
            check_integer("cohort", cohort, least, most)
            self._size = int(cohort)

    async def among(
        self, presence: Presence, away: Set[int], least: int, seconds: float, note: Note
    ) -> tuple[int, ...]:
        """Wait for members of the pool that are not in `away`; return a cohort, ascending.

        Raise TooFewSurvivors if fewer than `least` members are present at the deadline.
        """
        here = await presence.gather(self._pool - away, self._size, least, seconds, note)
        chosen = SystemRandom().sample(sorted(here), min(len(here), self._size))
        return tuple(sorted(chosen))
