"""Exchanges with nodes: their times, on a clock of their own, and their events."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from flwr.app import ArrayRecord, Context, Error, Message, RecordDict

from flower_helpers import Door, Party, grid_of
from flower_nodes import (
    NODES,
    Meddler,
    assert_mean,
    configs,
    phase_of,
    registry,
    run,
    secure_app,
    signed_configs,
    train,
    wrapped,
)
from secagg import FixedPoint, RoundParams
from secagg.flower.courier import Courier
from secagg.flower.grid import Prepared
from secagg.flower.testing import LocalGrid
from secagg.flower.wire import RECORD
from secagg.session import Clock, Place
from secagg.session.exchange import Exchange, at_once
from secagg.session.wire import Task

FIRST = NODES[0]
PLACE = Place("flower 1", 1, 0)
PARAMS = RoundParams(n_clients=5, threshold=4, length=2, encoding=FixedPoint(1.0))


class Times:
    """Clock that goes on in a sleep only."""

    def __init__(self) -> None:
        self.now, self.sleeps = 0.0, list[float]()

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


def exchanged(grid: LocalGrid, times: Times, seconds: float) -> Courier:
    """Exchange one message with each node, which the mod refuses to answer."""
    own = {node: Message(RecordDict(), node, "query") for node in NODES}
    prepared = Prepared(own, b"", None, b"", PLACE)
    clock = Clock(lambda: times.now, times.sleep)
    courier = Courier(grid, prepared, PARAMS, None, 4.0, clock)
    exchange = Exchange(
        place=PLACE,
        phase="a phase that no node knows",
        id=bytes(16),
        clients=frozenset(NODES),
        task=lambda _: Task(bytes(16), 1, 0, "", b"", b"", b""),
        receive=lambda client, data: None,
        store=lambda: None,
    )
    at_once(courier.run(exchange, seconds, lambda: None))
    assert exchange.done.is_set() == (len(courier.errors) == len(NODES))
    return courier


def test_exchange_ends_at_its_deadline() -> None:
    late, times = {NODES[0]: 10.0, NODES[1]: 10.5}, Times()

    class Slow(LocalGrid):
        def pull_messages(self, message_ids):
            names = [f"message {node - NODES[0] + 1}" for node in NODES]
            come = [late.get(node, 0.0) <= times.now for node in NODES]
            there = [name for name, is_there in zip(names, come, strict=True) if is_there]
            return super().pull_messages([name for name in message_ids if name in there])

    courier = exchanged(Slow(secure_app(), configs()), times, 10.0)
    assert times.sleeps == [4.0, 4.0, 2.0]
    assert {reply.metadata.src_node_id for reply in courier.errors} == set(NODES) - {NODES[1]}


def test_exchange_without_time_has_one_pull() -> None:
    times, grid = Times(), Meddler(secure_app(), configs())
    grid.meddle = lambda message, answer: None
    assert (exchanged(grid, times, 0.0).errors, times.sleeps) == ([], [])


def changed(reply: Message, **fields: object) -> Message:
    vars(reply.metadata).update(fields)
    return reply


def with_data(reply: Message, change: Any) -> Message:
    record = reply.content[RECORD]
    data = record["data"]
    if isinstance(data, bytes):
        record["data"] = change(data)
    else:
        data.data = change(data.data)
    return reply


def cleared(reply: Message) -> Message:
    reply.content = RecordDict()
    return reply


FAULTS: dict[str, tuple[Any, str]] = {
    "silent": (lambda reply: None, ""),
    "other sender": (lambda reply: changed(reply, _src_node_id=NODES[-1]), "sender"),
    "empty": (cleared, "record"),
    "garbage": (
        lambda reply: with_data(reply, lambda data: b"junk"),
        "length encoding version",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "phase", ["advertise_keys", "share_keys", "masked_input", "unmasking", "report"]
)
def test_events_have_the_node_that_drops_out(
    phase: str, fault: str, semi_honest: Party, caplog: pytest.LogCaptureFixture
) -> None:
    """A session's events, with the same fields, come from sums over nodes, too."""
    spoil, checks = FAULTS[fault]

    def meddle(message: Message, answer: Any) -> Message | None:
        reply = answer(message)
        due = phase_of(message) == phase and message.metadata.dst_node_id == FIRST
        return spoil(reply) if due else reply

    caplog.set_level(logging.WARNING, "flwr.secagg")
    caplog.set_level(logging.DEBUG, "secagg.session")
    if phase == "report":
        result = run(grid_of(semi_honest, meddle), semi_honest.wrapped())
    else:
        grid = Meddler(secure_app(), configs())
        grid.meddle = meddle
        result = run(grid)
    assert_mean(result.arrays, NODES if phase == "unmasking" else NODES[1:])
    events = [one.__dict__ for one in caplog.records if one.name == "secagg.session"]
    assert {one["session"] for one in events} == {"flower 1"}
    (closed,) = [e for e in events if e["event"] == "PhaseClosed" and e["phase"] == phase]
    assert (closed["missing"], closed["answered"]) == ((FIRST,), len(NODES) - 1)
    assert closed["bytes_up"] > 0
    rejected = [one for one in events if one["event"] == "MessageRejected"]
    assert [one["client"] for one in rejected] == ([FIRST] if checks else [])
    assert all(one["check"] in checks.split() for one in rejected)
    logged = [one.args for one in caplog.records if one.name == "flwr.secagg"]
    assert [args[0] for args in logged if args and args[0] in NODES] == [FIRST]


def test_a_node_that_replies_with_an_error_declines(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "secagg.session")
    grid = door.grid()
    grid.meddle = lambda message, answer: Message(Error(5, "lost"), reply_to=message)
    run(grid, door.strategy(on_failure="skip"))
    events = [one.__dict__ for one in caplog.records if one.name == "secagg.session"]
    declined = [one["client"] for one in events if one["event"] == "MemberDeclined"]
    assert sorted(declined) == list(NODES)


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_server_and_nodes_may_run_event_loops(security: str) -> None:
    """A notebook has one under way, in whose thread the nodes of a `LocalGrid` run, too."""
    threads = set[int]()

    def training(message: Message, context: Context) -> Message:
        threads.add(threading.get_ident())
        return train(message, context)

    active = security == "active"
    more = {"security": security, "registry": registry()} if active else {}
    grid = LocalGrid(secure_app(train=training), signed_configs() if active else configs())

    async def cell() -> ArrayRecord:
        return run(grid, wrapped(**more)).arrays

    assert_mean(asyncio.run(cell()), NODES)
    assert threads == {threading.get_ident()}
