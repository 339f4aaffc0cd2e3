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
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import pytest
import trustme

from secagg import LinkError, RemoteProtocolError
from secagg.http import HttpLink
from secagg.http import connection as connection_module
from secagg.http.connection import Connection
from secagg.testing import make_identity

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], None]


class Said(NamedTuple):
    """Error of a member: its check, its text, and what was logged before."""

    check: str
    text: str
    logged: str


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


async def sent(
    url: str, body: bytes = b"answer", tls: ssl.SSLContext | None = None
) -> tuple[str, str]:
    """Send an answer; return check and text of the error."""
    options = {"tls": tls, "allow_plain_http": False, "patience": 0.5}
    async with Connection(url, 1, make_identity(1), **options) as one:
        with pytest.raises((LinkError, RemoteProtocolError)) as caught:
            await HttpLink(one).send(body)
    assert str(caught.value).isprintable()
    return caught.value.check, str(caught.value)


def fails(
    caplog: pytest.LogCaptureFixture,
    answer: bytes,
    *,
    about: bytes = NAME,
    body: bytes = b"answer",
    scheme: str = "http",
    tls: ssl.SSLContext | None = None,
    trust: ssl.SSLContext | None = None,
) -> Said:
    async def test() -> tuple[str, str]:
        async with answering(answer, about=about, tls=tls) as port:
            return await sent(f"{scheme}://127.0.0.1:{port}", body, trust)

    check, text = asyncio.run(test())
    own = connection_module.logger.name
    return Said(
        check, text, "\n".join(one.getMessage() for one in caplog.records if one.name == own)
    )


FOREIGN = {
    "redirected to TLS": (
        response(301, Location="https://sums.example/v1/sessions/s/answer"),
        "redirect",
        ["301", "https://sums.example", "pass the URL"],
    ),
    "found elsewhere": (
        response(302, Location="https://portal.example/login?token=SECRET"),
        "redirect",
        ["302", "https://portal.example/login", "portal"],
    ),
    "see other": (response(303, Location="/login"), "redirect", ["303", "/login", "/v1/"]),
    "temporary": (response(307, Location="//a.example/"), "redirect", ["307", "a.example"]),
    "permanent": (response(308, Location="http://[::1]/a"), "redirect", ["308", "[::1]"]),
    "no place": (response(302), "redirect", ["302"]),
    "user": (response(302, Location="http://u:SECRET@a.example/"), "redirect", ["a.example"]),
    "page of a portal": (response(200, b"<html>"), "type", ["text/html", "portal"]),
    "page, compressed": (
        response(200, gzip.compress(b"<html>"), Content_Encoding="gzip"),
        "type",
        ["text/html"],
    ),
    "plain page": (response(200, b"ok", "text/plain"), "type", ["text/plain"]),
    "bad request": (response(400, b"sent HTTP to HTTPS"), "status", ["400", "https://"]),
    "login": (response(401, WWW_Authenticate="Basic"), "status", ["401", "login", "/v1/"]),
    "forbidden": (
        response(403, b"<html>", Server="WAF/1"),
        "status",
        ["403", "WAF/1", "proxy"],
    ),
    "not found": (response(404, b"<html>"), "status", ["404", "port"]),
    "method": (response(405), "status", ["405", "POST"]),
    "login of a proxy": (response(407), "status", ["407", "https://", "HTTPS_PROXY"]),
    "conflict": (response(409, b"{}", "application/json"), "status", ["409"]),
    "no length": (response(411), "status", ["411", "Content-Length"]),
    "too large": (
        response(413, b"<html>", Server="nginx"),
        "status",
        ["413", "nginx", " 6 bytes", "client_max_body_size"],
    ),
    "too large, compressed": (
        response(413, gzip.compress(b"<html>"), Content_Encoding="gzip"),
        "status",
        ["413", "client_max_body_size"],
    ),
    "misdirected": (response(421), "status", ["421", "host name"]),
    "unprocessable": (response(422, b'{"detail": []}', "application/json"), "status", ["422"]),
    "headers": (response(431), "status", ["431", "headers"]),
    "law": (response(451), "status", ["451", "proxies"]),
    "network login": (response(511, b"<html>"), "status", ["511", "sign in"]),
    "created": (response(201), "status", ["201"]),
    "control characters": (response(403, Server="a\x1b[2J"), "status", ["403"]),
    "compressed task": (
        response(200, gzip.compress(b"x"), "application/json", Content_Encoding="gzip"),
        "encoding",
        ["compress"],
    ),
}


@pytest.mark.parametrize(("answer", "check", "words"), FOREIGN.values(), ids=list(FOREIGN))
@pytest.mark.parametrize("first", [True, False], ids=["session", "answer"])
def test_answers_of_programs_on_the_way_end_with_the_remedy(
    first, answer, check, words, caplog
):
    if first:
        words = [one for one in words if one not in (" 6 bytes", "POST", "pass the URL")]
    said = fails(caplog, answer, about=answer if first else NAME)
    assert said.check == check
    assert not [one for one in [*words, "127.0.0.1"] if one not in said.text]
    assert "SECRET" not in said.text
    assert not said.logged


