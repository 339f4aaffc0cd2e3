"""Service that takes reports over HTTPS and stores them in a database.

A request has no signature: a report of an active sum has the client's own. In a semi-honest sum
anybody who reaches the service can report in the name of any client, so a proxy in front must
authenticate clients. A report reveals nothing without the helpers, and every request can be
repeated.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from secagg._check import check_kind
from secagg.collect import batches, sessions
from secagg.collect.database import Database
from secagg.collect.intake import Intake
from secagg.collect.reports import Report, Verdict
from secagg.collect.sessions import Session
from secagg.errors import DatabaseError, RemoteProtocolError
from secagg.http import asgi, bodies
from secagg.http.address import check_host
from secagg.http.bodies import Limits
from secagg.http.budget import Budget
from secagg.http.problems import Problem
from secagg.http.server import Certificate, listening
from secagg.http.turns import busy
from secagg.oneshot import messages
from secagg.protocol import Registry
from secagg.session.exchange import Thread

logger = logging.getLogger("secagg.collect")

_SESSIONS = 64
"""Sessions whose parameters are in memory at once."""
_PROBLEMS = {
    Verdict.OTHER: Problem(409, "id", "another report of this client was accepted before"),
    Verdict.FULL: Problem(
        503, "full", "the batch has no room; try again when the next is open", retry_after=10
    ),
    Verdict.CLOSED: Problem(
        410, "closed", "this session takes no more reports; get the parameters of the next"
    ),
}


class Service:
    """Service of a collection.

    Parameters
    ----------
    database : Database
    registry : Registry or None
        Public keys of all clients of active sums; None if all sums are semi-honest.
    limits : Limits
    """

    def __init__(self, database: Database, registry: Registry | None, limits: Limits) -> None:
        self._database, self._registry = database, registry
        self._thread = Thread()
        self._intake = Intake(database, self._thread)
        self._budget = Budget(limits.bytes_in_flight, limits.body_seconds, limits.poll_seconds)
        self._free = list(range(limits.polls))
        self._known: OrderedDict[bytes, Session] = OrderedDict()

    def routes(self) -> list[Route]:
        """Return the routes of the application."""
        return [
            asgi.HEALTH,
            Route("/v1/parameters", self.parameters),
            Route("/v1/parameters/{digest}", self.parameters),
            Route("/v1/parameters/{digest}/reports", self.report, methods=["POST"]),
        ]

    async def parameters(self, request: Request) -> Response:
        """Respond with parameters and endorsements: of a digest, or of the newest session."""
        named = request.path_params.get("digest")
        session = await (self._newest() if named is None else self._session(named))
        content = {
            "digest": session.params.digest.hex(),
            "parameters": _text(session.params.to_bytes()),
            "endorsements": [_text(one) for one in session.endorsements],
        }
        if session.message:
            content["message"] = _text(session.message)
        return JSONResponse(content, headers={"Cache-Control": "no-store"})

    async def report(self, request: Request) -> Response:
        """Store a report; respond with 204 after the commit."""
        session = await self._session(request.path_params["digest"])
        length = bodies.content_length(request, session.params.layout.report)
        with self._slot() as slot:
            async with self._budget.announced(length, slot) as body:
                content = await bodies.read(request, body, None)
                client = self._check(content, session)
                try:
                    verdict = await self._intake.add(session, Report.of(client, content))
                except DatabaseError as error:
                    raise _away(error) from None
        if verdict is not Verdict.STORED:
            raise _PROBLEMS[verdict]
        return Response(status_code=204)

    def close(self) -> None:
        """End the thread of the database."""
        self._thread.close()

    def _check(self, content: bytes, session: Session) -> int:
        """Return the client of a report; raise `Problem` 422 for an invalid report."""
        params = session.params
        try:
            head = messages.read_report(content, params)
            registry = self._registry if params.active else None
            messages.check_reporter(head, content, params, registry)
            messages.report_values(head.client_id, content, params)
        except RemoteProtocolError as error:
            raise Problem(422, error.check, str(error)) from None
        return head.client_id

    @contextmanager
    def _slot(self) -> Iterator[int]:
        """Yield a number that no other request has, in place of the id of a client."""
        if not self._free:
            raise busy("too many requests are under way")
        slot = self._free.pop()
        try:
            yield slot
        finally:
            self._free.append(slot)

    async def _newest(self) -> Session:
        def read() -> Session | None:
            with self._database.transaction() as tx:
                return batches.newest(tx)

        return await self._run(read)

    async def _session(self, name: str) -> Session:
        try:
            digest = bytes.fromhex(name)
        except ValueError:
            digest = b""
        known = self._known.get(digest)
        if known is not None:
            return known

        def read() -> Session | None:
            with self._database.transaction() as tx:
                return sessions.find(tx, digest)

        found = self._known[digest] = await self._run(read)
        while len(self._known) > _SESSIONS:
            self._known.popitem(last=False)
        return found

    async def _run(self, read: Callable[[], Session | None]) -> Session:
        """Return the session that a call in the thread of the database finds."""
        try:
            found = await self._thread.run(read)
        except DatabaseError as error:
            raise _away(error) from None
        if found is None:
            raise Problem(404, "parameters", "there is no such session, or none is open")
        if found.params.active and self._registry is None:
            logger.error("session %s is active; serve it with the clients' keys", found.name)
            raise Problem(503, "server", "the server lacks the keys of the clients")
        return found


@asynccontextmanager
async def serve_collection(
    database: Database,
    *,
    registry: Registry | None = None,
    host: str = "127.0.0.1",
    port: int = 8443,
    tls: Certificate | None = None,
    allow_plain_http: bool = False,
    limits: Limits | None = None,
) -> AsyncIterator[str]:
    """Serve the clients of a collection while the block runs; yields the base URL.

    Parameters
    ----------
    database : Database
        Database with tables of this version, which `open_database` returns.
    registry : Registry, optional
        Public keys of all clients; required for active sums.
    host, port, tls, allow_plain_http
        See `secagg.http.serve`.
    limits : Limits, optional
        Bounds on the requests; `polls` is the number of reports under way.

    Raises
    ------
    ParameterError
        An argument is invalid, or plain HTTP would leave the machine.
    OSError
        The port is in use, or a file cannot be read.
    """
    check_host(host, encrypted=tls is not None, allow_plain_http=allow_plain_http)
    limits = limits or Limits()
    check_kind("limits", limits, Limits, "a secagg.http.Limits")
    check_kind("registry", registry, (Registry, type(None)), "a secagg.Registry")
    service = Service(database, registry, limits)
    try:
        async with listening(asgi.build(service.routes()), host, port, tls) as url:
            yield url
    finally:
        service.close()


def _away(error: DatabaseError) -> Problem:
    # without the error's text, which can name machines of the operator
    logger.error("%s", error)
    why = "the server's database is away; send the same report again"
    return Problem(503, "database", why, retry_after=10)


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")
