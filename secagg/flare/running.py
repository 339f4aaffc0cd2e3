"""Session on the server, on an event loop in a separate thread.

FLARE calls a controller and the handlers of messages from threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Collection, Coroutine
from threading import RLock, Thread
from typing import TypeVar

from secagg.errors import LocalProtocolError
from secagg.flare.link import Stop
from secagg.protocol import Registry
from secagg.session import Deadlines, Session
from secagg.session.thread import closed

T = TypeVar("T")
_CHECK_ABORT = 0.5
"""Seconds between two looks at the signal of an aborted job."""


class RunningSession:
    """Session of a job.

    Parameters
    ----------
    sites : collection of str
        Names of the sites.
    name : str
        Name of the session.
    deadlines : Deadlines
    attempts : int
        See `secagg.session.Session`.
    registry : Registry, optional
        Identity keys of the sites, if sums are active.

    Attributes
    ----------
    session : Session
    """

    def __init__(
        self,
        sites: Collection[str],
        *,
        name: str,
        deadlines: Deadlines,
        attempts: int,
        registry: Registry | None = None,
    ) -> None:
        self._lock, self._ended = RLock(), False  # a handler of signals may close, too
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="secagg-session", daemon=True)
        self._thread.start()

        async def open_session() -> Session:
            return Session(
                sites, name=name, deadlines=deadlines, attempts=attempts, registry=registry
            )

        try:
            self.session = self.start(open_session()).result()
        except BaseException:
            self._stop()
            raise

    def start(self, work: Coroutine[object, object, T]) -> concurrent.futures.Future[T]:
        """Start a coroutine of the session; raise LocalProtocolError after `close`."""
        with self._lock:  # a loop that stops would never run the work
            if self._ended:
                work.close()
                raise closed()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[object, object, T], stop: Stop) -> T:
        """Return the result of a coroutine of the session; raise if the job is aborted."""
        future = self.start(work)
        while not concurrent.futures.wait([future], _CHECK_ABORT).done:
            if stop.triggered:
                future.cancel()
                raise LocalProtocolError("the job was aborted during a round; submit it again")
        return future.result()

    def close(self) -> None:
        """End the session for all sites; requests that come later learn of the end."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            finished = asyncio.run_coroutine_threadsafe(self._finish(), self._loop)
        try:
            finished.result()
        finally:
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _finish(self) -> None:
        await self.session.close()
        if requests := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(requests)
