"""Responses of lying servers: none makes a party hold more than the response may have."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from http_party import one_shot_params
from secagg import LinkError, RemoteProtocolError
from secagg.http import HttpHelper, HttpLink
from secagg.http import connection as connection_module
from secagg.http import link as link_module
from secagg.http.connection import DOCUMENT, Connection
from secagg.oneshot import OneShotParams
from secagg.simulate import temporary_journals
from secagg.testing import make_identity

SIZE = 10 * 10**9
STOP = 16 << 20
"""Bytes after which a server gives up, lest a test that fails fill the memory."""
MOST = 8 << 20
"""More than what waits in the kernel's buffers."""


class Liar:
    """Server whose answers are `length` bytes: ``content``, over and over.

    With `about`, the session's name is one of them.
    """

    def __init__(
        self,
        length: int = SIZE,
        status: int = 200,
        *,
        declared: bool = True,
        about: bool = False,
    ) -> None:
        self.length, self.status, self.declared = length, status, declared
        self.about = about
        self.content = b"x" * (1 << 16)
        self.sent = self.requests = 0
        self.cookies: list[bytes] = []
        self.open = 0
        self.idle = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        # as little as possible waits in the kernel, so that what was sent was read
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
                self.cookies += re.findall(rb"(?i)cookie: (.*)", head)
                self.requests += 1
                await self._respond(writer, head.split()[1])
                if self.sent >= STOP:
                    break
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        self.open -= 1
        self.idle.set() if not self.open else None

    async def _respond(self, writer: asyncio.StreamWriter, path: bytes) -> None:
        if path == b"/v1/session" and not self.about:
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"session":"s"}')
            return
        how = b"Content-Length: %d" % self.length if self.declared else b""
        how = how or b"Transfer-Encoding: chunked"
        cookie = b"Set-Cookie: c%d=1" % self.requests
        writer.write(b"HTTP/1.1 %d X\r\n%b\r\n%b\r\n\r\n" % (self.status, how, cookie))
        left = self.length
        while left and self.sent < STOP:
            piece = self.content[:left]
            writer.write(piece if self.declared else b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            left -= len(piece)
            self.sent += len(piece)
        writer.write(b"" if self.declared else b"0\r\n\r\n")


@asynccontextmanager
async def connected(liar: Liar) -> AsyncIterator[Connection]:
    server = await asyncio.start_server(liar.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    options = {"tls": None, "allow_plain_http": False, "patience": 0.1}
    async with server:
        try:
            async with Connection(url, 0, make_identity(0), **options) as connection:
                yield connection
        finally:
            while liar.open:
                liar.idle.clear()
                await liar.idle.wait()


@pytest.fixture(scope="module")
def params() -> Iterator[OneShotParams]:
    with temporary_journals(4, "x25519") as journals:
        yield one_shot_params(journals)


async def call(connection: Connection, step: str, params: OneShotParams) -> Any:
    """Make a call of a member or of an aggregator."""
    if step == "task":
        return await HttpLink(connection).next_task(b"")
    if step == "session":
        return await HttpLink(connection).send(b"answer")
    helper = HttpHelper(connection, params)
    helper.number = 2
    return await (helper.begin() if step == "begin" else getattr(helper, step)(b"x" * 100))


async def told(liar: Liar, params: OneShotParams, step: str) -> Any:
    """Return the error of a call at a server that lies."""
    async with connected(liar) as connection:
        with pytest.raises((LinkError, RemoteProtocolError)) as caught:
            await call(connection, step, params)
    return caught.value


LIMITS: dict[str, Callable[[OneShotParams], int]] = {
    "task": lambda params: 1 << 20,
    "session": lambda params: DOCUMENT,
    "begin": lambda params: 64,
    "check": lambda params: 164,
    # docs/oneshot.md, 5.1: three seeds of helper 2, vectors of six elements of 32 bits
    "reserve": lambda params: 34 + 2 + 32 + 64,
    "open": lambda params: 34 + 2 + 32 + 3 * 6 * 4,
}


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
@pytest.mark.parametrize("step", [step for step in LIMITS if step != "session"])
async def test_check55_ten_gigabytes_are_read_up_to_a_limit(
    params, step, declared, monkeypatch
):
    monkeypatch.setattr(link_module, "_LARGEST_TASK", LIMITS["task"](params))

    liar = Liar(declared=declared)
    assert (await told(liar, params, step)).check == "size"
    assert liar.sent < MOST


@pytest.mark.parametrize("step", LIMITS)
def test_one_byte_over_the_limit_is_too_much(params, step, monkeypatch):
    limit = LIMITS[step](params)
    monkeypatch.setattr(link_module, "_LARGEST_TASK", LIMITS["task"](params))

    async def test(length: int) -> Any:
        async with connected(Liar(length, about=step == "session")) as connection:
            return await call(connection, step, params)

    if step in ("task", "reserve", "open"):
        assert len(asyncio.run(test(limit))) == limit
    elif step != "session":
        with pytest.raises(RemoteProtocolError) as wrong:  # read, and then judged
            asyncio.run(test(limit))
        assert wrong.value.check in ("signature", "encoding")
    with pytest.raises(LinkError) as caught:
        asyncio.run(test(limit + 1))
    assert caught.value.check == "size"


@pytest.mark.parametrize("step", ["task", "open"])
@pytest.mark.parametrize("status", [403, 422, 503])
async def test_errors_of_ten_gigabytes_keep_their_status(params, step, status):
    liar = Liar(status=status)
    error = await told(liar, params, step)
    assert error.check == ("patience" if status == 503 else "status")
    assert liar.sent < MOST * max(liar.requests - 1, 1)


EVIL = "a\x1b[2J\x07\x9b31m\u202e\u2066\r\nsecagg: sums: 1\ud800"
CONTROL = json.dumps({"check": EVIL, "detail": EVIL}).encode()
DEEP = b"[" * (1 << 15)
DOCUMENTS = {
    "brackets of an error": ("open", 422, DEEP, "status"),
    "brackets of a name": ("session", 200, DEEP, "session"),
    "high surrogate": ("session", 200, rb'{"session": "a\ud800"}', "session"),
    "low surrogate": ("session", 200, rb'{"session": "\udc80z"}', "session"),
    "control characters of a check": ("open", 422, CONTROL, "31m"),
    "control characters of a refusal": ("open", 403, CONTROL, "31m"),
}


@pytest.mark.parametrize(
    ("step", "status", "content", "check"), DOCUMENTS.values(), ids=list(DOCUMENTS)
)
def test_check55_documents_of_a_liar_are_errors_that_print(
    params, step, status, content, check
):
    liar = Liar(len(content), status, about=True)
    liar.content = content
    error = asyncio.run(told(liar, params, step))
    assert check in error.check
    assert (str(error) + error.check).isprintable()


async def test_cookies_of_a_server_are_not_kept(params):
    liar = Liar(10)
    async with connected(liar) as connection:
        for _ in range(3):
            await call(connection, "open", params)
        assert not list(connection._http.cookies.jar)
    assert (liar.requests, liar.cookies) == (3, [])


HEAD = b"HTTP/1.1 200 OK\r\n"
DRIPS = {
    "status line": (b"HTTP/1.1 200 ", b"O"),
    "informational responses": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "body": (HEAD + b"Content-Length: 60000\r\n\r\n", b"a"),
    "body of a server that is busy": (b"HTTP/1.1 503 X\r\nContent-Length: 9999\r\n\r\n", b"a"),
    "body without a length": (HEAD + b"\r\n", b"a"),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
    "trailers": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n"),
}


class Dripping(Liar):
    """Server that sends `drop` again and again, until the client closes the connection."""

    def __init__(self, start: bytes, drop: bytes) -> None:
        super().__init__()
        self.start, self.drop, self.outlasted = start, drop, False

    async def _respond(self, writer: asyncio.StreamWriter, path: bytes) -> None:
        writer.write(self.start)
        for _ in range(200):
            writer.write(self.drop)
            await writer.drain()
            # of the server: so slowly that no drip reaches a limit before the deadline
            await asyncio.sleep(0.01)
        self.outlasted = True
        self.sent = STOP


@pytest.mark.parametrize("drip", DRIPS.values(), ids=list(DRIPS))
async def test_check55_servers_that_drip_do_not_outlast_the_patience(params, drip, monkeypatch):
    monkeypatch.setattr(connection_module, "_TIMEOUT", 0.1)

    liar = Dripping(*drip)
    assert (await told(liar, params, "begin")).check == "patience"
    assert not liar.outlasted


@pytest.mark.parametrize("seconds", [0.0, 1e9], ids=["slower", "faster"])
async def test_bytes_that_come_put_the_deadline_off(params, seconds, monkeypatch):
    """A long task may take long, if its line is no slower than the documented one."""
    size = 1 << 20
    monkeypatch.setattr(connection_module, "_SLOWEST", size / max(seconds, 1e-9))
    clocks, now = list[connection_module._Clock](), 0.0

    class Clock(connection_module._Clock):
        def __init__(self) -> None:
            super().__init__()
            clocks.append(self)

    monkeypatch.setattr(connection_module, "_Clock", Clock)

    now = asyncio.get_running_loop().time()
    async with connected(Liar(size)) as connection:
        found = await connection.request("POST", "/", bytes(size), limit=size)
    assert len(found.content) == size
    late = clocks[-1]._end - now - connection_module._TIMEOUT
    assert late == pytest.approx(2 * seconds, rel=0.01, abs=10)


async def test_large_bodies_are_sent_in_pieces_with_their_length():
    """The HTTP library would bound the time for all of a piece by that for one read."""
    heads, bodies = list[bytes](), list[bytes]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        bodies.append(await reader.readexactly(size))
        writer.write(b"HTTP/1.1 204 X\r\n\r\n")
        writer.close()

    size, content = 1_000_001, bytes(range(250)) * 4000 + b"x"
    liar = Liar()
    liar.serve = serve  # type: ignore[method-assign]
    async with connected(liar) as connection:
        assert (await connection.request("POST", "/", content)).status_code == 204
    assert bodies == [content]
    assert b"content-length: 1000001" in heads[0].lower()
    assert b"transfer-encoding" not in heads[0].lower()
