"""Requests of members: every rejection has a status and a check, at bounded cost."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from http_party import GARBAGE, PARAMS, REGISTRY, Party, party_of
from secagg import ParameterError
from secagg.http import Limits, application, bodies, problems, serve, server
from secagg.http.budget import Budget
from secagg.http.problems import Problem
from secagg.http.signatures import sign
from secagg.session import Session
from secagg.session.wire import Answer, encode
from secagg.testing import make_identity


@pytest.fixture(autouse=True)
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Close connections soon whose body is not read."""
    monkeypatch.setattr(problems, "_LINGER_SECONDS", 0.1)


def assert_problem(response: Any, status: int, check: str) -> None:
    assert (response.status_code, response.json()["check"]) == (status, check)
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["status"] == status
    assert set(document) == {"type", "title", "status", "detail", "check"}
    assert response.headers["connection"] == "close"  # the rest of a body is never read


REJECTED = {
    "empty signature": ((401, "signature"), {"headers": {"Signature": ""}}),
    "wrong signature": ((401, "signature"), {"identity": make_identity(9)}),
    "unregistered": ((401, "signature"), {"u": 9}),
    "old session": ((404, "session"), {"session": "yesterday"}),
    "other body": ((400, "digest"), {"sent": b"x" * len(GARBAGE)}),
    "garbage": ((422, "encoding"), {"body": b"\x01garbage"}),
    "empty": ((422, "version"), {"body": b"", "sent": b""}),
    "of no task": ((409, "late"), {}),
    "too large": ((413, "length"), {"body": bytes(1 << 16)}),
}


@pytest.mark.parametrize(("expected", "changes"), REJECTED.values(), ids=list(REJECTED))
async def test_answers_that_fail_a_check(expected, changes):
    async with party_of() as party:
        await party.begin()
        for _ in range(2):  # again, and alike
            response = await party.answer(**({"u": 1, "body": GARBAGE} | changes))
            assert_problem(response, *expected)


async def test_missing_length_is_rejected():
    async with party_of() as party:
        await party.begin()

        async def chunks() -> Any:
            yield GARBAGE

        assert_problem(await party.answer(1, GARBAGE, sent=chunks()), 411, "length")
        both = {"Content-Length": "1", "Transfer-Encoding": "chunked"}  # two ends of a body
        assert await raw(party, b"0\r\n\r\n", both) == 411
        # h11 rejects what is not a number
        assert await raw(party, b"", {"Content-Length": "-1"}) in (400, 411)


async def test_polls_that_fail_a_check():
    async with party_of() as party:
        assert_problem(await party.request("GET", "/task?after=0", 1), 400, "after")
        assert_problem(await party.request("GET", "/task?after=" + "g" * 32, 1), 400, "after")
        assert_problem(await party.task(1, session="yesterday"), 404, "session")
        assert_problem(await party.task(1, identity=make_identity(2)), 401, "signature")
        assert_problem(await party.task(1, sent=b"body"), 413, "length")
        assert_problem(await party.http.get("/nothing"), 404, "path")
        assert_problem(await party.http.put("/v1/sessions/session/answer"), 405, "method")
        assert_problem(await party.http.post("/health", content=b"x"), 405, "method")


async def test_clients_that_are_no_members_and_ended_sessions():
    async with party_of(session=Session([0, 1, 2])) as party:
        assert_problem(await party.task(3), 403, "unknown client")
        await party.session.close()
        assert_problem(await party.task(1), 410, "ended")
        assert_problem(await party.answer(1, GARBAGE), 410, "ended")


async def test_task_is_given_while_it_is_open_and_not_twice_after_its_id():
    async with party_of(limits=Limits(poll_seconds=0.01)) as party:
        await party.begin()
        first, again = await party.task(1), await party.task(1)
        assert first.status_code == again.status_code == 200
        assert first.content == again.content
        after = first.content[5:21].hex()  # version, array, tag, length, id
        assert (await party.request("GET", f"/task?after={after}", 1)).status_code == 204


