"""Deadlines of the phases of a session, and the clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields

from secagg._check import check_seconds
from secagg.protocol import Phase


@dataclass(frozen=True, kw_only=True)
class Deadlines:
    """Seconds after which a phase closes without the missing answers, each > 0.

    A phase closes earlier once all awaited clients have answered.

    Parameters
    ----------
    gather : float
        For the members to come. At the deadline a round begins with the present members, if
        they are enough.
    keys, shares : float
        For fresh keys, and for the shares sealed under them.
    input : float
        For the vectors, training included.
    unmask : float
        For the signatures of an active round, for the shares that open the sum, and for each
        step of the helpers of a one-shot sum.
    reports : float
        For the reports of a one-shot sum, training included.

    Raises
    ------
    ParameterError
        A number is not positive.
    """

    gather: float = 60.0
    keys: float = 60.0
    shares: float = 60.0
    input: float = 600.0
    unmask: float = 60.0
    reports: float = 600.0

    def __post_init__(self) -> None:
        for field in fields(self):
            check_seconds(**{f"deadline {field.name}": getattr(self, field.name)})

    @classmethod
    def of(cls, seconds: Deadlines | float) -> Deadlines:
        """Return deadlines; a number is the deadline of every phase."""
        if isinstance(seconds, Deadlines):
            return seconds
        return cls(**dict.fromkeys((field.name for field in fields(cls)), seconds))

    def in_phase(self, phase: Phase) -> float:
        """Return the deadline of a phase of a round."""
        return {
            Phase.ADVERTISE_KEYS: self.keys,
            Phase.SHARE_KEYS: self.shares,
            Phase.MASKED_INPUT: self.input,
        }.get(phase, self.unmask)


@dataclass(frozen=True)
class Clock:
    """Clock of a session; a test passes a clock under the test's own control."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    @asynccontextmanager
    async def deadline(self, seconds: float) -> AsyncIterator[Deadline]:
        """Yield a deadline that begins now."""
        # a single timer for all waits: being woken early must not extend the deadline
        timer = asyncio.ensure_future(self.sleep(seconds))
        try:
            yield Deadline(timer)
        finally:
            timer.cancel()


class Deadline:
    """Deadline that has begun."""

    def __init__(self, timer: asyncio.Future[object]) -> None:
        self._timer = timer

    async def before(self, event: asyncio.Event) -> bool:
        """Wait until `event` is set or the time is up; return whether the event is set."""
        waiter: asyncio.Future[object] = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait([waiter, self._timer], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
        return event.is_set()
