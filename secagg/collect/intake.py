"""Group commit: reports that arrive while a transaction is under way are in the next together.

So the commits of a disk, a few hundred a second, carry thousands of reports. Each report is
acknowledged after the commit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable

from secagg.collect import reports
from secagg.collect.database import Database
from secagg.collect.reports import Report, Verdict
from secagg.collect.sessions import StoredSession
from secagg.session.exchange import Calls

logger = logging.getLogger("secagg.collect")

_REPORTS, _BYTES = 500, 1 << 24
"""Reports of a transaction, and bytes unless a single report has more."""

_Waiting = tuple[StoredSession, Report, "asyncio.Future[Verdict]"]


class Intake:
    """Reports on the way into a database, for any number of tasks of an event loop.

    Parameters
    ----------
    database : Database
    thread : Calls
        Thread of the database.
    committed : callable, optional
        Function that gets the number of reports and the seconds of each transaction.
    """

    def __init__(
        self,
        database: Database,
        thread: Calls,
        committed: Callable[[int, float], object] = lambda reports, seconds: None,
    ) -> None:
        self._database, self._thread, self._committed = database, thread, committed
        self._waiting: deque[_Waiting] = deque()
        self._running: asyncio.Task[None] | None = None

    async def add(self, session: StoredSession, report: Report) -> Verdict:
        """Store a report, and return the verdict after the commit.

        Raises
        ------
        DatabaseError
            The database failed; the report may be stored or not.
        """
        done: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._waiting.append((session, report, done))
        if self._running is None:
            self._running = asyncio.ensure_future(self._run())
        return await done

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._store(self._next())
        finally:
            self._running = None

    async def _store(self, group: list[_Waiting]) -> None:
        session, found = group[0][0], [report for _, report, _ in group]
        began = time.monotonic()
        try:
            verdicts = await self._thread.run(
                lambda: reports.add(self._database, session, found)
            )
        except Exception as error:
            for *_, done in group:
                if not done.done():  # a client that hung up has cancelled the future
                    done.set_exception(error)
        else:
            seconds = time.monotonic() - began
            stored = verdicts.count(Verdict.STORED)
            self._committed(len(group), seconds)
            logger.debug(
                "%d of %d reports of session %s are stored",
                stored,
                len(group),
                session.name,
                extra={"reports": stored, "seconds": seconds},
            )
            for (*_, done), verdict in zip(group, verdicts, strict=True):
                if not done.done():
                    done.set_result(verdict)

    def _next(self) -> list[_Waiting]:
        """Take the first reports that wait, all of a session."""
        group, size = [self._waiting.popleft()], 0
        while self._waiting and len(group) < _REPORTS:
            session, report, _ = self._waiting[0]
            size += len(report.content)
            if session is not group[0][0] or size > _BYTES:
                break
            group.append(self._waiting.popleft())
        return group
