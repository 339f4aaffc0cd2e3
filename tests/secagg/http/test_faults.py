"""Faults of requests: each error names the cause, the place, the value and a remedy.

Every case is a server on a socket. Most answer as the proxies, gateways and portals do that
stand between a member and its server.
"""

from __future__ import annotations

import asyncio
import datetime
import gzip
import json
import re
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
import trustme

from secagg import LinkError, RemoteProtocolError
from secagg.http import HttpLink, faults
from secagg.http import connection as connection_module
from secagg.http.connection import Connection
from secagg.testing import make_identity


def response(
    status: int, content: bytes = b"", kind: str = "text/html", **headers: str
) -> bytes:
    named = {"Content-Type": kind, "Content-Length": str(len(content)), **headers}
    lines = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in named.items())
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + content


NAME = response(200, b'{"session":"s"}', "application/json")


def problem(status: int, check: str, detail: str) -> bytes:
    document = {"title": "X", "status": status, "check": check, "detail": detail}
    return response(status, json.dumps(document).encode(), "application/problem+json")


@asynccontextmanager
async def answering(
    answer: bytes, *, about: bytes = NAME, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Yield the port of a server that answers with `about` for the session, then `answer`."""
    tasks = set[asyncio.Task[None] | None]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await respond(reader, writer):
                    pass
        finally:
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"accept-encoding: identity" in head.lower() or b"CONNECT" in head
        said = about if b" /v1/session " in head else answer
        if said == RESET:  # which drops what was sent
            raw, linger = writer.get_extra_info("socket"), struct.pack("ii", 1, 0)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if said in (RESET, CLOSE):
            return False
        length = re.search(rb"(?i)content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        writer.write(said)
        await writer.drain()
        return True

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            for task in tasks:
                assert task is not None
                task.cancel()
            await asyncio.gather(*filter(None, tasks), return_exceptions=True)


RESET, CLOSE = b"reset", b"close"


async def sent(url: str, body: bytes = b"answer", tls: Any = None) -> tuple[str, str]:
    """Send an answer; return check and text of the error."""
    options = {"tls": tls, "allow_plain_http": False, "patience": 0.5}
    with pytest.raises((LinkError, RemoteProtocolError)) as caught:
        async with Connection(url, 1, make_identity(1), **options) as one:
            await HttpLink(one).send(body)
    assert str(caught.value).isprintable()
    assert "SECRET" not in str(caught.value)
    return caught.value.check, str(caught.value)


def fails(
    caplog: pytest.LogCaptureFixture,
    answer: bytes,
    *,
    about: bytes = NAME,
    body: bytes = b"answer",
    tls: ssl.SSLContext | None = None,
    trust: ssl.SSLContext | None = None,
) -> tuple[str, str, list[str]]:
    """Send an answer; return check and text of the error, and what was logged before."""

    async def test() -> tuple[str, str]:
        async with answering(answer, about=about, tls=tls) as port:
            return await sent(f"http{'s' if tls else ''}://127.0.0.1:{port}", body, trust)

    check, text = asyncio.run(test())
    own = connection_module.logger.name
    return check, text, [one.getMessage() for one in caplog.records if one.name == own]


def assert_words(text: str, *words: str) -> None:
    assert not [word for word in words if word not in text], text


PORTAL = "https://portal.example/login?token=SECRET"
GZIP = {"Content_Encoding": "gzip"}
PAGE = gzip.compress(b"<html>")
BOMB = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 99\r\n\r\n"
"""It has no body, so whoever reads on waits."""
FOREIGN = {
    "redirected to TLS": (
        response(301, Location="https://sums.example/v1/sessions/s/answer"),
        "redirect",
        ["301", "https://sums.example", "pass the URL"],
    ),
    "found elsewhere": (response(302, Location=PORTAL), "redirect", ["302", PORTAL[:28]]),
    "user": (response(302, Location="http://u:SECRET@a.example/"), "redirect", ["a.example"]),
    "page of a portal": (response(200, b"<html>"), "type", ["text/html", "portal"]),
    "page, compressed": (response(200, PAGE, **GZIP), "type", ["text/html"]),
    "compressed task": (BOMB, "encoding", ["comp"]),
    "forbidden": (response(403, b"<html>", Server="WAF/1"), "status", ["WAF/1", "proxy"]),
    "too large": (response(413, PAGE, **GZIP), "status", ["413", " 6 bytes", "POST", "limit"]),
    "unprocessable": (response(422, b'{"detail": []}', "application/json"), "status", ["422"]),
    "network login": (response(511, b"<html>"), "status", ["511", "sign in"]),
    "created": (response(201), "status", ["201", "proxies"]),
    "control characters": (response(403, Server="a\x1b[2J"), "status", ["403"]),
}


@pytest.mark.parametrize(("answer", "check", "words"), FOREIGN.values(), ids=list(FOREIGN))
@pytest.mark.parametrize("first", [True, False], ids=["session", "answer"])
def test_answers_of_programs_on_the_way_have_a_remedy(first, answer, check, words, caplog):
    if first:
        words = [one for one in words if one not in (" 6 bytes", "POST", "pass the URL")]
    found, text, logged = fails(caplog, answer, about=answer if first else NAME)
    assert found == check
    assert_words(text, *words, "127.0.0.1")
    assert not logged


def test_some_statuses_can_pass_and_every_remedy_has_the_place():
    passing = set()
    for status in {*faults._REMEDIES, 200, 204, 409, 422, 451}:
        found = httpx.Response(status, request=httpx.Request("GET", "http://h/v1/session"))
        assert_words(faults.of_response(found).cause, str(status), "http://h", "/v1/session")
        if faults.is_passing(found):
            passing.add(status)
    assert passing == {408, 429, 502, 503, 504}


PASSING = {
    "too many": (response(429, Retry_After="0"), ["429", "accepts"]),
    "error": (response(500, b"<html>", Server="nginx"), ["500", "nginx"]),
    "reset": (RESET, ["Limits"]),
    "closed": (CLOSE, ["Limits"]),
    "other protocol": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", ["status line"]),
}


@pytest.mark.parametrize(("answer", "words"), PASSING.values(), ids=list(PASSING))
@pytest.mark.parametrize("size", [6, 1 << 22])
def test_faults_that_may_pass_are_logged_and_then_told(size, answer, words, caplog):
    check, text, (logged,) = fails(caplog, answer, body=bytes(size))
    assert check == "patience"
    for one in (text, logged):
        assert_words(one, *words)
        assert "https://" not in one  # the server has answered without TLS before


OWN = {"busy": "Limits", "server": "log", "deadline": "line", "new": "patience"}


@pytest.mark.parametrize(("check", "remedy"), OWN.items())
def test_a_server_at_a_limit_says_so_itself(check, remedy, caplog):
    found, text, logged = fails(caplog, problem(503, check, "a reason"))
    assert found == "patience"
    assert_words(text, "a reason", remedy, "503")
    assert not logged  # nothing unusual, and it passes


@pytest.mark.parametrize("status", [400, 403, 422])
def test_the_servers_own_words_are_told(status, caplog):
    check, text, _ = fails(caplog, problem(status, "length", "the body has more than 9 bytes"))
    assert check == "length"
    assert_words(text, "more than 9 bytes")
    assert "proxy" not in text


@pytest.mark.parametrize("about", [RESET, CLOSE, b"\x15\x03\x03\x00\x02\x02\x46\r\n\r\n"])
def test_the_first_answer_can_miss_for_want_of_tls(about, caplog):
    check, text, (logged,) = fails(caplog, b"", about=about)
    assert check == "patience"
    assert_words(text, "https://")
    assert_words(logged, "https://")


def dated(first: int, last: int) -> dict[str, datetime.datetime]:
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    return {"not_before": now + first * day, "not_after": now + last * day}


CERTIFICATES = {
    "other address": (["127.0.0.2"], {}, True, "name"),
    "other name": (["sums.example"], {}, True, "name"),
    "expired": (["127.0.0.1"], dated(-9, -1), True, "renew"),
    "not yet valid": (["127.0.0.1"], dated(1, 9), True, "clock"),
    "untrusted": (["127.0.0.1"], {}, False, "authority"),
}


@pytest.mark.parametrize(
    ("names", "dates", "trusted", "word"), CERTIFICATES.values(), ids=list(CERTIFICATES)
)
def test_certificates_that_fail_are_told_apart(names, dates, trusted, word, caplog):
    authority, trust = trustme.CA(), ssl.create_default_context()
    if trusted:
        authority.configure_trust(trust)
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names, **dates).configure_cert(theirs)
    check, text, logged = fails(caplog, b"", tls=theirs, trust=trust)
    assert check == "tls"
    assert_words(text, word)
    assert not logged


@pytest.mark.parametrize("about", [NAME, response(400)], ids=["200", "400"])
async def test_tls_to_a_server_without_it_is_told(about):
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(5)
        writer.write(about)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        check, text = await sent(f"https://127.0.0.1:{port}")
    assert check == "tls"
    assert_words(text, "http://")


@pytest.fixture
def proxies(monkeypatch):
    """Set variables of the environment, without the proxies of this machine."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch.setenv


VARIABLES = [
    "HTTPS_PROXY",
    "ALL_PROXY",
    "all_proxy",
    "https_proxy HTTPS_PROXY",
    "HTTPS_PROXY all_proxy",
    "ALL_PROXY HTTP_PROXY",
]
"""Variables that are set, the used one first."""


@pytest.mark.parametrize("names", VARIABLES)
@pytest.mark.parametrize("status", [407, 403, 429, 502, None])
def test_the_used_variable_of_a_proxy_is_named(names, status, proxies, caplog):
    """Without a status the proxy is away."""
    used, *others = names.split()

    async def test() -> None:
        async with answering(response(status or 200)) as port:
            for name in (used, *others):
                proxies(name, f"http://me:SECRET@127.0.0.1:{port if name == used else 9}")
            if status is not None:
                return port, *await sent("https://sums.example:8443")
        return port, *await sent("https://sums.example:8443")

    port, check, text = asyncio.run(test())
    assert check == ("proxy" if status in (407, 403) else "patience")
    # the first fault is logged, and the last on a slow machine is a timeout
    told = text + caplog.text
    assert_words(told, f"127.0.0.1:{port} of {used}", str(status or "NO_PROXY"))
    assert not [name for name in others if re.search(rf"(?<!\w){name}(?!\w)", text)]
    if status == 407:
        assert_words(text, f"user and password into {used}:", "NO_PROXY")
    assert "SECRET" not in caplog.text


def test_login_of_a_proxy_on_the_way_of_plain_http_has_a_remedy(proxies, caplog):
    """The proxies of the environment are not asked, and their variables no remedy."""
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        proxies(name, "http://127.0.0.1:9")
    check, text, _ = fails(caplog, response(407))
    assert check == "status"
    assert_words(text, "take https:// with HTTPS_PROXY=http://user:password@host")
    assert "NO_PROXY" not in text


UNUSABLE = {
    "ALL_PROXY": "socks5h://me:SECRET@127.0.0.1:9",
    "https_proxy": "socks4://me:SECRET@127.0.0.1:9",
    "HTTPS_PROXY": "http://me:SECRET@[::1",
    "all_proxy": "http://me:SECRET@host:99999999",
    "HTTP_PROXY": "foo://SECRET",
    "NO_PROXY": "[::1",
    "no_proxy": "host:port:SECRET",  # a name that no host has
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_proxies_of_the_environment_are_named(name, proxies):
    proxies(name, UNUSABLE[name])
    _, text = asyncio.run(sent("https://127.0.0.2:9"))
    assert name in text or name == "no_proxy"


@pytest.mark.parametrize("url", ["http://127.0.0.1:{}", "https://no-host.invalid:{}"])
def test_nobody_listens(url):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = url.format(taken.getsockname()[1])
    check, text = asyncio.run(sent(url, tls=None))
    assert check == "patience"
    assert_words(text, url, "host name" if "invalid" in url else "runs")
