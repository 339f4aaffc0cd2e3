"""Service that takes reports over HTTPS and stores them in a database.

A request has no signature: a report of an active sum has the client's own. In a semi-honest sum
anybody who reaches the service can report in the name of any client, so a proxy in front must
authenticate clients. A report reveals nothing without the helpers, and every request can be
repeated.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from secagg._check import check_kind
from secagg.collect.database import Database
from secagg.collect.intake import Intake
from secagg.collect.metrics import Metrics
from secagg.collect.offers import RETRY, Offers, away, unknown
from secagg.collect.operator import Operator
from secagg.collect.reports import Report, Verdict
from secagg.collect.sessions import StoredSession
from secagg.errors import DatabaseError, ParameterError, RemoteProtocolError
from secagg.http import asgi, bodies, certificates
from secagg.http.address import check_host, check_origin
from secagg.http.bodies import Limits
from secagg.http.budget import Body, Budget
from secagg.http.problems import Problem
from secagg.http.server import Certificate, Serving, listening
from secagg.http.turns import busy
from secagg.oneshot import messages
from secagg.protocol import Registry
from secagg.session.exchange import Thread

# functions: an error that is raised twice would keep the bodies of both requests
_PROBLEMS: dict[Verdict, Callable[[], Problem]] = {
    Verdict.OTHER: partial(
        Problem, 409, "id", "another report of this client was accepted before"
    ),
    Verdict.FULL: partial(
        Problem,
        503,
        "full",
        "the batch has no room; try again when the next is open",
        retry_after=RETRY,
    ),
    Verdict.CLOSED: partial(
        Problem,
        410,
        "closed",
        "this session takes no more reports; a client that never sent this vector gets the "
        "parameters of the next",
        latest="../../parameters",  # beside /v1/parameters, also behind a proxy with a prefix
    ),
    Verdict.UNKNOWN: unknown,
}


class _Offer(bodies.Bytes):
    """Answer with parameters, within the budget until all bytes were sent."""

    media_type = "application/json"

    def __init__(self, content: bytes, body: Body, slot: ExitStack) -> None:
        super().__init__(content, body)
        self._slot = slot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._slot:
            await super().__call__(scope, receive, send)


class Service:
    """Service of a collection.

    Parameters
    ----------
    database : Database
    registry : Registry or None
        Public keys of all clients of active sums; None if all sums are semi-honest.
    limits : Limits

    Attributes
    ----------
    metrics : Metrics
    """

    def __init__(self, database: Database, registry: Registry | None, limits: Limits) -> None:
        self._database, self._registry = database, registry
        self._thread = Thread()
        self._budget = Budget(limits.bytes_in_flight, limits.body_seconds, limits.poll_seconds)
        self.metrics = Metrics(lambda: self._budget.held)
        self._intake = Intake(database, self._thread, self.metrics.committed)
        self._free = list(range(limits.polls))
        self._offers = Offers(database, self._thread, signed=registry is not None)

    def routes(self) -> list[Route]:
        """Return the routes of the application."""
        return [
            # most requests match the first
            Route("/v1/parameters/{digest}/reports", self.report, methods=["POST"]),
            Route("/v1/parameters/{digest}", self.parameters),
            Route("/v1/parameters", self.parameters),
            asgi.HEALTH,
        ]

    async def parameters(self, request: Request) -> Response:
        """Respond with parameters and endorsements: of a digest, or of the newest session."""
        named = request.path_params.get("digest")
        with self.metrics.answering("parameters"), ExitStack() as stack:
            slot = self._take_slot()  # first, as the calls of the database have one thread
            stack.callback(self._free.append, slot)
            digest = await self._offers.newest() if named is None else _digest(named)
            known = await self._offers.find(digest)
            body = self._budget.whole(known.size, slot)
            await body.enter()  # before the answer is in memory: a message may be large
            try:
                content = await self._offers.content(digest)
            except BaseException:
                body.leave()
                raise
            return _Offer(content, body, stack.pop_all())

    async def report(self, request: Request) -> Response:
        """Store a report; respond with 204 after the commit."""
        with self.metrics.answering("report"):
            verdict = await self._store(request)
            if verdict is not Verdict.STORED:
                raise _PROBLEMS[verdict]()
        return Response(status_code=204)

    def close(self) -> None:
        """End the thread of the database."""
        self._thread.close()

    async def _store(self, request: Request) -> Verdict:
        """Return the verdict on a report, after the commit."""
        digest = _digest(request.path_params["digest"])
        slot = self._take_slot()
        try:
            session = (await self._offers.find(digest)).session
            length = bodies.content_length(request, session.params.layout.report)
            async with self._budget.announced(length, slot) as body:
                content = await bodies.read(request, body, None)
                client = self._check(content, session)
                report = Report.of(client, content)
                verdict = await self._intake.add(session, report)
                if verdict is Verdict.UNKNOWN:
                    # deleted, or later than an older copy; perhaps begun again since
                    self._offers.forget(session)
                    session = (await self._offers.find(digest)).session
                    verdict = await self._intake.add(session, report)
                return verdict
        except DatabaseError as error:
            raise away(error) from None
        finally:
            self._free.append(slot)

    def _check(self, content: bytes, session: StoredSession) -> int:
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

    def _take_slot(self) -> int:
        """Return a number that no other request has, in place of the id of a client."""
        if not self._free:
            raise busy("too many requests are under way")
        return self._free.pop()


@asynccontextmanager
async def serve_collection(
    database: Database,
    *,
    registry: Registry | None = None,
    host: str = "127.0.0.1",
    port: int = 8443,
    tls: Certificate | None = None,
    allow_plain_http: bool = False,
    operator_port: int | None = None,
    origins: Sequence[str] = (),
    limits: Limits | None = None,
) -> AsyncIterator[Serving]:
    """Serve the clients of a collection while the block runs.

    After the block, requests under way are answered after their commits.

    Parameters
    ----------
    database : Database
        Database with tables of this version, which `open_database` returns.
    registry : Registry, optional
        Public keys of all clients; required for active sums.
    host, port, tls, allow_plain_http
        See `secagg.http.serve`.
    operator_port : int, optional
        Port on loopback of ``/health``, ``/ready`` and ``/metrics``, 0 for any free port.
    origins : sequence of str
        Origins of web pages that may report, such as "https://app.example".
    limits : Limits, optional
        Bounds on the requests; `polls` is the number of reports under way.

    Yields
    ------
    Serving

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
    pages = _pages(origins)
    async with AsyncExitStack() as stack:
        service = Service(database, registry, limits)
        stack.callback(service.close)
        public = listening(asgi.build(service.routes(), pages), host, port, tls)
        url, operator_url = await stack.enter_async_context(public), ""
        if operator_port is not None:
            if (end := certificates.end_of(tls and tls[0])) is not None:
                certificates.show_end(service.metrics.gauge, end)
            operator = Operator(database, service.metrics)
            stack.callback(operator.close)
            private = listening(operator.application(), "127.0.0.1", operator_port, None)
            operator_url = await stack.enter_async_context(private)
        yield Serving(url, operator_url)


def _pages(origins: Sequence[str]) -> list[Middleware]:
    """Return what lets pages of some origins read the responses, and no others."""
    if isinstance(origins, str):
        raise ParameterError(f"origins is a sequence, not a text; pass [{origins!r}]")
    allowed = [check_origin(one) for one in origins]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=allowed,
        allow_methods=["GET", "POST"],
        expose_headers=["Link", "Retry-After"],
    )
    return [cors] if allowed else []


def _digest(name: str) -> bytes:
    """Return the digest of a path, or b"" for another text."""
    try:
        return bytes.fromhex(name)
    except ValueError:
        return b""
