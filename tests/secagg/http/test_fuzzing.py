"""Fuzzing of the HTTP surface from its OpenAPI description, and of the bodies.

No request is a fault of the server, and none leaves anything in its memory.
"""

from __future__ import annotations

import asyncio
import email.utils
import gc
import logging
import random
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import AsyncExitStack
from heapq import heapify
from itertools import pairwise
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

from effort import pure_repeats, scaled
from http_party import GARBAGE, Party, one_shot_params, party_of
from secagg.http import Limits, reach_helper, serve_helper
from secagg.http.helper import AGGREGATOR
from secagg.http.signatures import sign
from secagg.session.wire import Answer, Declined, encode, read_task
from secagg.simulate import temporary_journals
from secagg.testing import make_identity

pytestmark = pure_repeats

SETTINGS = settings(
    max_examples=scaled(40, 10),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


NOT_OF_REQUESTS = [
    tracemalloc.Filter(False, name)
    for name in (tracemalloc.__file__, asyncio.events.__file__, email.utils.__file__)
]
"""Memory of the measurement, and of uvicorn's clock, which grows with the seconds."""
ANSWER = "/v1/sessions/session/answer"


class Running:
    """A member's server with a round under way, and a helper, in a thread of their own."""

    def __init__(self) -> None:
        self._ready, self.loop = threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_until_complete, args=[self._run()])
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self.loop.close()

    async def _run(self) -> None:
        self._over = asyncio.Event()
        async with AsyncExitStack() as stack:
            limits = Limits(poll_seconds=0.01)
            self.party: Party = await stack.enter_async_context(party_of(limits=limits))
            await self.party.begin()
            self.task = read_task((await self.party.task(1)).content)
            journals = stack.enter_context(temporary_journals(2, "x25519"))
            params = one_shot_params(journals, security="semi-honest")
            aggregator = make_identity(77)
            service = serve_helper(journals[0], aggregator.public, port=0)
            self.helper_url = await stack.enter_async_context(service)
            reached = reach_helper(self.helper_url, params, identity=aggregator)
            link = await stack.enter_async_context(reached)
            self.sum = link._path.rpartition("/")[2]
            self.tasks = asyncio.all_tasks()
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


def mutations(data: bytes) -> st.SearchStrategy[bytes]:
    """Strategy for the bytes with a part cut out, and other bytes in its place."""
    edits = st.tuples(st.integers(0, len(data)), st.integers(0, 9), st.binary(max_size=9))
    return edits.map(lambda edit: data[: edit[0]] + edit[2] + data[sum(edit[:2]) :])


def test_mutated_answers(running):
    """No mutation of a true answer is a fault of the server, or accepted for what it is not."""
    declined = encode(Declined(running.task.id))
    url, http = running.party.serving.url, requests.Session()
    answer = encode(Answer(running.task.id, bytes(64)))

    @given(mutations(answer) | mutations(declined))
    def send(body: bytes) -> None:
        statuses = []
        for _ in "ab":  # a network may deliver it twice
            headers = sign(make_identity(2), 2, "POST", ANSWER, body)
            response = http.post(url + ANSWER, data=body, headers=headers)
            statuses.append(response.status_code)
        assert statuses[0] == statuses[1]
        assert statuses[0] in ((204,) if body == declined else (403, 409, 413, 422))

    send()


def test_mutated_requests(running):
    """Bytes that are hardly HTTP get a status below 500, or a closed connection."""
    host, _, port = running.party.serving.url.removeprefix("http://").partition(":")
    head = {"Host": "h", "Content-Length": "1"}
    head |= sign(make_identity(1), 1, "POST", ANSWER, b"x")
    lines = [f"POST {ANSWER} HTTP/1.1", *(f"{k}: {v}" for k, v in head.items()), "", "x"]

    @given(mutations("\r\n".join(lines).encode()))
    def send(request: bytes) -> None:
        status = _status(host, int(port), request, ends=True)
        assert asyncio.run(asyncio.wait_for(status, 60)) < 500

    send()


