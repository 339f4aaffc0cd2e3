"""Presence of a session's members, and the choice of a cohort of present members."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Set
from contextlib import contextmanager
from secrets import SystemRandom
from typing import NamedTuple

from secagg._check import check_integer
from secagg.errors import ParameterError, TooFewSurvivors
from secagg.protocol.client_ids import ClientKey, Names
from secagg.session.clock import Clock
from secagg.session.events import Gathering, Hooks, Place
from secagg.session.exchange import closed

GATHER = "gather"
"""Phase before a round: members come."""
_RECENT = 10.0
"""A member counts as present for so many seconds after the last call of the member."""


class Attendance(NamedTuple):
    """Presence of a member.

    Attributes
    ----------
    present : bool
        True if the member waits for a task, or called a moment ago.
    seconds : float or None
        Seconds since the member came; for an absent member, seconds since the last call. None
        if the member never called.
    """

    present: bool
    seconds: float | None


class Presence:
    """Members that are present: they wait for a task, or called a moment ago."""

    def __init__(self, hooks: Hooks, clock: Clock) -> None:
        self._hooks, self._clock = hooks, clock
        self._closed = False
        self._polls: Counter[int] = Counter()
        self._seen: dict[int, float] = {}
        self._came: dict[int, float] = {}  # time of the call that ended an absence
        self._gone: set[int] = set()  # present after a next call only
        self._missed: set[int] = set()  # missed a deadline, and did not call since
        self._arrival = asyncio.Event()

    @contextmanager
    def waiting(self, client: int) -> Iterator[None]:
        """Count a member as present while the member waits for a task."""
        self.see(client)
        self._polls[client] += 1
        try:
            yield
        finally:
            self.see(client)  # while the call counts: the member was here all the time
            self._polls[client] -= 1

    def is_present(self, client: int) -> bool:
        """Return whether a member is waiting for a task, or called a moment ago."""
        if self._polls[client] > 0:
            return True
        last = -math.inf if client in self._gone else self._seen.get(client, -math.inf)
        return self._clock.now() - last <= _RECENT

    def attendance(self, client: int) -> Attendance:
        """Return whether a member is present, and since when."""
        present = self.is_present(client)
        since = (self._came if present else self._seen).get(client)
        return Attendance(present, None if since is None else self._clock.now() - since)

    def see(self, client: int) -> None:
        """Note a call of a member."""
        now = self._clock.now()
        if not self.is_present(client):
            self._came[client] = now
        self._seen[client] = now
        self._gone.discard(client)
        self._missed.discard(client)
        self._arrival.set()

    def forget(self, clients: Iterable[int]) -> None:
        """Count members as present only while they wait for a task, or after a next call.

        A member that missed a deadline may be gone, and a member that declined about to end.
        """
        self._gone.update(clients)

    def miss(self, clients: Iterable[int]) -> None:
        """Note members that missed a deadline; a member that waits for a task is not gone."""
        self._missed.update(u for u in clients if not self._polls[u])

    def expect_all(self) -> None:
        """Let the next gathering wait for all members, also after a missed deadline."""
        self._missed.clear()

    def close(self) -> None:
        """End the gathering under way."""
        self._closed = True
        self._arrival.set()

    async def choose(
        self, place: Place, pool: Collection[int], size: int, least: int, seconds: float
    ) -> tuple[int, ...]:
        """Wait for members of a pool; return at most `size` of these members, ascending.

        The wait ends when `size` of the members are present, or all but the members that missed
        a deadline of the last sum. The hooks get the event `Gathering` before the first wait,
        and whenever other members are present.

        Raises
        ------
        TooFewSurvivors
            Fewer than `least` members are present at the deadline.
        """
        here = await self._gather(place, frozenset(pool), size, least, seconds)
        # the system's generator: colluding members must not foresee a cohort
        return tuple(sorted(SystemRandom().sample(sorted(here), min(len(here), size))))

    async def _gather(
        self, place: Place, pool: frozenset[int], goal: int, least: int, seconds: float
    ) -> frozenset[int]:
        def look() -> frozenset[int]:
            return frozenset(filter(self.is_present, pool))

        def note() -> None:
            left, missing = max(0.0, end - self._clock.now()), tuple(sorted(pool - here))
            self._hooks(Gathering(place, len(here), wanted, least, left, missing))

        end, awaited = self._clock.now() + seconds, pool - self._missed
        here, wanted = look(), max(least, min(goal, len(awaited)))
        if len(here) >= wanted:
            return here
        note()
        if len(pool) >= least:
            async with self._clock.deadline(seconds) as deadline:
                in_time = True
                while in_time and len(here) < wanted:
                    self._arrival.clear()
                    in_time = await deadline.before(self._arrival)
                    if self._closed:
                        raise closed()
                    before, here = here, look()
                    if here != before:
                        note()
        self.miss(pool - here)
        if len(here) < least:
            raise TooFewSurvivors(
                f"{len(here)} members are present after {seconds:g} seconds, and the round "
                f"needs {least}; start more of them, or wait longer with "
                "Deadlines(gather=…)",
                phase=GATHER,
                survivors=len(here),
                needed=least,
            )
        return here


def pool_of(
    cohort: int | Collection[ClientKey] | None, members: Set[int], least: int, most: int
) -> tuple[frozenset[int], int]:
    """Return the members to choose a cohort from, and the largest size of the cohort.

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
    if cohort is None:
        return frozenset(members), most
    if not isinstance(cohort, Collection):
        check_integer("cohort", cohort, least, most)
        return frozenset(members), int(cohort)
    pool = frozenset(Names().keys(cohort))
    if strangers := pool - members:
        raise ParameterError(
            f"client {min(strangers)} of the cohort is no member of the session; pass "
            "it to Session(members=…)"
        )
    check_integer("the size of the cohort", len(pool), least, most)
    return pool, most