PASSING = {
    "timeout": (response(408), ["408", "proxy"]),
    "too many": (response(429, Retry_After="0"), ["429", "accepts"]),
    "error": (response(500, b"<html>"), ["500"]),
    "bad gateway": (response(502, b"<html>", Server="nginx"), ["502", "nginx", "address"]),
    "away": (response(503, b"<html>"), ["503", "start the server"]),
    "gateway's timeout": (response(504, b"<html>"), ["504", "minute"]),
    "compressed": (
        response(502, gzip.compress(b"<html>"), Content_Encoding="gzip"),
        ["502", "start the server"],
    ),
    "reset": (RESET, ["Limits"]),
    "closed": (CLOSE, ["Limits"]),
    "other protocol": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", ["status line"]),
}


@pytest.mark.parametrize(("answer", "words"), PASSING.values(), ids=list(PASSING))
@pytest.mark.parametrize("size", [6, 1 << 22])
def test_faults_that_may_pass_are_logged_and_told_when_patience_ends(
    size, answer, words, caplog
):
    said = fails(caplog, answer, body=bytes(size))
    assert said.check == "patience"
    for text in (said.text, said.logged):
        assert not [one for one in words if one not in text]
        assert "https://" not in text  # the server has answered without TLS before
    assert len(said.logged.splitlines()) == 1


OWN = {
    "bytes": ("busy", "too many bytes are in flight; try again in a second", "Limits"),
    "polls": ("busy", "too many requests wait for a task; try again in a second", "patience"),
    "disk": ("server", "the server cannot store answers", "log"),
    "journal": ("journal", "the helper's journal failed", "log"),
    "slow": ("deadline", "the body came too slowly; send it again", "line"),
    "other": ("new", "a reason of a later version", "patience"),
}


@pytest.mark.parametrize(("check", "detail", "remedy"), OWN.values(), ids=list(OWN))
def test_a_server_at_a_limit_says_so_itself(check, detail, remedy, caplog):
    said = fails(caplog, problem(503, check, detail))
    assert said.check == "patience"
    assert not [one for one in (detail, remedy, "503") if one not in said.text]
    assert "proxy" not in said.text
    assert not said.logged  # nothing unusual, and it passes


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 411, 413, 422])
def test_the_servers_own_words_are_told(status, caplog):
    said = fails(caplog, problem(status, "length", "the body has more than 9 bytes"))
    assert said.check == "length"
    assert "more than 9 bytes" in said.text
    assert "proxy" not in said.text


@pytest.mark.parametrize("about", [RESET, CLOSE, b"\x15\x03\x03\x00\x02\x02\x46\r\n\r\n"])
def test_the_first_answer_can_miss_for_want_of_tls(about, caplog):
    said = fails(caplog, b"", about=about)
    assert said.check == "patience"
    assert "https://" in said.text
    assert "https://" in said.logged


def dated(first: int, last: int) -> dict[str, datetime.datetime]:
    now = datetime.datetime.now(datetime.UTC)
    return {
        "not_before": now + datetime.timedelta(days=first),
        "not_after": now + datetime.timedelta(days=last),
    }


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
    authority, mine, trust = trustme.CA(), ssl.create_default_context(), None
    if trusted:
        authority.configure_trust(mine)
        trust = mine
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names, **dates).configure_cert(theirs)
    said = fails(caplog, b"", scheme="https", tls=theirs, trust=trust)
    assert said.check == "tls"
    assert word in said.text
    assert not said.logged


@pytest.mark.parametrize("about", [NAME, response(400)], ids=["200", "400"])
def test_tls_to_a_server_without_it_is_told(about, caplog):
    async def test() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(5)
            writer.write(about)
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            check, text = await sent(f"https://127.0.0.1:{port}")
        assert check == "tls"
        assert "http://" in text

    asyncio.run(test())


PROXIES = {
    "login": (response(407), "proxy", ["407", "HTTPS_PROXY", "NO_PROXY"]),
    "forbidden": (response(403), "proxy", ["403", "NO_PROXY"]),
    "not found": (response(404), "proxy", ["404", "NO_PROXY"]),
    "too many": (response(429), "patience", ["429", "HTTPS_PROXY"]),
    "unreachable": (response(502), "patience", ["502", "HTTPS_PROXY"]),
    "timeout": (response(504), "patience", ["504", "HTTPS_PROXY"]),
}


@pytest.fixture
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete the proxies of this machine from the environment."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


