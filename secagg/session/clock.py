"""Clock of a session, which a test may control."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass


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
