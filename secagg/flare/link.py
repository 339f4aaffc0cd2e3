"""Links of sites to the session on the server, over FLARE's auxiliary messages.

The session is on an event loop in a separate thread: FLARE calls a controller and the handlers
of messages from threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import secrets
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from threading import RLock, Thread
from typing import Any, Protocol, TypeVar

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply

from secagg.errors import LinkError, LocalProtocolError, RemoteProtocolError
from secagg.flare import names
from secagg.flare.configuration import check_configuration
from secagg.flare.log import log_rejection
from secagg.flare.model import read_model
from secagg.session import Session
from secagg.session.exchange import closed, in_thread
from secagg.session.wire import Declined, encode, read_task

_INTERVAL = 0.2
"""Seconds between two questions for a task; a waiting request would hold a thread of FLARE."""
_TIMEOUT = 60.0
"""Seconds after which a request is sent again."""


Send = Callable[[Shareable, float], object]
"""Function that sends a request to the server and returns the server's reply. The arguments are
the request and a number of seconds; without a reply by then, any other value is returned."""


class Stop(Protocol):
    """Signal of FLARE that the job was aborted."""

    @property
    def triggered(self) -> bool:
        """True once the job was aborted."""


class FlareLink:
    """Link of a site; see `secagg.session.Link`.

    Parameters
    ----------
    send : Send
    token : bytes
        Token that the server gave to this site, and to no other.
    stop : Stop
        Signal after which the session counts as ended.
    """

    def __init__(self, send: Send, token: bytes, stop: Stop) -> None:
        self._send, self._token, self._stop = send, token, stop

    async def next_task(self, after: bytes) -> bytes | None:
        """Wait for the next task; see `secagg.session.Link.next_task`."""
        while True:
            reply = await self._request({names.AFTER: after})
            if reply is None or reply.get(names.ENDED):
                return None
            task = reply.get(names.SESSION_TASK)
            if isinstance(task, bytes):
                return task
            await asyncio.sleep(_INTERVAL)

    async def send(self, answer: bytes) -> None:
        """Send an answer; see `secagg.session.Link.send`."""
        reply = await self._request({names.ANSWER: answer}) or {}
        if (check := reply.get(names.CHECK)) is not None:
            detail = str(reply.get(names.DETAIL))
            raise RemoteProtocolError(detail, sender=None, phase="answer", check=str(check))

    async def _request(self, fields: dict[str, object]) -> dict[str, object] | None:
        """Return the server's reply, or None if the job was aborted. Repeat a lost request."""
        while not self._stop.triggered:
            request = Shareable()
            request.update(fields)
            request[names.TOKEN] = self._token
            reply: Any = await in_thread(partial(self._send, request, _TIMEOUT))
            code = reply.get_return_code() if isinstance(reply, Shareable) else None
            if code == ReturnCode.OK:
                return {str(key): value for key, value in reply.items()}
            # every other code can pass, but a wrong token stays wrong
            if code == ReturnCode.BAD_REQUEST_DATA:
                raise LinkError(
                    "the server does not accept this site's token; start the job again",
                    check="token",
                )
            await asyncio.sleep(_INTERVAL)
        return None


class AgreedLink(FlareLink):
    """Link of a site that declines the task of an input if the model fails a check here.

    A check in the training would come too late: a failed training sends zeros, so a server
    could make all sites but one send zeros.

    Parameters
    ----------
    send, token, stop
        See `FlareLink`.
    configuration : bytes
        `digest_configuration` of this site.

    Attributes
    ----------
    ended : bool
        True after the end of the session.
    """

    def __init__(self, send: Send, token: bytes, stop: Stop, configuration: bytes) -> None:
        super().__init__(send, token, stop)
        self.ended, self._configuration = False, configuration

    async def next_task(self, after: bytes) -> bytes | None:
        """Wait for the next task; see `secagg.session.Link.next_task`."""
        while (data := await super().next_task(after)) is not None:
            task = read_task(data)
            # only the task of an input has a message, which is the model
            if not task.message:
                return data
            try:
                check_configuration(read_model(task.message), self._configuration)
            except RemoteProtocolError as error:
                log_rejection("a round", error)
            else:
                return data
            after = task.id
            # declined, so that the round need not wait for this site until the deadline
            with suppress(RemoteProtocolError):  # the round has ended
                await self.send(encode(Declined(task.id)))
        self.ended = True
        return None


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
                try:
                    self.start(self.session.accept(site, answer)).result()
                except RemoteProtocolError as error:
                    reply[names.CHECK], reply[names.DETAIL] = error.check, str(error)
            elif isinstance(after, bytes):
                # without waiting for a task: a request that waits would hold a thread of FLARE
                task = self.start(self.session.next_task(site, after, 0)).result()
                if task is not None:
                    reply[names.SESSION_TASK] = task
            else:
                return make_reply(ReturnCode.BAD_REQUEST_DATA)
        except LocalProtocolError:
            if not self._ended:  # only this round has failed
                raise
            reply[names.ENDED] = True
        return reply
