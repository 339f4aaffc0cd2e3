"""Bodies of requests and responses, within bounds of bytes and of seconds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from http_message_signatures import ContentDigest, InvalidSignature
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from secagg._check import check_integer
from secagg.errors import ParameterError
from secagg.http.problems import Problem

_PIECE = 1 << 18
_BODIES_OF_CLIENT = 4
"""Bodies of one client in flight, at most; otherwise one could take the bytes of all."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds on what all members together can make the server hold.

    Parameters
    ----------
    bytes_in_flight : int
        Bytes of all bodies that are being received or sent. A single body may be larger.
    polls : int
        Number of requests that wait for a task.
    poll_seconds : float
        Longest time that a request waits for a task.
    body_seconds : float
        Longest time for a body to arrive or to leave.

    Raises
    ------
    ParameterError
        A value is not positive.
    """

    bytes_in_flight: int = 256 << 20
    polls: int = 20_000
    poll_seconds: float = 25.0
    body_seconds: float = 300.0

    def __post_init__(self) -> None:
        for name in ("bytes_in_flight", "polls"):
            check_integer(name, getattr(self, name), 1, 1 << 62)
        for name in ("poll_seconds", "body_seconds"):
            if not getattr(self, name) > 0:
                raise ParameterError(f"{name} must be positive, not {getattr(self, name)!r}")


class Budget:
    """Bytes of bodies in flight; `held` is their sum."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bodies: Counter[int] = Counter()
        self.held = 0

    @contextmanager
    def hold(self, count: int, client: int) -> Iterator[None]:
        """Reserve bytes for a client, or raise `Problem` 503.

        One body alone is always accepted.
        """
        if self._bodies[client] >= _BODIES_OF_CLIENT:
            raise busy("too many bodies of this client are in flight")
        if self.held and self.held + count > self._limit:
            raise busy("too many bytes are in flight")
        self.held += count
        self._bodies[client] += 1
        try:
            yield
        finally:
            self.held -= count
            self._bodies[client] -= 1
            if not self._bodies[client]:
                del self._bodies[client]


def busy(why: str) -> Problem:
    """Return the problem of a server that is at a limit."""
    return Problem(503, "busy", f"{why}; try again in a second", retry_after=1)


def content_length(request: Request, limit: int) -> int:
    """Return the length that a request declares; raise `Problem` 411 or 413 for others."""
    declared = request.headers.get("content-length", "")
    if "transfer-encoding" in request.headers:  # a proxy could see another end of the body
        declared = ""
    if not (declared.isascii() and declared.isdigit()):
        raise Problem(411, "length", "a body needs a Content-Length")
    if len(declared) > 18 or int(declared) > limit:
        raise _too_large(limit)
    return int(declared)


async def read(request: Request, limit: int, seconds: float, digest: str) -> bytes:
    """Return a request's body.

    Parameters
    ----------
    request : Request
    limit : int
        Largest number of bytes; nothing is read beyond them.
    seconds : float
        Longest time to wait for the body.
    digest : str
        Signed Content-Digest.

    Raises
    ------
    Problem
        413: longer than `limit`. 408: too late. 400: not the content of the digest.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise _too_large(limit)
    except TimeoutError:
        raise Problem(408, "deadline", f"the body took over {seconds:g} seconds") from None
    content = bytes(body)
    try:
        ContentDigest.verify(digest, content)
    except InvalidSignature:
        raise Problem(400, "digest", "the body is not that of its Content-Digest") from None
    return content


class Bytes(Response):
    """Response whose content is sent in pieces, so that a slow reader does not fill memory.

    The budget holds the content until all of it was sent, or the time is up.
    """

    media_type = "application/octet-stream"

    def __init__(self, content: bytes, budget: Budget, client: int, seconds: float) -> None:
        super().__init__(
            headers={"Content-Length": str(len(content)), "Cache-Control": "no-store"}
        )
        self._content, self._seconds = memoryview(content), seconds
        self._budget, self._client = budget, client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; after the deadline the server closes the connection."""
        with self._budget.hold(len(self._content), self._client):
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            try:
                async with asyncio.timeout(self._seconds):
                    await send(start)
                    for at in range(0, len(self._content), _PIECE):
                        piece = bytes(self._content[at : at + _PIECE])
                        await send(
                            {"type": "http.response.body", "body": piece, "more_body": True}
                        )
                    await send({"type": "http.response.body", "body": b""})
            except TimeoutError:
                return


def _too_large(limit: int) -> Problem:
    return Problem(413, "length", f"the body has more than {limit} bytes, the largest accepted")