class Hostile:
    """Requests of a stranger or a bad member, most of them rejected, no two the same.

    Attributes
    ----------
    statuses : set of int
        Statuses of the responses; 0 for a connection closed without one.
    """

    def __init__(self, running: Running, seed: int) -> None:
        self._rng, self._running = random.Random(seed), running
        self.statuses: set[int] = set()
        self._operations = [
            (url, method, path)
            for url in (running.party.serving.url, running.helper_url)
            for path, method in self._described(url)
        ]
        self._weights = [5 if "{" in path else 1 for _, _, path in self._operations]
        self._bodies = [GARBAGE, encode(Answer(running.task.id, bytes(64)))]

    @staticmethod
    def _described(url: str) -> list[tuple[str, str]]:
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
        found = [operation.ok() for operation in schema.get_all_operations()]
        return [(one.path, one.method.upper()) for one in found]

    async def send(self, count: int) -> int:
        """Send requests, one after the other; return the bytes that Python has afterwards."""
        for _ in range(count):
            self.statuses.add(await self._send())
        while asyncio.all_tasks() - {asyncio.current_task(), *self._running.tasks}:
            await asyncio.sleep(0)  # the server's ends of the connections
        loop: Any = asyncio.get_running_loop()  # which drops cancelled timers at some time only
        loop._scheduled = [timer for timer in loop._scheduled if not timer.cancelled()]
        loop._timer_cancelled_count = 0
        heapify(loop._scheduled)
        gc.collect()
        traces = tracemalloc.take_snapshot().filter_traces(NOT_OF_REQUESTS).traces
        return sum(trace.size for trace in traces)

    async def _send(self) -> int:
        rng = self._rng
        ((url, method, path),) = rng.choices(self._operations, self._weights)
        fault = rng.choice(["", "", "", "path", "path", "unsigned", "stranger", "key", "bytes"])
        for name, value in {"{session}": "session", "{sum}": self._running.sum}.items():
            path = path.replace(name, rng.randbytes(80).hex() if fault == "path" else value)
        if path.endswith("/task"):
            path += f"?after={rng.randbytes(rng.choice([9, 16])).hex()}"
        body = self._body() if method == "POST" else b""
        head = {"Host": "h", "Connection": "close", "Content-Length": str(len(body))}
        if fault != "unsigned":
            u = 1 if url != self._running.helper_url else AGGREGATOR
            key = make_identity(
                77 if u == AGGREGATOR and fault != "key" else 1 + (fault == "key")
            )
            head |= sign(key, 9 if fault == "stranger" else u, method, path, body)
        lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in head.items()), "", ""]
        request = "\r\n".join(lines).encode() + body
        host, _, port = url.removeprefix("http://").partition(":")
        if fault == "bytes":
            return await _status(host, int(port), self._spoilt(request), ends=True)
        return await _status(host, int(port), request, ends=False)

    def _body(self) -> bytes:
        late = encode(Answer(self._rng.randbytes(16), self._rng.randbytes(64)))
        return self._rng.choice([*map(self._spoilt, self._bodies), late])

    def _spoilt(self, data: bytes) -> bytes:
        at, size = self._rng.randrange(len(data)), self._rng.randrange(9)
        return data[:at] + self._rng.randbytes(size) + data[at + self._rng.randrange(9) :]


async def _status(host: str, port: int, request: bytes, *, ends: bool) -> int:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(request)
        if ends:
            writer.write_eof()
        first, _ = await reader.readline(), await reader.read()
        return int(first.split()[1]) if first else 0
    except ConnectionError:
        return 0
    finally:
        writer.close()


def growth(running: Running, warm_up: int, batch: int) -> float:
    """Return by how many bytes for each request the memory of Python grows.

    It is the least growth of four batches, since a leak is in each of them.
    """
    hostile = Hostile(running, batch)
    tracemalloc.start()
    try:

        async def send() -> list[int]:
            await hostile.send(warm_up)
            return [await hostile.send(batch) for _ in range(5)]

        held = asyncio.run_coroutine_threadsafe(send(), running.loop).result()
    finally:
        tracemalloc.stop()
    assert hostile.statuses >= {204, 400, 401, 404, 409, 422}
    assert max(hostile.statuses) < 500
    return min(after - before for before, after in pairwise(held)) / batch


def test_requests_leave_nothing_in_memory(running, caplog):
    caplog.set_level(logging.CRITICAL)  # it keeps what is logged
    assert growth(running, 400, scaled(400, 100)) < 2
