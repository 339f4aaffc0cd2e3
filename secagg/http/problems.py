"""Problem details of RFC 9457: every error of the HTTP surface, with the check that failed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from secagg.errors import SecAggError

MEDIA_TYPE = "application/problem+json"
BODY_READ = "secagg.http.body_read"
"""Key of an ASGI scope: True once all of the request's body was read."""
_LINGER_SECONDS, _LINGER_BYTES = 2.0, 1 << 16


class Problem(SecAggError):
    """A request cannot be served.

    Parameters
    ----------
    status : int
        Status code of HTTP.
    check : str
        Short stable name of the check that failed, e.g. "signature".
    detail : str
        Sentence with the mistake and the remedy, for a stranger, so without any secret.
    retry_after : int, optional
        Seconds after which the same request may succeed.
    latest : str, optional
        Reference to the resource that takes the place of the request's, for the header Link.
    """

    def __init__(
        self,
        status: int,
        check: str,
        detail: str,
        *,
        retry_after: int | None = None,
        latest: str | None = None,
    ) -> None:
        self.status, self.check, self.detail = status, check, detail
        self.retry_after, self.latest = retry_after, latest
        super().__init__(detail)


def response(problem: Problem, *, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response that states a problem.

    The type is "about:blank" (RFC 9457, §4.2.1); the member "check" distinguishes problems.
    """
    document = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
        "check": problem.check,
    }
    # closed, because an unread body would be taken for the next request
    more = {**(headers or {}), "Connection": "close"}
    if problem.retry_after is not None:
        more["Retry-After"] = str(problem.retry_after)
    if problem.latest is not None:
        more["Link"] = f'<{problem.latest}>; rel="latest-version"'  # RFC 5829, §3.2
    if problem.status == HTTPStatus.UNAUTHORIZED:
        more["WWW-Authenticate"] = "Signature"  # RFC 9110, §11.6.1
    return _Rejection(json.dumps(document), problem.status, more, MEDIA_TYPE)


class _Rejection(Response):
    """Response to a request with a body that may still be under way.

    A connection that is kept would have to read all of the body. A connection that is closed at
    once is reset, and the client may lose the response. So a body that is declared as small is
    read and dropped before the close. Any other body is not read, and the close comes later.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, and close the connection after a while."""
        start = {"type": "http.response.start", "status": self.status_code}
        await send(start | {"headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                if not _is_small(scope):
                    await asyncio.Event().wait()
                while not scope.get(BODY_READ):
                    await receive()
        await send({"type": "http.response.body", "body": b""})


def _is_small(scope: Scope) -> bool:
    """Return True for a request without a body, or with a body that is declared as small."""
    if scope.get(BODY_READ):
        return True
    headers = Headers(scope=scope)
    declared = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not (declared.isascii() and declared.isdigit()):
        return False
    return len(declared) < 18 and int(declared) <= _LINGER_BYTES
