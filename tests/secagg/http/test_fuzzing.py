"""Fuzzing of the HTTP surface from its OpenAPI description, and of the bodies: no 5xx."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from effort import pure_repeats
from http_party import MEMBERS, Party, party_of
from secagg import FixedPoint
from secagg.http import Limits, reach_helper, serve_helper
from secagg.http.helper import AGGREGATOR
from secagg.http.signatures import sign
from secagg.oneshot import OneShotParams
from secagg.session.wire import Answer, Declined, encode, read_task
from secagg.simulate import temporary_journals
from secagg.testing import make_identity

pytestmark = pure_repeats

SETTINGS = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


class Running:
    """A member's server with a round under way, and a helper, in a thread of their own."""

    def __init__(self) -> None:
        self._ready, self._loop = threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_until_complete, args=[self._run()]
        )
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()

    async def _run(self) -> None:
        self._over = asyncio.Event()
        async with AsyncExitStack() as stack:
            limits = Limits(poll_seconds=0.01)
            self.party: Party = await stack.enter_async_context(party_of(limits=limits))
            await self.party.begin()
            self.task = read_task((await self.party.task(1)).content)
            journals = stack.enter_context(temporary_journals(2, "x25519"))
            params = OneShotParams(
                n_clients=MEMBERS,
                length=6,
                encoding=FixedPoint(clip=8.0),
                helpers=tuple(journal.public for journal in journals),
                threshold=2,
                min_clients=3,
                security="semi-honest",
                suite="x25519",
                session=b"app",
            )
            aggregator = make_identity(77)
            service = serve_helper(journals[0], aggregator.public, port=0)
            self.helper_url = await stack.enter_async_context(service)
            reached = reach_helper(self.helper_url, params, identity=aggregator)
            link = await stack.enter_async_context(reached)
            self.sum = link._path.rpartition("/")[2]
            self._ready.set()
            await self._over.wait()


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    server = Running()
    yield server
    server.stop()


def fuzz(url: str, u: int, fixed: dict[str, str]) -> None:
    """Call every operation with what its description allows, and half of them signed."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    for found in schema.get_all_operations():
        operation = found.ok()
        seen = statuses_of(operation, url, u, fixed)
        if operation.path == "/health":
            assert seen == {200}
        elif operation.path != "/v1/session":
            assert 401 in seen
            assert len(seen) > 1  # what was signed got further


def statuses_of(operation: Any, url: str, u: int, fixed: dict[str, str]) -> set[int]:
    identity = make_identity(77 if u == AGGREGATOR else u)
    seen: set[int] = set()

    @SETTINGS
    @given(case=operation.as_strategy(), signed=st.booleans())
    def call(case: Any, signed: bool) -> None:
        headers = {}
        if signed:
            case.path_parameters.update({k: fixed[k] for k in case.path_parameters})
            prepared = requests.Request(**case.as_transport_kwargs(base_url=url)).prepare()
            body = prepared.body or b""
            body = body.encode() if isinstance(body, str) else body
            headers = sign(identity, u, case.method, prepared.path_url, body)
        response = case.call(base_url=url, headers=headers)
        seen.add(response.status_code)
        case.validate_response(response, checks=CHECKS)

    call()
    return seen


def test_members_surface(running):
    fuzz(running.party.serving.url, 1, {"session": "session"})


def test_helpers_surface(running):
    fuzz(running.helper_url, AGGREGATOR, {"sum": running.sum})


def test_mutated_answers(running):
    """No mutation of a true answer is a fault of the server, or accepted for what it is not."""
    answer = encode(Answer(running.task.id, bytes(64)))
    seeds = [answer, encode(Declined(running.task.id))]
    url, http = running.party.serving.url, requests.Session()
    path = "/v1/sessions/session/answer"

    @SETTINGS
    @given(
        seed=st.sampled_from(seeds),
        at=st.integers(0, 90),
        cut=st.integers(0, 3),
        put=st.binary(max_size=9),
    )
    def send(seed: bytes, at: int, cut: int, put: bytes) -> None:
        body = seed[:at] + put + seed[at + cut :]
        statuses = []
        for _ in "ab":  # a network may deliver it twice
            headers = sign(make_identity(2), 2, "POST", path, body)
            response = http.post(url + path, data=body, headers=headers)
            statuses.append(response.status_code)
        assert statuses[0] == statuses[1]
        assert statuses[0] in ((204,) if body == seeds[1] else (403, 409, 413, 422))

    send()


def test_mutated_requests(running):
    """Bytes that are hardly HTTP get a status below 500, or a closed connection."""
    host, _, port = running.party.serving.url.removeprefix("http://").partition(":")
    path = "/v1/sessions/session/answer"
    signed = sign(make_identity(1), 1, "POST", path, b"x")
    lines = [f"POST {path} HTTP/1.1", "Host: h", "Content-Length: 1"]
    good = "\r\n".join([*lines, *(f"{k}: {v}" for k, v in signed.items()), "", "x"]).encode()

    @SETTINGS
    @given(at=st.integers(0, len(good)), cut=st.integers(0, 9), put=st.binary(max_size=9))
    def send(at: int, cut: int, put: bytes) -> None:
        with socket.create_connection((host, int(port)), timeout=60) as one:
            one.sendall(good[:at] + put + good[at + cut :])
            one.shutdown(socket.SHUT_WR)
            first = one.makefile("rb").readline()
        assert not first or 200 <= int(first.split()[1]) < 500

    send()