VARIABLES = {
    "HTTPS_PROXY": ["HTTPS_PROXY"],
    "https_proxy": ["https_proxy"],
    "ALL_PROXY": ["ALL_PROXY"],
    "all_proxy": ["all_proxy"],
    "https_proxy of two": ["https_proxy", "HTTPS_PROXY"],
    "all_proxy of two": ["all_proxy", "ALL_PROXY"],
    "HTTPS_PROXY beside ALL_PROXY": ["HTTPS_PROXY", "ALL_PROXY"],
    "HTTPS_PROXY beside all_proxy": ["HTTPS_PROXY", "all_proxy"],
    "https_proxy beside ALL_PROXY": ["https_proxy", "ALL_PROXY"],
    "ALL_PROXY beside HTTP_PROXY": ["ALL_PROXY", "HTTP_PROXY"],
    "HTTPS_PROXY beside HTTP_PROXY": ["HTTPS_PROXY", "HTTP_PROXY"],
}
"""Variables that are set, the used one first."""


@pytest.mark.usefixtures("without_proxies")
@pytest.mark.parametrize("status", [407, 403, 502])
@pytest.mark.parametrize("names", VARIABLES.values(), ids=list(VARIABLES))
def test_the_used_variable_of_a_proxy_is_named(names, status, monkeypatch):
    async def test() -> None:
        async with answering(response(status)) as port:
            for name in names:
                there = port if name == names[0] else 9
                monkeypatch.setenv(name, f"http://me:SECRET@127.0.0.1:{there}")
            _, text = await sent("https://sums.example:8443")
        assert f"127.0.0.1:{port} of {names[0]}" in text
        assert not [name for name in names[1:] if re.search(rf"(?<!\w){name}(?!\w)", text)]
        if status == 407:
            assert f"user and password into {names[0]}:" in text
            assert "NO_PROXY" in text
        assert "SECRET" not in text

    asyncio.run(test())


@pytest.mark.usefixtures("without_proxies")
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
def test_a_proxy_that_is_away_is_named_with_its_variable(name, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setenv(name, f"http://{address}")
    check, text = asyncio.run(sent("https://sums.example:8443"))
    assert check == "patience"
    assert f"{address} of {name})" in text


@pytest.mark.usefixtures("without_proxies")
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"])
def test_login_of_a_proxy_on_the_way_of_plain_http_has_a_remedy(name, monkeypatch, caplog):
    """The proxies of the environment are not asked, and their variables no remedy."""
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    said = fails(caplog, response(407))
    assert said.check == "status"
    assert "take https:// with HTTPS_PROXY=http://user:password@host" in said.text
    assert "NO_PROXY" not in said.text


@pytest.mark.usefixtures("without_proxies")
@pytest.mark.parametrize(("answer", "check", "words"), PROXIES.values(), ids=list(PROXIES))
def test_proxies_of_the_environment_are_named(answer, check, words, monkeypatch, caplog):
    async def test() -> None:
        async with answering(answer) as port:
            monkeypatch.setenv("HTTPS_PROXY", f"http://me:SECRET@127.0.0.1:{port}")
            found, text = await sent("https://sums.example:8443")
        assert found == check
        assert not [one for one in [*words, f"127.0.0.1:{port}"] if one not in text]
        assert "SECRET" not in text + caplog.text

    asyncio.run(test())


@pytest.mark.usefixtures("without_proxies")
def test_a_proxy_that_is_away_is_named(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setenv("HTTPS_PROXY", address)
    check, text = asyncio.run(sent("https://sums.example:8443"))
    assert check == "patience"
    assert not [one for one in (address, "NO_PROXY") if one not in text]


UNUSABLE = [
    ("ALL_PROXY", "socks5h://me:SECRET@127.0.0.1:9"),
    ("HTTPS_PROXY", "socks5://me:SECRET@127.0.0.1:9"),
    ("https_proxy", "socks4://me:SECRET@127.0.0.1:9"),
    ("HTTPS_PROXY", "foo://me:SECRET@bar"),
    ("HTTPS_PROXY", "http://me:SECRET@[::1"),
    ("HTTPS_PROXY", "http://me:SECRET@host:port"),
    ("HTTPS_PROXY", "http://me:SECRET@host:99999999"),
    ("ALL_PROXY", "ftp://SECRET"),
    ("HTTP_PROXY", "foo://SECRET"),
    ("NO_PROXY", "[::1"),
    ("no_proxy", "host:port:SECRET"),
]


@pytest.mark.usefixtures("without_proxies")
@pytest.mark.parametrize(("name", "value"), UNUSABLE)
def test_unusable_proxies_of_the_environment_are_named(name, value, monkeypatch):
    monkeypatch.setenv(name, value)

    async def test() -> None:
        with pytest.raises(LinkError) as caught:
            async with Connection(
                "https://127.0.0.2:9",
                1,
                make_identity(1),
                tls=None,
                allow_plain_http=False,
                patience=0.05,
            ) as one:
                await HttpLink(one).send(b"answer")
        text = str(caught.value)
        assert name in text or name == "no_proxy"  # a name that no host has
        assert "SECRET" not in text

    asyncio.run(test())


def test_nobody_listens(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    check, text = asyncio.run(sent(url))
    assert check == "patience"
    assert not [one for one in (url, "runs") if one not in text]
