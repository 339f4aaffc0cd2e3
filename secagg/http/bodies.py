"""Bodies of requests and responses, within bounds of bytes and of seconds."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from secagg._check import check_integer, check_seconds
from secagg.http.budget import Body
from secagg.http.problems import Problem
from secagg.http.signatures import content_digest

_PIECE = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds on the memory and requests that all members together can take at the server.

    Parameters
    ----------
    bytes_in_flight : int
        Bytes of all bodies that are being received or sent. A body that does not fit waits for
        a turn; a single larger body is possible alone. Each member has one body above 64 KiB
        in flight, and three smaller bodies.
    polls : int
        Number of requests that wait for a task.
    poll_seconds : float
        Longest time that a request waits for a task, and that a body waits for a turn.
    body_seconds : float
        Longest time for a body to arrive or to leave. While others wait for the body's bytes,
        the body has a fifth of this time at an even pace, and no pause above a 60th.

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
        check_seconds(poll_seconds=self.poll_seconds, body_seconds=self.body_seconds)


def content_length(request: Request, limit: int) -> int:
    """Return the length that a request declares; raise `Problem` 411 or 413 if invalid."""
    declared = request.headers.get("content-length", "")
    # with both headers a proxy could see another end of the body than this server
    if "transfer-encoding" in request.headers:
        declared = ""
    if not (declared.isascii() and declared.isdigit()):
        raise Problem(411, "length", "a body needs a Content-Length")
    # the number of digits first: int() raises for thousands of digits
    if len(declared) > 18 or int(declared) > limit:
        raise _too_large(limit)
    return int(declared)


async def read(request: Request, body: Body, digest: str | None) -> bytes:
    """Return the content of a request's body.

    Parameters
    ----------
    request : Request
    body : Body
        The body in the budget; nothing is read beyond the body's size.
    digest : str or None
        Signed Content-Digest; None for a request without a signature.

    Raises
    ------
    Problem
        413: longer than the declared size. 408: too late, or too slow while others wait. 503:
        no turn comes. 400: not the content of the digest.
    """
    held = bytearray()
    try:
        async with body.in_time():
            async for chunk in request.stream():
                if len(held) + len(chunk) > body.size:
                    raise _too_large(body.size)
                if len(held) + len(chunk) > body.reserved:
                    await body.grow()
                held += chunk
                body.move(len(chunk))
    except TimeoutError:
        raise Problem(408, "deadline", "the body came too slowly; send it again") from None
    content = bytes(held)
    # the member signed the digest, not the body: only this check ties the body to the member
    if digest is not None and content_digest(content) != digest:
        raise Problem(400, "digest", "the body is not that of its Content-Digest")
    return content


class Bytes(Response):
    """Response with content that is sent in pieces, so that a slow reader fills no memory.

    The budget counts the content until all bytes were sent, or the time is up.

    Parameters
    ----------
    content : bytes
    body : Body
        The content in the budget.
    """

    media_type = "application/octet-stream"

    def __init__(self, content: bytes, body: Body) -> None:
        super().__init__(
            headers={"Content-Length": str(len(content)), "Cache-Control": "no-store"}
        )
        self._content, self._body = memoryview(content), body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; after the deadline the server closes the connection."""
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        async with self._body as body:
            with suppress(TimeoutError):
                async with body.in_time():
                    await send(start)
                    for at in range(0, len(self._content), _PIECE):
                        piece = bytes(self._content[at : at + _PIECE])
                        more = {"body": piece, "more_body": True}
                        await send({"type": "http.response.body", **more})
                        body.move(len(piece))
                    await send({"type": "http.response.body", "body": b""})


def _too_large(limit: int) -> Problem:
    return Problem(413, "length", f"the body has more than {limit} bytes, the largest accepted")
