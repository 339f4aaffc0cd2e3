"""A server process that is killed at every point of a round, and the round's outcome."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from effort import FULL, scaled
from harness import Cohort, ReplayedEntropy, make_params
from journal_server import Process, start_nursery
from secagg import RoundParams, Server

N = 12
KINDS = {
    "complete": make_params(N, 7),
    "graph": make_params(N, 4, neighbours=8, max_weight=5, modulus=(1 << 61) - 1),
    "active": make_params(N, 9, security="active"),
}
STATEMENTS = ["BEGIN", "INSERT", "UPDATE", "COMMIT", "PRAGMA wal_checkpoint"]
SEED = "the server's"
ONE_FIRST = [
    "complete",
    *(pytest.param(k, marks=pytest.mark.large) for k in ("graph", "active")),
]
EVERY = FULL // scaled(FULL)  # the server dies at each n-th point
Start = Callable[..., Process]


def lost(params: RoundParams) -> list[list[int]]:
    """Missing clients of each phase: one from the second on, and so on."""
    checked = [[3, 8]] if params.active else []
    return [[], [3], [3, 8], *checked, [3, 8, 0]]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    where = str(tmp_path_factory.mktemp("nursery") / "socket")
    nursery = start_nursery(where)
    yield where
    os.killpg(nursery.pid, signal.SIGKILL)  # with a process that a failed test left
    nursery.communicate()


@pytest.fixture
def start(address: str, ram_path: Path) -> Iterator[Start]:
    started: list[Process] = []

    def start(params: RoundParams, name: str = "round") -> Process:
        started.append(Process(address, ram_path / name, params, SEED))
        return started[-1]

    yield start
    started[-1].kill()


class Step:
    """A call of the server, and the state of an uninterrupted server after it."""

    def __init__(self, server: Server, steps: list[Step], *call: object) -> None:
        name, *arguments = call
        self.call = call
        self.answer = getattr(server, str(name))(*arguments)
        self.phase = server.phase
        self.outbox: dict[int, bytes] = steps[-1].outbox if steps else {}
        if name == "close_round":
            self.outbox = self.answer


def reference(params: RoundParams) -> tuple[list[Step], tuple[object, ...]]:
    """A whole round with dropouts, step by step, and its result in plain integers."""
    cohort = Cohort(params, seed=SEED)
    entropy = ReplayedEntropy(SEED)
    cohort.server = Server(params, registry=cohort.registry, entropy=entropy)
    steps: list[Step] = []
    for missing in lost(params):
        for u, data in cohort.step(without=missing).items():
            steps.append(Step(cohort.server, steps, "receive", u, data))
        steps.append(Step(cohort.server, steps, "close_round"))
        cohort.inbox = steps[-1].answer
    u3 = tuple(sorted(cohort.sent[2]))
    assert u3 == tuple(u for u in range(N) if u not in (3, 8))
    weight = None if params.max_weight is None else sum(cohort.weights[u] for u in u3)
    return steps, (cohort.expected(u3), u3, weight)


@pytest.mark.parametrize("kind", ONE_FIRST)
def test_check28_killed_after_each_message_and_close(start: Start, kind: str) -> None:
    """Kill −9 after the acknowledgement, or after a close whose answers are not read yet."""
    params = KINDS[kind]
    steps, expected = reference(params)
    assert len(steps) == 12 + 11 + 10 + 9 + 4 + (11 if params.active else 0)
    for count in range(1, len(steps) + 1, EVERY):
        process = start(params, f"{count}")
        for step in steps[: count - 1]:
            assert process.call(*step.call) == step.answer
        last = steps[count - 1]
        if last.call[0] == "close_round":
            process.send(*last.call)
            process.wait_until_it_has_answered()
        else:
            assert process.call(*last.call) is None
        process.kill()

        process = start(params, f"{count}")
        assert (process.phase, process.outbox) == (last.phase, last.outbox)
        for step in steps[count:]:
            assert process.call(*step.call) == step.answer
        assert process.call("result") == expected
        process.kill()


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("kind", ONE_FIRST)
def test_check28_killed_within_each_write(start: Start, kind: str, statement: str) -> None:
    """Killed before the acknowledgement: the message, stored or not, is sent again."""
    params = KINDS[kind]
    steps, expected = reference(params)
    stored = statement == STATEMENTS[-1]
    process = start(params)
    now = (process.phase, process.outbox)
    for number, step in enumerate(steps, STATEMENTS.index(statement)):
        if number % EVERY:
            assert process.call(*step.call) == step.answer
            now = (step.phase, step.outbox)
            continue
        process.call("die_at", statement)
        process.send(*step.call)
        process.wait_until_it_is_dead()

        process = start(params)
        closed = stored and step.call[0] == "close_round"
        assert (process.phase, process.outbox) == ((step.phase, step.outbox) if closed else now)
        if not closed:
            assert process.call(*step.call) == step.answer
        now = (step.phase, step.outbox)
    assert process.call("result") == expected


@pytest.mark.large
def test_check28_clients_finish_despite_repeated_kills(start: Start) -> None:
    """One server process for each message; clients know only the messages they received."""
    params = make_params(N, 4, neighbours=8, max_weight=5)
    cohort = Cohort(params)
    sent_out: dict[int, bytes] = {}
    for missing in lost(params):
        for u, data in cohort.step(without=missing).items():
            process = start(params)
            assert process.outbox == sent_out
            assert process.call("receive", u, data) is None
            process.kill()
        process = start(params)
        process.send("close_round")
        process.wait_until_it_has_answered()
        process.kill()
        process = start(params)
        cohort.inbox = sent_out = process.outbox
        process.kill()
    u3 = tuple(u for u in range(N) if u not in (3, 8))
    weight = sum(cohort.weights[u] for u in u3)
    assert process.result == (cohort.expected(u3), u3, weight)
