"""Signed requests to one server, repeated with pauses until it answers."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Self

import httpx

from secagg.errors import LinkError, ParameterError
from secagg.http import signatures
from secagg.http.address import check_url, client_context
from secagg.protocol import Identity

DOCUMENT = 1 << 16
"""Bytes of a response that is a small document, as every error is: more than any has."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
"""Seconds before the second request, and the bound of those that double from there."""
_TIMEOUT = httpx.Timeout(30.0, connect=10.0, pool=None)
_LONGEST_RETRY = 60.0
_QUOTED = 500
"""Characters of a server's text that an error quotes."""
_AGAIN = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


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
        Seconds without any answer after which `LinkError` is raised.
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
            timeout=_TIMEOUT,
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
            "patience": the server did not answer within the patience. "size": its response is
            longer than `limit`. "encoding": its response is compressed.
        """
        pause, last_answer = _FIRST_PAUSE, time.monotonic()
        while True:
            why, longer = "", 0.0
            try:
                # signed each time, since a signature is valid for minutes only
                found = await self._send(method, path, body, limit)
            except httpx.TransportError as error:
                why = f"{type(error).__name__} {error}".rstrip()
            else:
                if found.status_code not in _AGAIN and found.status_code < 500:
                    return found
                why, longer = f"status {found.status_code}", _retry_after(found)
            waited = time.monotonic() - last_answer
            if waited > self._patience:
                raise LinkError(
                    f"{self.url} did not answer for {waited:.0f} seconds ({why}); check that "
                    "the server runs, or pass a longer patience",
                    check="patience",
                )
            # random, or all clients of a server that was away would come back at once
            await asyncio.sleep(longer + pause * random.uniform(0.5, 1.0))  # noqa: S311
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _send(self, method: str, path: str, body: bytes, limit: int) -> httpx.Response:
        headers = {"Content-Type": "application/octet-stream"} if body else {}
        request = self._http.build_request(method, path, content=body or None, headers=headers)
        target = request.url.raw_path.decode()
        request.headers.update(
            signatures.sign(self._identity, self._client_id, method, target, body)
        )
        found = await self._http.send(request, stream=True)
        try:
            return await _read(found, limit)
        finally:
            await found.aclose()


async def _read(found: httpx.Response, limit: int) -> httpx.Response:
    """Return a response with its content, of which no more is held than it may have."""
    good = found.status_code == HTTPStatus.OK
    body = bytearray()
    async for piece in found.aiter_bytes():
        body += piece
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
