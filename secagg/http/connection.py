"""Signed requests to a server, repeated with pauses until the server answers."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Self

import httpx

from secagg._check import check_seconds
from secagg._printable import printable
from secagg.errors import LinkError
from secagg.http import certificates, faults, signatures
from secagg.http.address import check_url, client_context
from secagg.protocol import Identity

DOCUMENT = 1 << 16
"""Bytes that no small document exceeds; every error is a small document."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
"""Seconds before the second request, and the bound of the pauses, which double from there."""
_TIMEOUT, _CONNECT = 30.0, 10.0
"""Longest seconds of a request, beyond the time for the bytes, and to connect."""
_SLOWEST = 1 << 16
"""Bytes a second of the slowest line: each byte that came or went adds time to a request."""
_PIECE = 1 << 16
_LONGEST_RETRY = 60.0

logger = logging.getLogger("secagg.http")


class Connection:
    """Connection of a party to a server.

    A request is repeated with the same body, so a server must count repeated requests once.

    Parameters
    ----------
    url : str
        Base URL of the server.
    client_id : int
        Id of the identity at the server.
    identity : Identity or None
        Key that signs every request. None: requests are not signed.
    tls : ssl.SSLContext, optional
        Trusted authorities; the system's authorities by default.
    allow_plain_http : bool
        Accept a URL without TLS that is not on loopback.
    patience : float
        Seconds without any answer after which `LinkError` is raised. A request that the server
        has taken may last 30 seconds longer, and a second for each 64 KiB that were moved.
    """

    def __init__(
        self,
        url: str,
        client_id: int,
        identity: Identity | None,
        *,
        tls: ssl.SSLContext | None,
        allow_plain_http: bool,
        patience: float,
    ) -> None:
        self.url = check_url(url, allow_plain_http=allow_plain_http)
        check_seconds(patience=patience)
        encrypted = self.url.startswith("https:")
        self._client_id, self._identity, self._patience = client_id, identity, patience
        self._answered, self._looked = False, -math.inf
        verify = (tls or client_context(None)) if encrypted else False
        try:
            self._http = httpx.AsyncClient(
                base_url=self.url,
                verify=verify,
                trust_env=encrypted,  # a proxy of the environment would read plain HTTP
                headers={"Accept-Encoding": "identity"},
                # a jar would keep all that a server sets, for as long as the member polls
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                limits=httpx.Limits(max_connections=4, keepalive_expiry=30.0),
            )
        except (ImportError, ValueError, httpx.InvalidURL):
            # without the error's text, which may quote a password
            raise LinkError(faults.unusable_proxies(), check="proxy") from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
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
            Largest number of bytes of the content; little more is read. The limit of an error
            is `DOCUMENT`, and a longer error is returned without content.

        Raises
        ------
        LinkError
            "patience": the server did not serve the request within the patience. "tls",
            "proxy": no connection can be made. "size": the response is longer than `limit`.
            "type", "encoding": the response is not of secagg, or is compressed. The message
            has the cause and a remedy; see `secagg.http.faults`.
        """
        pause, began, logged = _FIRST_PAUSE, time.monotonic(), False
        while True:
            longer, left = 0.0, began + self._patience - time.monotonic()
            try:
                # signed each time, since a signature is valid for minutes only
                found = await self._send(method, path, body, limit, left)
            except httpx.TransportError as error:
                fault = faults.of_error(error, self.url, answered=self._answered)
                own = False
            else:
                self._answered = True
                if not faults.is_passing(found):
                    return found
                fault, longer = faults.of_response(found), _retry_after(found)
                own = faults.problem_of(found) is not None
            if not logged and not own:  # a server at a limit is nothing unusual
                text = printable(f"{fault.cause}; {fault.remedy}")  # may quote the server
                logger.warning("%s does not answer (%s); trying again", self.url, text)
                logged = True
            waited = time.monotonic() - began
            if waited >= self._patience:
                raise LinkError(
                    f"{self.url} did not serve a request for {waited:.0f} seconds "
                    f"({fault.cause}); {fault.remedy}",
                    check="patience",
                )
            # random, or all clients of a server that was away would come back at once
            longer += pause * random.uniform(0.5, 1.0)  # noqa: S311
            await asyncio.sleep(min(longer, self._patience - waited))
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _send(
        self, method: str, path: str, body: bytes, limit: int, seconds: float
    ) -> httpx.Response:
        form = {"Content-Length": str(len(body)), "Content-Type": "application/octet-stream"}
        connect = min(_CONNECT, max(seconds, _FIRST_PAUSE))
        clock = _Clock()
        request = self._http.build_request(
            method,
            path,
            content=_pieces(body, clock) if body else None,
            headers=form if body else {},
            timeout=httpx.Timeout(_TIMEOUT, connect=connect, pool=None),
        )
        if self._identity is not None:
            target = request.url.raw_path.decode()
            request.headers.update(
                signatures.sign(self._identity, self._client_id, method, target, body)
            )
        try:
            async with clock.timer:
                found = await self._http.send(request, stream=True)
                self._look_at_certificate(found)
                try:
                    return await _read(found, limit, clock)
                finally:
                    await found.aclose()
        except TimeoutError:
            raise httpx.ReadTimeout("the response comes too slowly", request=request) from None

    def _look_at_certificate(self, found: httpx.Response) -> None:
        """Log a warning once a day if the certificate of the server ends soon."""
        if time.monotonic() < self._looked + certificates.DAY:
            return
        self._looked = time.monotonic()
        end = certificates.end_of_peer(found)
        whose = f"the certificate of {self.url}"
        remedy = "tell the operator of that server, or of the proxy before it"
        if end is not None and (text := certificates.warning(whose, end, time.time(), remedy)):
            logger.warning(text)


class _Clock:
    """Deadline of a request with the response; each moved byte puts the deadline off.

    The HTTP library bounds single reads and writes only, and a server that drips makes many.
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


async def _read(found: httpx.Response, limit: int, clock: _Clock) -> httpx.Response:
    """Return a response with the content; keep no more bytes than the response may have."""
    good = found.status_code == HTTPStatus.OK
    body = bytearray()
    faults.check_type(found)
    if found.headers.get("content-encoding", "identity") != "identity":
        # a few bytes could fill the memory
        if good:
            raise LinkError(
                f"{found.url.host} sent a compressed response, which nobody asked for; turn "
                "compression off at the server or its proxy",
                check="encoding",
            )
        return _kept(found, b"")
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
            # no error of secagg is so long, so the rest is not worth a read
            body.clear()
            break
    return _kept(found, bytes(body))


def _kept(found: httpx.Response, content: bytes) -> httpx.Response:
    """Return a response with this content, which is not compressed."""
    headers = [(k, v) for k, v in found.headers.multi_items() if k != "content-encoding"]
    return httpx.Response(
        found.status_code, headers=headers, content=content, request=found.request
    )


def _retry_after(response: httpx.Response) -> float:
    """Return the seconds of Retry-After (RFC 9110, §10.2.3), at most a minute."""
    value = response.headers.get("retry-after", "")
    # bounded: a program between could otherwise silence a member for days
    if value.isascii() and value.isdigit():
        return min(float(value), _LONGEST_RETRY)
    with suppress(ValueError, TypeError):  # no date, or a date without a time zone
        until = parsedate_to_datetime(value) - datetime.now(UTC)
        return min(max(until.total_seconds(), 0.0), _LONGEST_RETRY)
    return 0.0
