"""Lines about what a command waits for: whom, how long, and since when."""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop, TimerHandle, get_running_loop
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from secagg.cli.lines import time_of
from secagg.cli.schedule import iso
from secagg.kit.table import duration

_TIMES = frozenset({"created", "msecs", "relativeCreated"})
SOON, LATE = 1.0, 60.0
"""Seconds until the first line of a wait: of most waits, and of a wait that is mostly short."""
_AGAIN, _LONGEST = 60.0, 3600.0
"""Seconds until a line comes again, which double each time, up to the longest."""


@dataclass(frozen=True)
class Wait:
    """A wait, from the record of its last change.

    Attributes
    ----------
    what : str
        Whom or what the command waits for, and how many are there.
    since : datetime
        Time when the wait began.
    record : LogRecord
        Record of the last change.
    deadline : float or None
        Seconds from this record to the deadline.
    """

    what: str
    since: datetime
    record: logging.LogRecord
    deadline: float | None = None

    def line(self, seconds: float) -> str:
        """Return the wait in words, so many seconds after the record."""
        since = iso(self.since)
        if self.since.date() == time_of(self.record).date():
            since = since.partition("T")[2]
        if self.deadline is None:
            return f"{self.what}, since {since}"
        return f"{self.what}, {duration(max(0.0, self.deadline - seconds))} left, since {since}"


class Waiting:
    """Printer of the wait of a command.

    A wait of a second has a line, and a line of each change from then on. The line comes again
    after 1, 2, 4, … minutes, at most 60, while the wait lasts.

    Parameters
    ----------
    write : callable
        Function of a record with the present time and a line, which prints the line.
    """

    def __init__(self, write: Callable[[logging.LogRecord, str], None]) -> None:
        self._write = write
        self._wait: Wait | None = None
        self._shown = False
        self._timer: TimerHandle | None = None

    def begin(self, wait: Wait, first: float = SOON) -> None:
        """Begin a wait, with a first line after some seconds."""
        self.end()
        self._wait = wait
        self._again_in(first, get_running_loop())

    def change(self, wait: Wait, *, quiet: bool) -> None:
        """Change the wait, with a line unless the change is quiet."""
        self._wait = wait
        if self._shown and not quiet:
            self._write(wait.record, wait.line(0.0))

    def since(self, event: str) -> datetime | None:
        """Return the begin of the wait if it is of this event."""
        of_event = self._wait is not None and vars(self._wait.record).get("event") == event
        return self._wait.since if self._wait is not None and of_event else None

    def end(self) -> None:
        """End the wait."""
        self._wait, self._shown = None, False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _again_in(self, seconds: float, loop: AbstractEventLoop) -> None:
        def again() -> None:
            if self._wait is None:
                return
            known = vars(self._wait.record)
            fresh = {name: value for name, value in known.items() if name not in _TIMES}
            record = logging.makeLogRecord(fresh)
            self._write(record, self._wait.line(record.created - self._wait.record.created))
            self._shown = True
            self._again_in(min(max(_AGAIN, 2 * seconds), _LONGEST), loop)

        self._timer = loop.call_later(seconds, again)
