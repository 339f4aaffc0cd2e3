"""`secagg join` at a server that has ended or lies, and with a key that others use."""

from __future__ import annotations

import asyncio
import json
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from secagg import ClientPolicy, ParameterError, Registry, http
from secagg.cli import app
from secagg.cli.files import create_identity
from secagg.session import Completed, Session
from secagg.session.wire import Task, encode


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Server of alice and bob, whose keys are in the folder; its session is over."""
    registry = Registry(
        {name: create_identity(tmp_path / f"{name}.pem").public for name in ("alice", "bob")}
    )
    np.save(tmp_path / "v.npy", np.ones(2))
    addresses, ended, loop = list[str](), asyncio.Event(), asyncio.new_event_loop()
    ready = threading.Event()

    async def run() -> None:
        session = Session(registry)
        async with http.serve(session, registry, port=0) as at:
            await session.close()
            addresses.append(at.url)
            ready.set()
            await ended.wait()

    server = threading.Thread(target=lambda: loop.run_until_complete(run()))
    server.start()
    assert ready.wait(60)
    yield addresses[0]
    loop.call_soon_threadsafe(ended.set)
    server.join()
    loop.close()


def join(url: str, folder: Path, client: str, key: str, *more: object) -> Result:
    files = ("--identity", folder / f"{key}.pem", "--vector", folder / "v.npy")
    return CliRunner().invoke(
        app, list(map(str, ("join", url, "--client", client, *files, *more)))
    )


def test_client_that_was_in_no_sum_does_not_succeed(url, tmp_path):
    ran = join(url, tmp_path, "alice", "alice", "--json")
    assert ran.exit_code == 2
    counts = {"sums": 0, "reports": 0, "numbers": []}
    assert json.loads(ran.stdout) == {"client": "alice"} | counts
    assert "client alice was in no sum" in ran.stderr


@pytest.mark.parametrize(("client", "key"), [("alice", "bob"), ("eve", "alice")])
def test_refused_client_gets_what_to_check(url, tmp_path, client, key):
    ran = join(url, tmp_path, client, key)
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert f"{key}.pem is the key of --client {client}, and" in ran.stderr


def test_demands_of_a_client_hold_for_every_sum(tmp_path, monkeypatch):
    asked = {}

    async def taken(*_, policy, one_shot_policy, **__):
        asked.update(four=policy, one=one_shot_policy)
        return Completed([0], [])

    monkeypatch.setattr(http, "join", taken)
    create_identity(tmp_path / "a.pem")
    np.save(tmp_path / "v.npy", np.ones(2))
    (tmp_path / "h.json").write_text("[]")
    least = ("--min-clients", 5, "--helpers", tmp_path / "h.json")
    assert join("http://127.0.0.1:9", tmp_path, "a", "a", *least).exit_code == 0
    assert asked["four"] == ClientPolicy(min_clients=5, min_cohort=5, min_threshold=5)
    assert asked["one"].min_clients == 5
    few = (*least, "--colluders", 0)
    assert join("http://127.0.0.1:9", tmp_path, "a", "a", *few).exit_code == 0
    same = {"min_clients": 5, "min_cohort": 5, "min_threshold": 5}
    assert asked["four"] == ClientPolicy(**same, colluders=0)
    assert (asked["one"].min_clients, asked["one"].colluders) == (5, 0)
    for wrong in (("--min-clients", 2), ("--colluders", -1)):
        assert join("http://127.0.0.1:9", tmp_path, "a", "a", *wrong).exit_code == 2
    assert not asked["one"].require_hybrid
    hybrid = ("--require-hybrid", "--helpers", tmp_path / "h.json")
    assert join("http://127.0.0.1:9", tmp_path, "a", "a", *hybrid).exit_code == 0
    assert asked["four"] == ClientPolicy(require_hybrid=True)
    assert asked["one"].require_hybrid


def test_report_demands_hybrid_of_its_policy(tmp_path, monkeypatch):
    asked = []

    async def offered(*_, policy, **__):
        asked.append(policy.require_hybrid)
        raise ParameterError("no offer")

    monkeypatch.setattr(http, "get_offer", offered)
    np.save(tmp_path / "v.npy", np.ones(2))
    (tmp_path / "h.json").write_text("[]")
    given = ["--vector", tmp_path / "v.npy", "--clip", 8, "--helpers", tmp_path / "h.json"]
    for more in ([], ["--require-hybrid"]):
        command = ["report", "http://127.0.0.1:9", "--client", "a", *given, *more]
        CliRunner().invoke(app, list(map(str, command)))
    assert asked == [False, True]


EVIL = "\x1b[2J\x1b]0;x\x07\x9b31m\u202e\u2066\r\nsecagg: sums: 1\ud800"
"""It clears a terminal, names its window, turns it red, and forges a line."""
NAME = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"session":"s"}'


def response(status: int, content: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(content), content)


def step_of_evil() -> bytes:
    return encode(Task(bytes(16), 0, 0, EVIL[:20], b"", b"", b""))


LIES = {
    "detail": response(403, json.dumps({"check": "x", "detail": EVIL}).encode()),
    "check": response(403, json.dumps({"check": EVIL, "detail": "x"}).encode()),
    "step": response(200, step_of_evil()),
    "status line": b"\x1b[2J\x9b\r\n\r\n",
    "header": b"HTTP/1.1 200 OK\r\n\x1b[2J: \x07\r\n\r\n",
    "encoding": b"HTTP/1.1 200 OK\r\nContent-Encoding: \x1b[2J\r\n\r\n",
}


@pytest.fixture(params=LIES.values(), ids=list(LIES))
def liar(request: pytest.FixtureRequest) -> Iterator[str]:
    """Server that names a session, and answers all else with a lie, then with the end."""

    class Lie(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            first = True
            while head := self.rfile.readline():
                length = 0
                while (line := self.rfile.readline().strip().lower()) != b"":
                    if line.startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                self.rfile.read(length)
                name = head.split()[1] == b"/v1/session"
                over = response(410, b"")
                self.wfile.write(NAME if name else request.param if first else over)
                first = first and name

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Lie) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_check55_words_of_a_lying_server_reach_no_terminal(liar, tmp_path, caplog):
    create_identity(tmp_path / "alice.pem")
    np.save(tmp_path / "v.npy", np.ones(2))
    ran = join(liar, tmp_path, "alice", "alice", "--patience", "0.1")
    assert ran.exit_code == 2
    assert all(line.isprintable() for line in ran.stderr.split("\n"))
    assert all(line.startswith("secagg: ") for line in ran.stderr.splitlines())
    assert not any(line.startswith("secagg: sums") for line in ran.stderr.splitlines())
    assert all(record.getMessage().isprintable() for record in caplog.records)


def step(phase: str) -> bytes:
    return response(200, encode(Task(bytes(16), 0, 0, phase, b"", b"", b"")))


STEPS = ["share_keys", "unmasking"]


@pytest.mark.parametrize("liar", [step(one) for one in STEPS], ids=STEPS, indirect=True)
def test_client_in_no_sum_because_of_another_process_says_so(liar, tmp_path):
    create_identity(tmp_path / "alice.pem")
    np.save(tmp_path / "v.npy", np.ones(2))
    ran = join(liar, tmp_path, "alice", "alice")
    assert ran.exit_code == 2
    last = ran.stderr.splitlines()[-1]
    assert "client alice was in no sum" in last
    assert "this identity is joined by another process" in last