async def begun(
    party: Party, headers: dict[str, str], u: int = 1, path: str = "/answer"
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Begin a request whose headers h11 or httpx would not send, and none of its body."""
    method = "POST" if path == "/answer" else "GET"
    target = f"/v1/sessions/session{path}"
    sent = sign(make_identity(u), u, method, target, b"") | {"Host": "h"} | headers
    lines = [f"{method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in sent.items()), "", ""]
    port = int(party.serving.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("\r\n".join(lines).encode())
    return reader, writer


async def status_of(reader: asyncio.StreamReader) -> int:
    return int((await reader.readline()).split()[1])


async def raw(party: Party, body: bytes, headers: dict[str, str]) -> int:
    """Send a request, and return the status."""
    reader, writer = await begun(party, headers)
    writer.write(body)
    status = await status_of(reader)
    writer.close()
    return status


@pytest.mark.parametrize("known", [True, False], ids=["member", "stranger"])
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
@pytest.mark.parametrize("path", ["/answer", "/task"])
async def test_check55_ten_gigabytes_are_rejected_unread(known, declared, path, monkeypatch):
    """Headers are read, and what comes with them in the same read of the event loop."""
    size, taken = 10 * 10**9, list[int]()
    take = server._Protocol.data_received

    def count(self: Any, data: bytes) -> None:
        taken.append(len(data))
        take(self, data)

    monkeypatch.setattr(server._Protocol, "data_received", count)

    async with party_of() as party:
        await party.begin()
        how = {"Content-Length": str(size)} if declared else {"Transfer-Encoding": "chunked"}
        before = sum(taken)
        reader, writer = await begun(party, how, 1 if known else 9, path)
        # as little as possible waits in the kernel, so that what was sent was read
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        sent, piece = 0, bytes(1 << 16)
        chunk = piece if declared else b"10000\r\n" + piece + b"\r\n"
        status = asyncio.ensure_future(status_of(reader))
        with suppress(ConnectionError):
            while sent < size and not reader.at_eof():
                writer.write(chunk)
                await writer.drain()
                sent += len(piece)
                if status.done():
                    break
        assert await status == (
            413 if path == "/task" else 401 if not known else 413 if declared else 411
        )
        assert sum(taken) - before <= 1 << 18
        assert party.session.answer_limit < 1 << 20
        writer.close()


async def test_body_is_read_up_to_its_limit_only():
    """An ASGI server that does not enforce Content-Length gains nothing."""

    class Endless:
        read = 0

        async def stream(self) -> Any:
            while True:
                self.read += 1
                yield bytes(100)

    request = Endless()
    async with Budget(1000).announced(250, 0) as body:
        with pytest.raises(Problem) as caught:
            await bodies.read(request, body, "")  # type: ignore[arg-type]
    assert (caught.value.status, request.read) == (413, 3)


async def test_body_that_does_not_come_in_time_ends_with_a_status():
    async with party_of(limits=Limits(body_seconds=0.05)) as party:
        await party.begin()
        assert await raw(party, b"", {"Content-Length": "5"}) == 408


async def test_polls_are_limited_for_all_and_for_each():
    async with party_of(limits=Limits(polls=6)) as party:
        waiting = [asyncio.create_task(party.task(u)) for u in (0, 0, 0, 0, 1)]
        await party.until_polls(5)
        response = await party.task(0)  # one more of a client
        assert_problem(response, 503, "busy")
        assert response.headers["retry-after"] == "1"
        waiting.append(asyncio.create_task(party.task(2)))
        await party.until_polls(6)
        assert_problem(await party.task(3), 503, "busy")  # one more of all
        await party.session.close()
        assert [(await one).status_code for one in waiting] == [410] * 6
        await party.until_polls(0)


async def test_member_that_hangs_up_stops_waiting(caplog):
    async with party_of() as party:
        waiting = asyncio.create_task(party.task(0))
        await party.until_polls(1)
        waiting.cancel()
        await party.until_polls(0)  # forever, if the server does not notice
        assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


async def test_response_that_nobody_reads_gives_its_bytes_back():
    budget, sent = Budget(1 << 20, seconds=0.01), list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)
        if len(sent) == 3:
            assert budget.held == 1 << 20
            await asyncio.get_running_loop().create_future()

    response = bodies.Bytes(bytes(1 << 20), budget.whole(1 << 20, 1))
    await response({}, None, send)  # type: ignore[arg-type]
    assert budget.held == 0
    assert [len(message["body"]) for message in sent[1:]] == [1 << 16] * 2


@pytest.mark.parametrize(
    ("headers", "read", "pieces"),
    [
        ({"content-length": "9"}, True, 0),
        ({"content-length": "65536"}, False, 16),
        ({"content-length": "65537"}, False, 0),
        ({"content-length": "-1"}, False, 0),
        ({"content-length": "9" * 5000}, False, 0),
        ({"transfer-encoding": "chunked"}, False, 0),
        ({"transfer-encoding": "chunked", "content-length": "1"}, False, 0),
    ],
    ids=str,
)
def test_small_rejected_body_is_dropped_before_the_close(headers, read, pieces, monkeypatch):
    """A connection that is closed at once is reset, and the client may lose the response."""
    monkeypatch.setattr(problems, "_LINGER_SECONDS", 0.01 if not pieces else 60.0)
    done: list[Any] = []
    scope = {"headers": [(k.encode(), v.encode()) for k, v in headers.items()]}

    async def receive() -> Any:
        done.append("read")
        scope[problems.BODY_READ] = done.count("read") == pieces
        return {"type": "http.request", "body": bytes(1 << 12)}

    async def send(message: Any) -> None:
        done.append(message.get("status") or message["body"][:1])

    response = problems.response(Problem(413, "length", "why"))
    asyncio.run(response(scope | {problems.BODY_READ: True} if read else scope, receive, send))
    assert done == [413, b"{", *["read"] * pieces, b""]


async def test_check55_one_member_cannot_take_the_bytes_of_all():
    async with party_of() as party:
        await party.begin()
        writers = []
        for count in range(1, 5):  # bodies that never come
            writers.append((await begun(party, {"Content-Length": "100"}))[1])
            held = f"secagg_http_bytes_in_flight {100 * count}.0"
            while held not in (await party.operator("/metrics")).text:
                pass
        assert_problem(await party.answer(1, GARBAGE), 503, "busy")
        assert_problem(await party.task(1), 503, "busy")
        assert_problem(await party.answer(2, GARBAGE), 409, "late")
        assert (await party.task(2)).status_code == 200
        for writer in writers:
            writer.close()


LONG = replace(PARAMS, length=100_000)
"""Its masked vectors have 400 kB."""
TWO = Limits(bytes_in_flight=1 << 20, body_seconds=6.0)
"""Room for two of them, and 100 ms for a pause while others wait."""


@pytest.mark.parametrize("size", [1, 70_000, 399_000])
@pytest.mark.parametrize("liars", [[1, 1, 1, 1], [1, 1, 2, 2, 3]], ids=["one", "three"])
async def test_check55_members_that_announce_bodies_do_not_starve_others(size, liars):
    async with party_of(limits=TWO) as party:
        await party.begin(LONG)
        writers = []
        for u in liars:  # a part of a body of the largest size
            length = {"Content-Length": str(party.session.answer_limit)}
            writers.append((await begun(party, length, u=u))[1])
            writers[-1].write(bytes(size))
        large = encode(Answer(bytes(16), bytes(party.session.answer_limit - 100)))
        assert (await party.answer(0, large)).status_code == 409
        assert_problem(await party.answer(0, GARBAGE), 409, "late")
        for writer in writers:
            writer.close()


async def test_check55_tasks_of_all_members_at_once_wait_for_their_turn(monkeypatch):
    """The message is a model; there is room for one of them."""
    inside, sizes = list[int](), list[int]()

    class Seen(bodies.Bytes):
        async def __call__(self, *about: Any) -> None:
            inside.append(len(self._content))
            sizes.append(sum(inside))
            await super().__call__(*about)
            inside.pop()

    monkeypatch.setattr(application, "Bytes", Seen)
    async with party_of(limits=Limits(bytes_in_flight=400000)) as party:
        members = party.join_all()
        result = await party.session.round(PARAMS, bytes(300_000))
        assert (result.sum == 1.5).all()
        assert 300_000 < max(sizes) < 400_000
        await party.session.close()
        assert await asyncio.gather(*members) == [1] * 4


async def test_answer_before_the_first_round_is_to_be_sent_again():
    """A server that resumes would otherwise lose the answer to its earlier process."""
    async with party_of() as party:
        assert_problem(await party.answer(1, GARBAGE), 503, "busy")


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("/a/secret"), 500), (ParameterError("/a/secret"), 503)]
)
async def test_errors_of_the_server_have_no_text_of_it(error, status, monkeypatch, caplog):
    """Such as a journal that fails, which is no fault of the member."""

    async def broken(*_: object) -> None:
        raise error

    caplog.set_level(logging.CRITICAL, "uvicorn.error")
    async with party_of() as party:
        await party.begin()
        monkeypatch.setattr(party.session, "accept", broken)
        response = await party.answer(1, GARBAGE)
        assert_problem(response, status, "server")
        assert "secret" not in response.text


@pytest.mark.parametrize(
    "bad",
    [{"polls": 0}, {"bytes_in_flight": 0}, {"poll_seconds": 0}, {"body_seconds": float("nan")}],
    ids=str,
)
def test_limits_are_positive(bad):
    with pytest.raises(ParameterError):
        Limits(**bad)


async def served(**given: Any) -> None:
    async with serve(**{"session": Session(REGISTRY), "registry": REGISTRY, "port": 0} | given):
        pass


PLAIN = {"allow_plain_http": True}
GOOD = [{"host": "127.8.8.8"}, {"host": "localhost"}, {"host": "0.0.0.0", **PLAIN}]  # noqa: S104
WRONG = [{"host": "0.0.0.0"}, {"host": "192.0.2.1"}, {"host": "example.org"}]  # noqa: S104
WRONG += [{"registry": {}}, {"session": "s"}, {"limits": 3}, {"port": "1"}, {"port": 1 << 16}]


@pytest.mark.parametrize("given", GOOD, ids=str)
def test_plain_http_is_served_on_loopback_or_if_asked_for(given):
    asyncio.run(served(**given))


@pytest.mark.parametrize("given", WRONG, ids=str)
def test_arguments_of_serve_are_validated(given):
    with pytest.raises(ParameterError):
        asyncio.run(served(**given))


async def test_port_in_use_is_named():
    async with party_of() as party:
        port = int(party.serving.url.rpartition(":")[2])
        with pytest.raises(OSError, match=str(port)):
            await served(port=port)
