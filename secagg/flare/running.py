"""Session on the server, on an event loop in a separate thread, and the answers to sites.

FLARE calls a controller and the handlers of messages from threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import secrets
from collections.abc import Callable, Coroutine, Iterable
from threading import RLock, Thread
from typing import Any, TypeVar

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply

from secagg.errors import LocalProtocolError, RemoteProtocolError
from secagg.flare import names
from secagg.flare.link import Stop
from secagg.session import Session
from secagg.session.exchange import closed

T = TypeVar("T")
_CHECK_ABORT = 0.5
"""Seconds between two looks at the signal of an aborted job."""


class RunningSession:
    """Session of a job.

    Parameters
    ----------
    make : callable
        Function that returns the session; called in the session's thread.

    Attributes
    ----------
    session : Session
    """

    def __init__(self, make: Callable[[], Session]) -> None:
        self._lock, self._ended = RLock(), False  # a handler of signals may close, too
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="secagg-session", daemon=True)
        self._thread.start()

        async def open_session() -> Session:
            return make()

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


class SiteDesk(RunningSession):
    """Session of a job, and the answers to the requests of sites.

    Parameters
    ----------
    sites : iterable of str
        Names of the sites.
    make : callable
        See `RunningSession`.

    Attributes
    ----------
    topic : str
        Topic of the sites' requests, different for every desk.
    tokens : dict of str to bytes
        Token of each site. FLARE's tasks, which are authenticated, carry the token. The site
        shows the token in requests, because FLARE does not state the sender of a request
        reliably.
    """

    def __init__(self, sites: Iterable[str], make: Callable[[], Session]) -> None:
        self.tokens = {site: os.urandom(16) for site in sites}
        self.topic = f"secagg.{secrets.token_hex(4)}"
        self._sites = {token: site for site, token in self.tokens.items()}
        super().__init__(make)

    def handle(self, topic: str, request: Any, fl_ctx: object) -> Shareable:
        """Answer a site's request; see ``register_aux_message_handler`` of FLARE's engine."""
        token = request.get(names.TOKEN) if isinstance(request, Shareable) else None
        site = self._sites.get(token) if isinstance(token, bytes) else None
        if site is None:
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        after, answer = request.get(names.AFTER), request.get(names.ANSWER)
        reply = make_reply(ReturnCode.OK)
        try:
            if isinstance(answer, bytes):
                reply.update(self._answer(site, answer))
            elif isinstance(after, bytes):
                reply.update(self._task(site, after))
            else:
                return make_reply(ReturnCode.BAD_REQUEST_DATA)
        except LocalProtocolError:
            if not self._ended:  # only this round has failed
                raise
            reply[names.ENDED] = True
        return reply

    def _task(self, site: str, after: bytes) -> dict[str, object]:
        # without waiting for a task: a request that waits would hold a thread of FLARE
        task = self.start(self.session.next_task(site, after, 0)).result()
        return {} if task is None else {names.SESSION_TASK: task}

    def _answer(self, site: str, answer: bytes) -> dict[str, object]:
        try:
            self.start(self.session.accept(site, answer)).result()
        except RemoteProtocolError as error:
            return {names.CHECK: error.check, names.DETAIL: str(error)}
        return {}
