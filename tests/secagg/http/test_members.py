"""Members over HTTP: exact sums though every request comes twice, retries, and refusals."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from http_party import MEMBERS, PARAMS, REGISTRY, Party, party_of, vector_of
from secagg import ClientPolicy, LinkError, ParameterError
from secagg.http import connection, join, serve
from secagg.http.connection import Connection
from secagg.session import MemberDeclined, MessageAccepted, MessageRejected, Session
from secagg.testing import make_identity

ACTIVE = replace(PARAMS, security="active", threshold=3)


def assert_plain_sum(result: Any, survivors: set[int]) -> None:
    assert set(result.survivors) == survivors
    assert (result.sum == sum(vector_of(u, PARAMS.length) for u in survivors)).all()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certificate(authority: trustme.CA, tmp_path: Any) -> tuple[str, str]:
    issued = authority.issue_cert("localhost", "127.0.0.1")
    files = (str(tmp_path / "chain.pem"), str(tmp_path / "key.pem"))
    for blob in issued.cert_chain_pems:
        blob.write_to_path(files[0], append=True)
    issued.private_key_pem.write_to_path(files[1])
    return files


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Send every request twice at once; return the statuses of both responses."""
    send, statuses = Connection._send, []

    async def both(self: Connection, *request: Any) -> httpx.Response:
        first, second = await asyncio.gather(*[send(self, *request) for _ in "ab"])
        statuses.append((first.status_code, second.status_code))
        return first

    monkeypatch.setattr(Connection, "_send", both)
    return statuses


@pytest.mark.parametrize(
    "params",
    [PARAMS, replace(PARAMS, suite="hybrid"), ACTIVE, replace(ACTIVE, suite="hybrid")],
    ids=["semi-honest", "semi-honest, hybrid", "active", "active, hybrid"],
)
async def test_rounds_over_https_with_all_requests_sent_twice(
    params, authority, certificate, twice
):
    events: list[Any] = []
    session = Session(REGISTRY, registry=REGISTRY, on_event=[events.append])
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    async with party_of(session, tls=certificate) as party:
        assert party.serving.url.startswith("https://")
        registry = REGISTRY if params.active else None
        members = party.join_all(registry=registry, tls=trusted)
        for _ in range(2):
            assert_plain_sum(await session.round(params), set(range(MEMBERS)))
        await session.close()
        assert await asyncio.gather(*members) == [2] * MEMBERS
    phases = 5 if params.active else 4
    accepted = [event for event in events if isinstance(event, MessageAccepted)]
    assert len(accepted) == 2 * phases * MEMBERS
    assert not any(isinstance(event, MessageRejected) for event in events)
    assert (204, 204) in twice


@pytest.mark.parametrize("cut", [ssl.SSLEOFError, ssl.SSLZeroReturnError, OSError])
def test_handshakes_that_a_leaving_server_cuts_are_repeated(monkeypatch, cut):
    lost = httpx.ConnectError("lost")
    lost.__cause__ = cut("cut")
    script = Script(monkeypatch, lost, httpx.Response(204))
    assert asyncio.run(script.request()).status_code == 204
    assert len(script.requests) == 2


async def test_refused_members_and_servers_without_sessions_are_named():
    async with party_of() as party:
        with pytest.raises(LinkError) as caught:
            await party.join(2, identity=make_identity(3))
        assert caught.value.check == "signature"
        with pytest.raises(LinkError) as caught:
            await join(party.serving.operator_url, 1, print, identity=make_identity(1))
        assert caught.value.check == "session"


TWO = {"n_clients": 2, "threshold": 2, "allow_two_clients": True}


@pytest.mark.parametrize(
    ("changes", "policy"), [(TWO, ClientPolicy()), ({}, ClientPolicy(colluders=3))]
)
async def test_unsafe_parameters_are_rejected_before_data_leaves(changes, policy):
    calls, events = list[object](), list[Any]()

    session = Session(REGISTRY, attempts=1, on_event=[events.append])
    async with party_of(session) as party:
        members = party.join_all(train=lambda *about: calls.append(about), policy=policy)
        running = asyncio.create_task(session.round(replace(PARAMS, **changes)))
        done, _ = await asyncio.wait(members, return_when=asyncio.FIRST_EXCEPTION)
        assert isinstance(next(iter(done)).exception(), ParameterError)
        for one in (*members, running):
            one.cancel()
    assert any(isinstance(event, MemberDeclined) for event in events)
    assert not any(isinstance(event, MessageAccepted) for event in events)
    assert not calls


