"""Budget of a server: the bytes of all bodies that are being received or sent.

Small bodies and the beginnings of larger bodies have an eighth of the bytes for themselves. So
an announcement reserves little: the whole length of a body is reserved only after the first
64 KiB came. Small bodies pass while large bodies wait.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Self

from secagg.http.turns import Lane, Turn, busy

SMALL = 1 << 16
"""Bytes of the largest body that is small."""
_BODIES_OF_CLIENT = 4
"""Bodies of a client that are in flight or wait for a turn, at most."""


class Budget:
    """Bytes in flight, in turns; `held` is their sum.

    Parameters
    ----------
    limit : int
        Largest number of bytes, ≥ 1. A body above seven eighths of the limit has a turn while
        no other large body has any.
    seconds : float
        Longest time for a body to arrive or to leave.
    wait : float
        Longest time that a body waits for a turn.
    """

    def __init__(self, limit: int, seconds: float = 300.0, wait: float = 25.0) -> None:
        self.seconds = seconds
        small = limit // 8
        self.small = Lane(small, _BODIES_OF_CLIENT, seconds, wait)
        self.large = Lane(limit - small, 1, seconds, wait)
        self.bodies: Counter[int] = Counter()

    @property
    def held(self) -> int:
        """Bytes that are reserved."""
        return self.small.held + self.large.held

    def announced(self, size: int, client: int) -> Body:
        """Return a body before any byte has arrived."""
        return Body(self, client, size, min(size, SMALL))

    def whole(self, size: int, client: int) -> Body:
        """Return a body that is all in memory."""
        return Body(self, client, size, size)


class Body:
    """Body in flight: an asynchronous context manager; the block is the body's turn.

    `enter`, `enter_now` and `grow` raise `Problem` 503 if no turn comes, or if too many bodies
    of the client are in flight.

    Attributes
    ----------
    size : int
        Bytes of the whole body.
    reserved : int
        Bytes that may be in memory.
    """

    def __init__(self, budget: Budget, client: int, size: int, reserved: int) -> None:
        self.size, self.reserved = size, reserved
        self._budget, self._client = budget, client
        self._lane = budget.small if reserved <= SMALL else budget.large
        self._turn = Turn(client, reserved)
        self._entered = False

    async def __aenter__(self) -> Self:
        await self.enter()
        return self

    async def __aexit__(self, *error: object) -> None:
        self.leave()

    async def enter(self) -> None:
        """Wait for the body's turn, unless the turn has begun."""
        if self._entered:
            return
        self._count()
        try:
            await self._lane.enter(self._turn)
        except BaseException:
            self._uncount()
            raise

    def enter_now(self) -> bool:
        """Begin the body's turn if there is room at once, and return True then."""
        self._count()
        if not self._lane.enter_now(self._turn):
            self._uncount()
        return self._entered

    def leave(self) -> None:
        """End the body's turn."""
        self._lane.leave(self._turn)
        self._uncount()

    async def grow(self) -> None:
        """Wait until all bytes are reserved."""
        first, turn, lane = self._turn, Turn(self._client, self.size), self._budget.large
        moved, first.moved = first.moved, first.size  # from here on the body waits for others
        await lane.enter(turn)
        # ended only now: the first bytes were in memory while the body waited
        self._lane.leave(first)
        self._lane, self._turn, self.reserved = lane, turn, self.size
        turn.moved, turn.timer = moved, first.timer

    def move(self, size: int) -> None:
        """Count bytes that have arrived or left."""
        self._turn.move(size)

    def in_time(self) -> asyncio.Timeout:
        """Return a deadline for when the time is up, or others wait for a slow body."""
        timer = self._turn.timer = asyncio.timeout(self._budget.seconds)
        return timer

    def _count(self) -> None:
        if self._budget.bodies[self._client] >= _BODIES_OF_CLIENT:
            raise busy("too many bodies of this client are in flight")
        self._budget.bodies[self._client] += 1
        self._entered = True

    def _uncount(self) -> None:
        self._entered = False
        self._budget.bodies[self._client] -= 1
        if not self._budget.bodies[self._client]:
            del self._budget.bodies[self._client]
