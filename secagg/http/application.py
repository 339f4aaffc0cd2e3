"""Service of a session's members: their polls for tasks, and their answers.

A request is checked in the order of the checks' costs: the signature over the headers, the
session's name, the declared length, and only then the body. So a stranger can make the server
read headers, and little else; see `secagg.http.problems`.

A post is idempotent, since the session accepts the same bytes again and answers alike. So a
request that an attacker replays changes nothing. An answer is bound to a task, and a task to a
single attempt. The signature is bound to this session's name and to five minutes. In that time
a replayed poll lets a member appear to be there. The response to a replayed poll is of use
without TLS only.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from secagg._check import check_kind
from secagg.errors import RemoteProtocolError, SecAggError
from secagg.http import asgi, bodies, openapi
from secagg.http.bodies import Bytes, Limits
from secagg.http.budget import Budget
from secagg.http.problems import Problem
from secagg.http.turns import busy
from secagg.protocol import Registry
from secagg.session import Event, PhaseOpened, Session

_POLLS_OF_CLIENT = 4
_AFTER = re.compile(r"([0-9a-f]{32})?\Z")
_STATUS = {"late": 409, "unknown client": 403, "size": 413}
"""Statuses of failed checks; all other checks have the status 422."""


class Members:
    """Members' side of a session over HTTP.

    Parameters
    ----------
    session : Session
    registry : Registry
        Public keys of all members. Nobody else can send anything.
    limits : Limits
    """

    def __init__(self, session: Session, registry: Registry, limits: Limits) -> None:
        check_kind("session", session, Session, "a secagg.session.Session")
        check_kind("registry", registry, Registry, "a secagg.Registry")
        check_kind("limits", limits, Limits, "a secagg.http.Limits")
        self._session, self._registry, self._limits = session, registry, limits
        # answers to tasks of an earlier process come too early while this process resumes
        self._begun = False
        session.watch(self._note)
        self._polls: Counter[int] = Counter()
        self._here: set[int] = set()
        self._left = asyncio.Event()
        self._stopped = asyncio.Event()
        self.budget = Budget(limits.bytes_in_flight, limits.body_seconds, limits.poll_seconds)

    @property
    def polls(self) -> int:
        """Number of requests that wait for a task."""
        return self._polls.total()

    def routes(self) -> list[Route]:
        """Return the routes of the application."""
        return [
            asgi.HEALTH,
            asgi.document("/openapi.json", openapi.members()),
            # the name, which the members' signatures cover
            asgi.document("/v1/session", {"session": self._session.name}),
            Route("/v1/sessions/{session:path}/task", self.task),
            Route("/v1/sessions/{session:path}/answer", self.answer, methods=["POST"]),
        ]

    def _note(self, event: Event) -> None:
        self._begun = self._begun or isinstance(event, PhaseOpened)

    async def task(self, request: Request) -> Response:
        """Respond with the member's next task, or with 204 if there is none for a while."""
        client, _ = self._member(request)
        after = request.query_params.get("after", "")
        if not _AFTER.match(after):
            raise Problem(
                400, "after", "after must be the id of a task in hexadecimal, or none"
            )
        with self._poll(client):
            task = await self._next_task(request, client, bytes.fromhex(after))
        if task is not None:
            return task
        if self._session.closed:
            self._leave(client)
            raise Problem(410, "ended", "the session has ended")
        return Response(status_code=204)

    async def answer(self, request: Request) -> Response:
        """Pass a member's answer to the session."""
        client, digest = self._member(request)
        if self._session.closed:
            self._leave(client)
            raise Problem(410, "ended", "the session has ended")
        if not self._begun:
            raise busy("no round has begun yet")
        length = bodies.content_length(request, self._session.answer_limit)
        async with self.budget.announced(length, client) as body:
            answer = await bodies.read(request, body, digest)
            try:
                await self._session.accept(client, answer)
            except RemoteProtocolError as error:
                raise _rejected(error) from None
            except SecAggError:
                # without the error's text, which can name files of the server
                why = "the server cannot store answers; its operator has the reason"
                raise Problem(503, "server", why, retry_after=10) from None
        return Response(status_code=204)

    async def farewell(self, seconds: float) -> None:
        """Wait until all members that are here know that the session has ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._here:
                    self._left.clear()
                    await self._left.wait()

    def stop(self) -> None:
        """End the requests that wait for a task; their members try again in a second."""
        self._stopped.set()

    def _member(self, request: Request) -> tuple[int, str]:
        """Return the client that signed a request, and the digest of the request's body."""
        client, digest = asgi.authenticate(request, self._registry)
        if request.path_params["session"] != self._session.name:
            raise Problem(404, "session", "another session runs here; join again")
        self._here.add(client)
        return client, digest

    @contextmanager
    def _poll(self, client: int) -> Iterator[None]:
        if self._polls[client] >= _POLLS_OF_CLIENT:
            raise busy(
                f"{_POLLS_OF_CLIENT} requests of this client wait for a task, so likely this "
                "identity is joined by another process; end that"
            )
        if self.polls >= self._limits.polls:
            raise busy("too many requests wait for a task")
        self._polls[client] += 1
        try:
            yield
        finally:
            self._polls[client] -= 1
            # a Counter keeps zeros, so members that left would stay in memory
            if not self._polls[client]:
                del self._polls[client]

    async def _next_task(self, request: Request, client: int, after: bytes) -> Bytes | None:
        """Return the member's next task; stop waiting if the member or the server leaves."""
        poll = asyncio.ensure_future(self._taken(client, after))
        gone = asyncio.ensure_future(_disconnected(request))
        stopped = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait((poll, gone, stopped), return_when=asyncio.FIRST_COMPLETED)
            if poll.done():
                return poll.result()
            if stopped.done():
                raise busy("the server stops")
            self._leave(client)
            return None
        except RemoteProtocolError as error:
            raise _rejected(error) from None
        finally:
            for one in (poll, gone, stopped):
                one.cancel()
            # awaited, or an error of a cancelled task would be reported as never retrieved
            await asyncio.gather(poll, gone, stopped, return_exceptions=True)

    async def _taken(self, client: int, after: bytes) -> Bytes | None:
        """Return the member's next task, once there is room for the bytes."""
        task = await self._session.next_task(client, after, self._limits.poll_seconds)
        if task is None:
            return None
        body = self.budget.whole(len(task), client)
        if not body.enter_now():
            # many members' tasks open at once: waiting tasks must not be in memory
            del task
            await body.enter()
            task = await self._session.next_task(client, after, 0)
            if task is None or len(task) > body.size:
                body.leave()
                return None
        return Bytes(task, body)

    def _leave(self, client: int) -> None:
        self._here.discard(client)
        self._left.set()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _rejected(error: RemoteProtocolError) -> Problem:
    return Problem(_STATUS.get(error.check, 422), error.check, str(error))