class Script:
    """Server that answers by a list of responses or errors, and the pauses in between."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
        self.answers, self.pauses = list(answers), []
        self.requests: list[httpx.Request] = []
        self.time = 0.0
        monkeypatch.setattr(connection.asyncio, "sleep", self.sleep)
        monkeypatch.setattr(connection.time, "monotonic", lambda: self.time)
        monkeypatch.setattr(connection.random, "uniform", lambda low, high: high)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, Exception):
            raise found
        return found

    async def request(self, body: bytes = b"x", **options: Any) -> httpx.Response:
        options = {"tls": None, "allow_plain_http": False, "patience": 60.0} | options
        async with Connection("http://127.0.0.1:1", 1, make_identity(1), **options) as one:
            one._http = httpx.AsyncClient(
                base_url=one.url, transport=httpx.MockTransport(self.answer)
            )
            return await one.request("POST", "/answer", body)


def test_failed_requests_are_repeated_with_growing_pauses(monkeypatch, caplog):
    lost = httpx.ConnectError("connection refused")
    script = Script(monkeypatch, lost, httpx.ReadTimeout(""), httpx.Response(500), lost,
                    httpx.Response(204))  # fmt: skip
    assert asyncio.run(script.request()).status_code == 204
    assert script.pauses == [0.1, 0.2, 0.4, 0.8]
    assert {request.content for request in script.requests} == {b"x"}
    (record,) = caplog.records  # of all retries together
    assert record.levelname == "WARNING"
    assert "connection refused" in record.getMessage()


OLD, LATE = "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 2994 08:49:37 GMT"
RETRIES = {"7": 7, "86400": 60, "-1": 0, "soon": 0, OLD: 0, LATE: 60, LATE[:-4]: 0}


@pytest.mark.parametrize(("value", "seconds"), RETRIES.items())
def test_retry_after_is_honoured_up_to_a_minute(monkeypatch, value, seconds):
    busy = httpx.Response(503, headers={"Retry-After": value})
    script = Script(monkeypatch, busy, httpx.Response(204))
    assert asyncio.run(script.request(patience=600.0)).status_code == 204
    assert script.pauses == [pytest.approx(seconds + 0.1)]


def test_silent_server_is_an_error_when_patience_ends(monkeypatch):
    script = Script(monkeypatch, httpx.ConnectError("connection refused"))
    with pytest.raises(LinkError, match="connection refused") as caught:
        asyncio.run(script.request())
    assert caught.value.check == "patience"
    assert max(script.pauses) == 10
    assert sum(script.pauses) == pytest.approx(60)
    connects = [one.extensions["timeout"]["connect"] for one in script.requests]
    assert connects[0] == 10
    assert connects[-1] < 1


@pytest.mark.parametrize("patience", [3.0, 0.01])
def test_patience_bounds_the_pauses_also_those_that_the_server_asks_for(monkeypatch, patience):
    script = Script(monkeypatch, httpx.Response(503, headers={"Retry-After": "60"}))
    with pytest.raises(LinkError):
        asyncio.run(script.request(patience=patience))
    assert sum(script.pauses) == pytest.approx(patience)


WRONG = ["http://example.org", "http://192.0.2.1:8443", "ftp://127.0.0.1", "127.0.0.1:8443"]
WRONG += ["https://", "https://host:port", "https://host:0", "https://host/path"]
WRONG += ["https://user@host", "https://host?a=b", {"identity": bytes(32)}, {"patience": 0}]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_arguments_of_join_are_validated(wrong):
    url, more = (wrong, {}) if isinstance(wrong, str) else ("http://127.0.0.1:1", wrong)
    with pytest.raises(ParameterError):
        asyncio.run(join(url, 1, print, **{"identity": make_identity(1)} | more))


def test_plain_http_elsewhere_is_possible_on_request(monkeypatch):
    async def unreachable(*_: object, **__: object) -> httpx.Response:
        raise httpx.ConnectError("no route")

    monkeypatch.setattr(httpx.AsyncClient, "send", unreachable)
    options = {"allow_plain_http": True, "patience": 1e-9}
    with pytest.raises(LinkError):
        asyncio.run(join("http://192.0.2.1:1", 1, print, identity=make_identity(1), **options))


async def test_plain_http_to_loopback_uses_no_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:3128")
    monkeypatch.setenv("ALL_PROXY", "http://192.0.2.1:3128")

    async with party_of() as party:
        members = party.join_all()
        await party.session.close()
        await asyncio.gather(*members)


async def test_a_failed_program_ends_waiting_requests_without_tracebacks(caplog):
    """Its members would be waited for, and then cancelled; they find the next server."""

    class Failed(Exception):
        pass

    session, polls = Session(REGISTRY), []

    async def program(http: httpx.AsyncClient) -> None:
        async with serve(session, REGISTRY, port=0) as at:
            http.base_url = at.url
            party = Party(session, at, http)
            polls.extend(asyncio.create_task(party.task(u)) for u in range(MEMBERS))
            await party.until_polls(MEMBERS)
            raise Failed

    async with httpx.AsyncClient(timeout=30) as http:
        with pytest.raises(Failed):
            await program(http)
        for response in await asyncio.gather(*polls):
            assert response.status_code == 503
            assert int(response.headers["retry-after"]) > 0
    assert not session.closed
    await session.close()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.large
async def test_server_killed_twice_is_resumed_and_members_find_it(ram_path, twice):
    """It is killed in the first and in the second round, in the middle of a phase."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    support = Path(__file__).parents[2] / "support"

    async def serve_until(dies_after: int) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(support / "http_server.py"),
            str(ram_path / "folder"),
            str(port),
            str(dies_after),
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [*sys.path, support]))},
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        return process.returncode, out.decode()

    url, train = f"http://127.0.0.1:{port}", vector_of
    members = [
        asyncio.create_task(
            join(url, u, lambda _, p, u=u: train(u, p.length), identity=make_identity(u))
        )
        for u in range(MEMBERS)
    ]
    assert await serve_until(6) == (-signal.SIGKILL, "")
    assert await serve_until(21) == (-signal.SIGKILL, "4 1.5\n")
    assert await serve_until(-1) == (0, "4 1.5\n" * 3)
    assert await asyncio.gather(*members) == [3] * MEMBERS
