"""Session on the server, and its answers to the requests of sites.

The session runs on an event loop in a thread of its own, since FLARE calls a controller and the
handlers of messages from threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import secrets
from collections.abc import Coroutine, Iterable
from threading import Thread
from typing import Any, TypeVar

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply

from secagg.errors import LocalProtocolError, RemoteProtocolError
from secagg.flare import names
from secagg.flare.link import Stop
from secagg.protocol import Registry
from secagg.session import Deadlines, Session

__all__ = ["Desk"]

T = TypeVar("T")
_CHECK_ABORT = 0.5
"""Seconds between two looks at the signal of an aborted job."""


class Desk:
    """Session of a job.

    Parameters
    ----------
    sites : iterable of str
        Names of the sites.
    name : str
        Name of the session.
    deadlines : Deadlines
    attempts : int
        See `secagg.session.Session`.
    registry : Registry, optional
        Identity keys of the sites, if rounds are active.

    Attributes
    ----------
    topic : str
        Topic of the sites' requests, different for every desk.
    tokens : dict of str to bytes
        Token of each site. FLARE's tasks are authenticated and carry it, and the site shows it
        in its requests, whose sender FLARE does not tell reliably.
    session : Session
    """

    def __init__(
        self,
        sites: Iterable[str],
        *,
        name: str,
        deadlines: Deadlines,
        attempts: int,
        registry: Registry | None = None,
    ) -> None:
        self.tokens = {site: os.urandom(16) for site in sites}
        self.topic = f"secagg.{secrets.token_hex(4)}"
        self._sites = {token: site for site, token in self.tokens.items()}
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="secagg-desk", daemon=True)
        self._thread.start()

        async def open_session() -> Session:
            return Session(
                list(self.tokens),
                name=name,
                deadlines=deadlines,
                attempts=attempts,
                registry=registry,
            )

        self.session = self._start(open_session()).result()

    def run(self, work: Coroutine[object, object, T], stop: Stop) -> T:
        """Return the result of a coroutine of the session; raise if the job is aborted."""
        future = self._start(work)
        while True:
            try:
                return future.result(_CHECK_ABORT)
            except concurrent.futures.TimeoutError:
                if stop.triggered:
                    future.cancel()
                    raise LocalProtocolError(
                        "the job was aborted during a round; submit it again"
                    ) from None

    def handle(self, topic: str, request: Any, fl_ctx: object) -> Shareable:
        """Answer a site's request; see ``register_aux_message_handler`` of FLARE's engine."""
        token = request.get(names.TOKEN) if isinstance(request, Shareable) else None
        site = self._sites.get(token) if isinstance(token, bytes) else None
        if site is None:
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        reply = make_reply(ReturnCode.OK)
        after, answer = request.get(names.AFTER), request.get(names.ANSWER)
        if isinstance(answer, bytes):
            reply.update(self._answer(site, answer))
        elif isinstance(after, bytes):
            reply.update(self._task(site, after))
        else:
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        return reply

    def close(self) -> None:
        """End the session for all sites; requests that come later learn of it."""
        if not self.session.closed:
            self._start(self._finish()).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _finish(self) -> None:
        await self.session.close()
        if requests := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(requests)

    def _task(self, site: str, after: bytes) -> dict[str, object]:
        if self.session.closed:
            return {names.ENDED: True}
        task = self._start(self.session.next_task(site, after, 0)).result()
        return {} if task is None else {names.SESSION_TASK: task}

    def _answer(self, site: str, answer: bytes) -> dict[str, object]:
        if self.session.closed:
            return {names.ENDED: True}
        try:
            self._start(self.session.accept(site, answer)).result()
        except RemoteProtocolError as error:
            return {names.CHECK: error.check, names.DETAIL: str(error)}
        return {}

    def _start(self, work: Coroutine[object, object, T]) -> concurrent.futures.Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)
