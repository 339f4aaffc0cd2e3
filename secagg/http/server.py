"""Server of a session over HTTPS, on uvicorn, in the event loop of the application."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from secagg._check import check_integer
from secagg.errors import ParameterError
from secagg.http import asgi, certificates
from secagg.http.address import check_host
from secagg.http.application import Members
from secagg.http.bodies import Limits
from secagg.http.operator import Operator
from secagg.protocol import Registry
from secagg.session import Session

_GRACE = 10
"""Seconds that requests under way have to end."""
_FAREWELL = 5.0
"""Seconds for members that compute to learn that the session has ended."""
_BACKLOG = 2048

Certificate = tuple[Path | str, Path | str]
"""Files in PEM: a certificate with the chain, and the private key."""


@dataclass(frozen=True)
class Serving:
    """Addresses of a server.

    Attributes
    ----------
    url : str
        Base URL for the members.
    operator_url : str
        URL of the status page, or "" without one.
    """

    url: str
    operator_url: str


@asynccontextmanager
async def serve(
    session: Session,
    registry: Registry,
    *,
    host: str = "127.0.0.1",
    port: int = 8443,
    tls: Certificate | None = None,
    operator_port: int | None = 0,
    allow_plain_http: bool = False,
    limits: Limits | None = None,
) -> AsyncIterator[Serving]:
    """Serve a session's members while the block runs, then end the session.

    If the block raises an error, the session does not end. The members then reconnect to the
    next server with the session's folder, for as long as their patience lasts.

    Parameters
    ----------
    session : Session
    registry : Registry
        Public keys of all members. Requests of others are rejected.
    host : str
        Address to listen on.
    port : int
        Port, 0 for any free one.
    tls : (path, path), optional
        Files in PEM with the certificate and with the private key.
    operator_port : int, optional
        Port of the status page and of the metrics, which are served on loopback only; None
        for neither.
    allow_plain_http : bool
        Serve other machines without TLS, where a proxy or a tunnel encrypts.
    limits : Limits, optional

    Yields
    ------
    Serving

    Raises
    ------
    ParameterError
        An argument is invalid, or plain HTTP would leave the machine.
    OSError
        A port is in use, or a file cannot be read.
    """
    members = Members(session, registry, limits or Limits())
    check_host(host, encrypted=tls is not None, allow_plain_http=allow_plain_http)
    async with AsyncExitStack() as stack:
        public = listening(asgi.build(members.routes()), host, port, tls)
        url, operator_url = await stack.enter_async_context(public), ""
        if operator_port is not None:
            page = Operator(session, members)
            if (end := certificates.end_of(tls and tls[0])) is not None:
                page.show_certificate(end)
            private = listening(page.application(), "127.0.0.1", operator_port, None)
            operator_url = await stack.enter_async_context(private)
        try:
            yield Serving(url, operator_url)
            await session.close()
            await members.farewell(_FAREWELL)
        finally:
            members.stop()  # the server waits for requests under way


@asynccontextmanager
async def listening(
    app: ASGIApp, host: str, port: int, tls: Certificate | None
) -> AsyncIterator[str]:
    """Serve an application while the block runs; yields the base URL."""
    certificate, key = tls or (None, None)
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        # anybody can send a proxy's headers, and nothing here depends on addresses
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=_GRACE,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except ssl.SSLError as error:
        raise ParameterError(
            f"{certificate} and {key} are no certificate and its key: {error}; pass both in PEM"
        ) from None
    with _listener(host, port) as listener:
        server = _Server(config)
        running = asyncio.ensure_future(server.serve(sockets=[listener]))
        watching = asyncio.ensure_future(certificates.watch(certificate))
        try:
            name = f"[{host}]" if ":" in host else host
            yield f"http{'s' if tls else ''}://{name}:{listener.getsockname()[1]}"
        finally:
            watching.cancel()
            server.should_exit = True
            await running


class _Protocol(H11Protocol):
    """Protocol that reads only the bytes of a body that the application asks for.

    uvicorn itself reads 64 KiB ahead, of strangers' bodies, too.
    """

    def data_received(self, data: bytes) -> None:
        """Take the received bytes, and read no more until the application asks for bytes."""
        super().data_received(data)
        cycle = self.cycle
        if cycle is not None and cycle.more_body and not cycle.response_complete:
            self.flow.pause_reading()


class _Server(uvicorn.Server):
    """Server that leaves signals to the application, and runs in the application's loop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listener(host: str, port: int) -> socket.socket:
    check_integer("the port", port, 0, 65535)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise OSError(
            error.errno, f"cannot listen on {host} port {port}: {error.strerror}"
        ) from None
