"""Service of a helper for one-shot sums over HTTPS: check, reserve and open.

Only the aggregator may call the service, since a stranger could spend clients. The aggregator's
identity signs every request. Answers give the sum to everybody who has the aggregator's total,
so answers travel over TLS. Every call can be repeated: the helper's journal gives the same
answer again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from secagg._check import check_kind
from secagg.errors import JournalError, ParameterError, RemoteProtocolError
from secagg.http import asgi, bodies, openapi
from secagg.http.address import check_host
from secagg.http.bodies import Bytes, Limits
from secagg.http.budget import Budget
from secagg.http.problems import Problem
from secagg.http.server import Certificate, listening
from secagg.oneshot import Helper, HelperJournal, OneShotParams, OneShotPolicy
from secagg.oneshot.helper import policy_of
from secagg.oneshot.layout import START_BYTES
from secagg.oneshot.messages import CHUNK, PLACE, request_bytes
from secagg.protocol import Registry
from secagg.session.exchange import Thread

T = TypeVar("T")
logger = logging.getLogger("secagg.http")
AGGREGATOR = 0
"""Id of the aggregator in signatures."""
_PARAMS_BYTES = 1 << 16
"""More than the bytes of any parameters: 16 helpers' keys take 20 kB."""
_SUMS = 4
"""Sums with checked boxes that are kept at once; an older sum is checked again."""


class HelperService:
    """Helper for any number of sums, one call at a time.

    Parameters
    ----------
    new_helper : callable
        Function that returns a sum's helper.
    aggregator : bytes
        ``Identity.public`` of the aggregator, 32 bytes.
    """

    def __init__(
        self, new_helper: Callable[[OneShotParams], Helper], aggregator: bytes
    ) -> None:
        self._new_helper = new_helper
        self._keys = Registry({AGGREGATOR: aggregator})
        self._budget = Budget(Limits().bytes_in_flight)
        self._thread = Thread()
        self._sums: dict[str, Helper] = {}

    def routes(self) -> list[Route]:
        """Return the routes of the application."""
        return [
            asgi.HEALTH,
            asgi.document("/openapi.json", openapi.helper()),
            Route("/v1/sums", self.begin, methods=["POST"]),
            Route("/v1/sums/{sum}/check", self.check, methods=["POST"]),
            Route("/v1/sums/{sum}/reserve", self.reserve, methods=["POST"]),
            Route("/v1/sums/{sum}/open", self.open, methods=["POST"]),
        ]

    async def begin(self, request: Request) -> Response:
        """Take the parameters of a sum, and respond with the endorsement."""
        _, digest = asgi.authenticate(request, self._keys)
        data = await self._body(request, _PARAMS_BYTES, digest)

        def begin() -> bytes:
            params = OneShotParams.from_bytes(data)
            helper = self._new_helper(params)
            endorsement = helper.endorse()  # raises for parameters that fail the policy
            # parameters that come again must not replace the helper with its checked boxes
            self._sums.setdefault(params.digest.hex(), helper)
            while len(self._sums) > _SUMS:
                del self._sums[next(iter(self._sums))]
            return endorsement

        return self._bytes(await self._run(begin))

    async def check(self, request: Request) -> Response:
        """Check a chunk of boxes, and respond with the ids that are rejected."""
        return JSONResponse({"rejected": await self._call(request, Helper.check)})

    async def reserve(self, request: Request) -> Response:
        """Reserve the list of a request."""
        return self._bytes(await self._call(request, Helper.reserve))

    async def open(self, request: Request) -> Response:
        """Open the list of a request."""
        return self._bytes(await self._call(request, Helper.open))

    def close(self) -> None:
        """End the thread of the helper."""
        self._thread.close()

    async def _call(self, request: Request, step: Callable[[Helper, bytes], T]) -> T:
        """Return the result of a helper's step with the body of a request."""
        # first: a stranger must not learn which sums the helper serves
        _, sent = asgi.authenticate(request, self._keys)
        helper = self._sums.get(request.path_params["sum"])
        if helper is None:
            why = "this helper has no such parameters; send them first"
            raise Problem(404, "parameters", why)
        body = await self._body(request, _longest(helper), sent)
        done = await self._run(lambda: step(helper, body))
        phase, digest = step.__name__, helper.params.digest.hex()
        where = {"event": "HelperStep", "phase": phase, "parameters": digest}
        logger.info("%s is done, for the parameters %s", phase, digest, extra=where)
        return done

    async def _body(self, request: Request, limit: int, digest: str) -> bytes:
        length = bodies.content_length(request, limit)
        async with self._budget.announced(length, AGGREGATOR) as body:
            return await bodies.read(request, body, digest)

    async def _run(self, call: Callable[[], T]) -> T:
        """Return the result of a call in the helper's thread; raise problems for errors."""
        try:
            return await self._thread.run(call)
        except RemoteProtocolError as error:
            raise Problem(422, error.check, str(error)) from None
        except ParameterError as error:
            raise Problem(422, "parameters", str(error)) from None
        except JournalError:
            why = "the helper's journal failed; its operator has the reason"
            raise Problem(503, "journal", why, retry_after=10) from None

    def _bytes(self, content: bytes) -> Response:
        return Bytes(content, self._budget.whole(len(content), AGGREGATOR))


@asynccontextmanager
async def serve_helper(
    journal: HelperJournal,
    aggregator: bytes,
    *,
    registry: Registry | None = None,
    min_clients: int | None = None,
    policy: OneShotPolicy | None = None,
    host: str = "127.0.0.1",
    port: int = 8444,
    tls: Certificate | None = None,
    allow_plain_http: bool = False,
) -> AsyncIterator[str]:
    """Serve a helper for one-shot sums while the block runs; yields the base URL.

    Parameters
    ----------
    journal : HelperJournal
        Journal with the helper's keys, open in this process.
    aggregator : bytes
        ``Identity.public`` of the aggregator, 32 bytes; requests of others are rejected.
    registry : Registry, optional
        Public keys of all clients. With a registry the helper serves active sums only, without
        a registry semi-honest sums only.
    min_clients, policy
        Demands on every sum; see `secagg.oneshot.Helper`.
    host, port, tls, allow_plain_http
        See `serve`.

    Raises
    ------
    ParameterError
        An argument is invalid, or plain HTTP would leave the machine.
    OSError
        The port is in use, or a file cannot be read.
    """
    check_host(host, encrypted=tls is not None, allow_plain_http=allow_plain_http)
    check_kind("journal", journal, HelperJournal, "a secagg.oneshot.HelperJournal")
    policy = policy_of(min_clients, policy)
    new_helper = partial(Helper, journal=journal, registry=registry, policy=policy)
    service = HelperService(new_helper, aggregator)
    try:
        async with listening(asgi.build(service.routes()), host, port, tls) as url:
            yield url
    finally:
        service.close()


def _longest(helper: Helper) -> int:
    """Return an upper bound on the bytes of a chunk of boxes and of a request."""
    params = helper.params
    chunk = START_BYTES + PLACE.size + CHUNK * params.layout.record(helper.number)
    return max(chunk, request_bytes(params.n_clients, len(params.helpers)))
