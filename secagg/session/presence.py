"""Presence of a session's members: those that wait for a task, or called a moment ago."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from secagg.errors import TooFewSurvivors
from secagg.session.deadlines import Clock
from secagg.session.thread import closed

GATHER = "gather"
"""Phase before a round, in which members come."""
_RECENT = 10.0
"""Seconds for which a member counts as present after its last call."""

Note = Callable[[int, int, float, tuple[int, ...]], object]
"""Function that gets the number of members present, the number with which the gathering ends,
the seconds left, and the ids of the missing ones."""


class Presence:
    """Members that are there, and those that missed a deadline and were not seen since."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._closed = False
        self._polls: Counter[int] = Counter()
        self._seen: dict[int, float] = {}
        self._lost: set[int] = set()
        self._arrival = asyncio.Event()

    @contextmanager
    def waiting(self, client: int) -> Iterator[None]:
        """Count a member as present while it waits for a task."""
        self._polls[client] += 1
        self.see(client)
        try:
            yield
        finally:
            self._polls[client] -= 1
            self.see(client)

    def is_present(self, client: int) -> bool:
        """Return whether a member is waiting for a task, or called a moment ago."""
        last = self._seen.get(client, -math.inf)
        return self._polls[client] > 0 or self._clock.now() - last <= _RECENT

    def see(self, client: int) -> None:
        """Note a call of a member."""
        self._seen[client] = self._clock.now()
        self._lost.discard(client)
        self._arrival.set()

    def lose(self, clients: Collection[int]) -> None:
        """Note members that missed a deadline; those that wait for a task have not gone."""
        for u in clients:
            if not self._polls[u]:
                self._lost.add(u)
                self._seen.pop(u, None)

    def forget(self, client: int) -> None:
        """Count a member as present again once it calls: it may be about to end."""
        self._seen.pop(client, None)

    def close(self) -> None:
        """End the gathering under way."""
        self._closed = True
        self._arrival.set()

    async def gather(
        self,
        pool: frozenset[int],
        goal: int,
        least: int,
        seconds: float,
        note: Note = lambda *_: None,
    ) -> frozenset[int]:
        """Wait until enough members of a pool are present, and return all that are.

        Enough are `goal` of them, or all but those that missed the last deadline. `note` is
        called before the first wait, and whenever others are present.

        Raises
        ------
        TooFewSurvivors
            Fewer than `least` are present at the deadline.
        """
        noted, end = None, self._clock.now() + seconds
        async with self._clock.deadline(seconds) as deadline:
            while len(pool) >= least:
                here = frozenset(filter(self.is_present, pool))
                wanted = max(least, min(goal, len(pool - self._lost)))
                if len(here) >= wanted:
                    return here
                if here != noted:
                    noted = here
                    missing = tuple(sorted(pool - here))
                    note(len(here), wanted, max(0.0, end - self._clock.now()), missing)
                self._arrival.clear()
                if not await deadline.before(self._arrival):
                    break
                if self._closed:
                    raise closed()
        here = frozenset(filter(self.is_present, pool))
        self.lose(pool - here)
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
