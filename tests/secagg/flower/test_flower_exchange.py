"""Times of an exchange, on a clock of its own."""

from __future__ import annotations

import pytest
from flwr.app import Message, RecordDict

from flower_nodes import NODES, Meddler, configs, secure_app
from secagg.flower import exchange as module
from secagg.flower.dropouts import Dropouts
from secagg.flower.exchange import exchange


class Clock:
    """Clock that goes on in a sleep only; it takes the place of the module `time`."""

    def __init__(self) -> None:
        self.now, self.sleeps = 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def messages() -> dict[int, Message]:
    return {node: Message(RecordDict(), node, "query") for node in NODES}


def test_exchange_ends_when_all_nodes_have_replied(clock: Clock) -> None:
    grid = Meddler(secure_app(), configs())
    grid.meddle = lambda message, answer: answer(message)
    found = exchange(grid, messages(), Dropouts(), timeout=10.0, poll=4.0)
    assert not clock.sleeps
    assert len(found.errors) == len(NODES)  # the mod refuses messages of other kinds


def test_exchange_ends_at_its_deadline(clock: Clock) -> None:
    late = {NODES[0]: 10.0, NODES[1]: 10.5}

    class Slow(Meddler):
        def pull_messages(self, message_ids):
            names = [f"message {node - NODES[0] + 1}" for node in NODES]
            come = [late.get(node, 0.0) <= clock.now for node in NODES]
            there = [name for name, is_there in zip(names, come, strict=True) if is_there]
            return super().pull_messages([name for name in message_ids if name in there])

    grid = Slow(secure_app(), configs())
    grid.meddle = lambda message, answer: answer(message)
    found = exchange(grid, messages(), Dropouts(), timeout=10.0, poll=4.0)
    assert clock.sleeps == [4.0, 4.0, 2.0]
    assert {reply.metadata.src_node_id for reply in found.errors} == set(NODES) - {NODES[1]}


def test_exchange_without_time_has_one_pull(clock: Clock) -> None:
    grid = Meddler(secure_app(), configs())
    grid.meddle = lambda message, answer: None
    found = exchange(grid, messages(), Dropouts(), timeout=0.0, poll=4.0)
    assert (found.replies, found.errors, clock.sleeps) == ({}, [], [])
