"""Starlette applications with problem details as errors, which read no needless body."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from secagg.http import problems, signatures
from secagg.http.problems import BODY_READ, Problem

logger = logging.getLogger("secagg.http")

_CHECKS = {404: "path", 405: "method"}
_DETAILS = {404: "this service has no such path; check host and port of the URL"}


def build(routes: Sequence[BaseRoute], middleware: Sequence[Middleware] = ()) -> Starlette:
    """Return an application with these routes."""
    return Starlette(
        routes=routes,
        middleware=[*middleware, Middleware(_Bodies)],
        exception_handlers={
            Problem: _problem,
            HTTPException: _http_problem,
            ClientDisconnect: _gone,
            Exception: _bug,
        },
    )


def document(path: str, content: object) -> Route:
    """Return the route of a JSON document that never changes."""

    async def respond(_: Request) -> Response:
        return JSONResponse(content)

    return Route(path, respond)


HEALTH = document("/health", {"status": "ok"})
"""Route that responds while the process is alive."""


def authenticate(request: Request, keys: Mapping[int, bytes]) -> tuple[int, str]:
    """Return the id of the key that signed a request, and the signed Content-Digest.

    Raises
    ------
    Problem
        Status 401; see `secagg.http.signatures.verify`.
    """
    # raw: the signature covers the path as sent, percent-encoded
    target = request.scope["raw_path"].decode("latin-1")
    if query := request.scope["query_string"]:
        target += "?" + query.decode("latin-1")
    return signatures.verify(keys, request.method, target, request.headers.items())


class _Bodies:
    """Note of bodies that were read, and rejection of bodies where none is expected."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or reject the request's body."""

        async def noted() -> Message:
            message = await receive()
            scope[BODY_READ] = not message.get("more_body", False)
            return message

        # rejected unread: the body would cost the server before any check of a signature
        if scope["type"] == "http" and scope["method"] != "POST" and _has_body(scope):
            why = f"a request with {scope['method']} has no body here"
            await problems.response(Problem(413, "length", why))(scope, noted, send)
            return
        await self._app(scope, noted, send)


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding"
        or (name == b"content-length" and value.strip(b"0 ") != b"")
        for name, value in scope["headers"]
    )


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)  # noqa: S101 - Starlette passes this class only
    return problems.response(error)


async def _http_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    check = _CHECKS.get(error.status_code, "request")
    detail = _DETAILS.get(error.status_code, str(error.detail))
    problem = Problem(error.status_code, check, detail)
    return problems.response(problem, headers=error.headers)


async def _gone(_: Request, error: Exception) -> Response:
    return Response(status_code=400)  # the client hung up, and nobody reads this


async def _bug(_: Request, error: Exception) -> Response:
    """Respond without the error's text, which may quote the data of the computation."""
    logger.error("an error of secagg.http: %s", type(error).__name__)
    return problems.response(Problem(500, "server", "an error of the server; see its log"))
