"""Signed requests to one server, repeated with pauses until it answers."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Self

import httpx

from secagg._printable import printable
from secagg.errors import LinkError, ParameterError
from secagg.http import signatures
from secagg.http.address import check_url, client_context
from secagg.protocol import Identity

DOCUMENT = 1 << 16
"""Bytes of a response that is a small document, as every error is: more than any has."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
"""Seconds before the second request, and the bound of those that double from there."""
_TIMEOUT, _CONNECT = 30.0, 10.0
"""Longest seconds of one request, beyond those of its bytes, and to connect."""
_SLOWEST = 1 << 16
"""Bytes a second of the slowest line: each byte that came or went adds time to a request."""
_PIECE = 1 << 16
_LONGEST_RETRY = 60.0
_QUOTED = 500
"""Characters of a server's text that an error quotes."""
_PLAIN = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons where the other side answers without TLS."""
_CUT = (ssl.SSLEOFError, ssl.SSLSyscallError, ssl.SSLZeroReturnError)
_AGAIN = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)

logger = logging.getLogger("secagg.http")


class Connection:
    """Connection of one party to a server.

    A request is repeated with the same body, so a server must take a repeated one as one.

    Parameters
    ----------
    url : str
        Base URL of the server.
    client_id : int
        Id under which the server knows the identity.
    identity : Identity
        Key that signs every request.
    tls : ssl.SSLContext, optional
        Trusted authorities; those of the system by default.
    allow_plain_http : bool
        Accept a URL without TLS that is not on loopback.
    patience : float
        Seconds without any answer after which `LinkError` is raised. A request that the server
        has taken may last 30 seconds longer, and a second for each 64 KiB that it has moved.
    """

    def __init__(
        self,
        url: str,
        client_id: int,
        identity: Identity,
        *,
        tls: ssl.SSLContext | None,
        allow_plain_http: bool,
        patience: float,
    ) -> None:
        self.url = check_url(url, allow_plain_http=allow_plain_http)
        if not patience > 0:
            raise ParameterError(f"patience must be positive, not {patience!r}")
        encrypted = self.url.startswith("https:")
        self._client_id, self._identity, self._patience = client_id, identity, patience
        self._http = httpx.AsyncClient(
            base_url=self.url,
            verify=(tls or client_context(None)) if encrypted else False,
            trust_env=encrypted,  # a proxy of the environment would read plain HTTP
            headers={"Accept-Encoding": "identity"},
            # a jar would keep all that a server sets, for as long as the member polls
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            event_hooks={"response": [_check_encoding]},
            limits=httpx.Limits(max_connections=4, keepalive_expiry=30.0),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    async def request(
        self, method: str, path: str, body: bytes = b"", *, limit: int = DOCUMENT
    ) -> httpx.Response:
        """Return the server's response to a signed request.

        Parameters
        ----------
        method, path : str
            Method, and path with query, percent-encoded.
        body : bytes
        limit : int
            Largest number of bytes of the content; little more is read. Those of an error are
            `DOCUMENT`, and a longer one is returned without its content.

        Raises
        ------
        LinkError
            "patience": the server did not answer within the patience. "tls": no encrypted
            connection can be made. "size": its response is longer than `limit`. "encoding": its
            response is compressed.
        """
        pause, began, logged = _FIRST_PAUSE, time.monotonic(), False
        while True:
            longer, left = 0.0, began + self._patience - time.monotonic()
            try:
                # signed each time, since a signature is valid for minutes only
                found = await self._send(method, path, body, limit, left)
            except httpx.TransportError as error:
                self._check_tls(error)
                why = f"{type(error).__name__} {error}".rstrip(" .") + self._hint(error)
                if not logged:
                    text = printable(why)  # it may quote the server
                    logger.warning("%s does not answer (%s); trying again", self.url, text)
                    logged = True
            else:
                if found.status_code not in _AGAIN and found.status_code < 500:
                    return found
                why, longer = f"status {found.status_code}", _retry_after(found)
            waited = time.monotonic() - began
            if waited >= self._patience:
                raise LinkError(
                    f"{self.url} did not answer for {waited:.0f} seconds ({why}); check that "
                    "the server runs, or pass a longer patience",
                    check="patience",
                )
            # random, or all clients of a server that was away would come back at once
            longer += pause * random.uniform(0.5, 1.0)  # noqa: S311
            await asyncio.sleep(min(longer, self._patience - waited))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _check_tls(self, error: httpx.TransportError) -> None:
        """Raise `LinkError` if no repetition makes an encrypted connection possible."""
        cause = _tls_error(error)
        if cause is None:
            return
        if isinstance(cause, ssl.SSLCertVerificationError):
            remedy = "trust its authority with tls=…, or take the host name of its certificate"
        elif cause.reason in _PLAIN:
            remedy = "take http:// if the server has no certificate"
        else:
            remedy = "compare the TLS settings of both sides"
        raise LinkError(
            f"no encrypted connection to {self.url} ({cause}); {remedy}", check="tls"
        ) from None

    def _hint(self, error: httpx.TransportError) -> str:
        """Return the remedy if a server with TLS could have closed a plain connection."""
        taken = isinstance(error, httpx.RemoteProtocolError | httpx.ReadError)
        plain = self.url.startswith("http:")
        return "; take https:// if the server has TLS" if taken and plain else ""

    async def _send(
        self, method: str, path: str, body: bytes, limit: int, seconds: float
    ) -> httpx.Response:
        headers = {"Content-Length": str(len(body))} if body else {}
        if body:
            headers["Content-Type"] = "application/octet-stream"
        connect = min(_CONNECT, max(seconds, _FIRST_PAUSE))
        clock = _Clock()
        request = self._http.build_request(
            method,
            path,
            content=_pieces(body, clock) if body else None,
            headers=headers,
            timeout=httpx.Timeout(_TIMEOUT, connect=connect, pool=None),
        )
        target = request.url.raw_path.decode()
        request.headers.update(
            signatures.sign(self._identity, self._client_id, method, target, body)
        )
        try:
            async with clock.timer:
                found = await self._http.send(request, stream=True)
                try:
                    return await _read(found, limit, clock)
                finally:
                    await found.aclose()
        except TimeoutError:
            raise httpx.ReadTimeout("the response comes too slowly", request=request) from None


class _Clock:
    """Deadline of one request with its response: each byte that is moved puts it off.

    The HTTP library bounds single reads and writes, of which a server that drips makes many.
    """

    def __init__(self) -> None:
        self._end = asyncio.get_running_loop().time() + _TIMEOUT
        self.timer = asyncio.timeout_at(self._end)

    def move(self, size: int) -> None:
        """Count bytes of the body of the request or of the response."""
        self._end += size / _SLOWEST
        if not self.timer.expired():
            self.timer.reschedule(self._end)


async def _pieces(body: bytes, clock: _Clock) -> AsyncIterator[bytes]:
    """Yield a body in pieces: the HTTP library bounds the time of each."""
    for at in range(0, len(body), _PIECE):
        piece = body[at : at + _PIECE]
        yield piece
        clock.move(len(piece))


def _tls_error(error: httpx.TransportError) -> ssl.SSLError | None:
    """Return the failure of TLS that a refused connection has as its cause, if it will stay."""
    if not isinstance(error, httpx.ConnectError):
        return None
    cause: BaseException | None = error
    while cause is not None:
        # a server that stops cuts the connection, and comes back
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, _CUT):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


async def _read(found: httpx.Response, limit: int, clock: _Clock) -> httpx.Response:
    """Return a response with its content, of which no more is held than it may have."""
    good = found.status_code == HTTPStatus.OK
    body = bytearray()
    async for piece in found.aiter_bytes():
        body += piece
        clock.move(len(piece))
        if len(body) > (limit if good else DOCUMENT):
            if good:
                raise LinkError(
                    f"{found.url.host} sent more than {limit} bytes, the most that this "
                    "request accepts; check the URL and the version of the server",
                    check="size",
                )
            body.clear()
            break
    return httpx.Response(
        found.status_code, headers=found.headers, content=bytes(body), request=found.request
    )


async def _check_encoding(response: httpx.Response) -> None:
    """Reject a compressed response before it is read: a few bytes could fill the memory."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise LinkError(
            f"{response.url.host} sent a compressed response, which nobody asked for; turn "
            "compression off at the server or its proxy",
            check="encoding",
        )


def refused(response: httpx.Response) -> LinkError:
    """Return the error of a request that the server will never serve."""
    check, detail = problem_of(response)
    return LinkError(f"{response.url.host} refuses this member: {detail}", check=check)


def problem_of(response: httpx.Response) -> tuple[str, str]:
    """Return the check and the detail of an error response; its status if it has none."""
    with suppress(ValueError, RecursionError):
        document = response.json()
        if isinstance(document, dict):
            check, detail = document.get("check"), document.get("detail")
            if isinstance(check, str) and isinstance(detail, str):
                return check[:_QUOTED], detail[:_QUOTED]
    return "status", f"status {response.status_code}"


def _retry_after(response: httpx.Response) -> float:
    """Return the seconds of Retry-After (RFC 9110, §10.2.3), at most a minute."""
    value = response.headers.get("retry-after", "")
    if value.isascii() and value.isdigit():
        return min(float(value), _LONGEST_RETRY)
    with suppress(ValueError, TypeError):  # no date, or one without a time zone
        until = parsedate_to_datetime(value) - datetime.now(UTC)
        return min(max(until.total_seconds(), 0.0), _LONGEST_RETRY)
    return 0.0
