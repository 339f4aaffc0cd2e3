"""One-shot rounds in one process: means, and nodes and helpers that drop out or lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from flwr.app import Array, ArrayRecord, Message, RecordDict
from flwr.serverapp.strategy import FedAvg

from flower_helpers import Faulty, dies, garbage, grid_of, lies
from flower_nodes import (
    NODES,
    assert_mean,
    run,
)
from secagg import LinkError, ParameterError, RemoteProtocolError, TooFewSurvivors
from secagg.flower import OneShot
from secagg.flower.testing import LocalGrid, LocalHelper
from secagg.flower.wire import RECORD

Answer = Callable[[Message], Message]
OTHERS = [node for node in NODES if node != NODES[0]]


def test_mean_is_that_of_all_nodes_after_one_exchange(party):
    grid = grid_of(party)
    result = run(grid, party.wrapped(metrics={"train-loss": 4.0}))
    assert_mean(result.arrays, NODES)
    assert len(grid.replies) == len(NODES)
    metrics = result.train_metrics_clientapp[1]
    mean = sum((node - 10) * node / 8 for node in NODES) / sum(node - 10 for node in NODES)
    assert metrics["train-loss"] == pytest.approx(mean, abs=4 * 2**-16)
    assert "secagg-clipped" not in metrics
    assert metrics["secagg-clipped-nodes"] == 0
    assert not any(context.state for context in grid.contexts.values())


def test_below_the_minimum_of_nodes_nothing_is_opened(party):
    helpers = [Faulty(journal, registry=party.registry) for journal in party.journals]
    grid = grid_of(party)
    for node in NODES[:3]:
        grid.drop(node, 0)
    with pytest.raises(TooFewSurvivors) as caught:
        run(grid, party.wrapped(helpers=helpers))
    assert (caught.value.survivors, caught.value.needed) == (2, 4)
    assert {call for helper in helpers for call in helper.calls} == {"endorse"}


@pytest.mark.parametrize(("least", "lost"), [(5, 0), (5, 1), (4, 1), (4, 2)])
def test_minimum_is_the_one_that_is_given(semi_honest, least, lost):
    grid = grid_of(semi_honest)
    for node in NODES[:lost]:
        grid.drop(node)
    result = run(grid, semi_honest.wrapped(min_clients=least, on_failure="skip"))
    assert bool(result.arrays) == (least + lost <= len(NODES))


def large(data: bytes) -> RecordDict:
    return RecordDict(
        {RECORD: ArrayRecord({"data": Array("uint8", (len(data),), "secagg.message", data)})}
    )


def report_of(reply: Message) -> bytes:
    return reply.content[RECORD]["data"].data


def boxes_spoiled(report: bytes, helpers: int) -> bytes:
    spoiled = bytearray(report)
    spoiled[42 + 32 * helpers + 20] ^= 1  # t = 2: as many seeds as helpers
    return bytes(spoiled)


BROKEN = {
    "garbage": lambda report, _: b"junk",
    "longer": lambda report, _: report + b"\0",
    "range": lambda report, _: report[:-8] + b"\xff" * 8,
    "boxes": boxes_spoiled,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_node_whose_report_is_broken_drops_out(party, name):
    def meddle(message: Message, answer: Answer) -> Message:
        reply = answer(message)
        if message.metadata.dst_node_id == NODES[0]:
            reply.content = large(BROKEN[name](report_of(reply), len(party.journals)))
        return reply

    assert_mean(run(grid_of(party, meddle), party.wrapped()).arrays, OTHERS)


def test_a_report_of_a_node_that_did_not_send_it_is_not_added(semi_honest):
    """In an active sum it would be: the node has signed it."""
    kept: dict[str, Message] = {}

    class Swapping(LocalGrid):
        def pull_messages(self, message_ids):
            replies = {r.metadata.src_node_id: r for r in super().pull_messages(message_ids)}
            if NODES[1] in replies:
                replies[NODES[0]].content = replies.pop(NODES[1]).content
                kept["swapped"] = replies[NODES[0]]
            return list(replies.values())

    strategy = semi_honest.wrapped(min_clients=3)
    result = run(Swapping(semi_honest.app(), semi_honest.configs()), strategy)
    assert_mean(result.arrays, NODES[2:])
    assert kept


@pytest.mark.parametrize(
    "settings",
    [
        {"helper_timeout": 0.0},
        {"poll": 0.0},
        {"threshold": 4},
        {"threshold": 1},
        {"min_clients": 1},
        {"min_clients": "3"},
        {"registry": {}},
        {"helpers": []},
        {"helpers": "helpers.json"},
        {"helpers": [(b"", b"")]},
        {"helpers": None},
    ],
    ids=str,
)
def test_settings_out_of_range_are_rejected(semi_honest, settings):
    given = {"helpers": semi_honest.helpers, "clip": 1.0, "max_weight": 100, **settings}
    with pytest.raises(ParameterError):
        OneShot(FedAvg(), **given)


def unreachable(answer: object) -> object:
    raise LinkError("nobody answers", check="connection")


@pytest.mark.parametrize("fault", [dies, unreachable])
@pytest.mark.parametrize("step", ["endorse", "check", "open"])
@pytest.mark.parametrize("number", [0, 2])
def test_a_helper_that_dies_is_left_out(party, step, number, fault):
    helpers: list[LocalHelper] = party.helpers
    helpers[number] = Faulty(party.journals[number], step, fault, registry=party.registry)
    assert_mean(run(grid_of(party), party.wrapped(helpers=helpers)).arrays, NODES)


@pytest.mark.parametrize("fault", [dies, lies, garbage])
def test_an_active_sum_leaves_out_a_helper_that_fails_to_reserve(active, fault):
    helpers: list[LocalHelper] = active.helpers
    helpers[1] = Faulty(active.journals[1], "reserve", fault, registry=active.registry)
    assert_mean(run(grid_of(active), active.wrapped(helpers=helpers)).arrays, NODES)


@pytest.mark.parametrize("fault", [lies, garbage])
def test_an_active_sum_is_right_though_a_helper_lies(active, fault):
    helpers: list[LocalHelper] = active.helpers
    helpers[0] = Faulty(active.journals[0], "open", fault, registry=active.registry)
    assert_mean(run(grid_of(active), active.wrapped(helpers=helpers)).arrays, NODES)


def test_a_helper_that_rejects_every_node_is_left_out(party):
    helpers: list[LocalHelper] = party.helpers
    ids = tuple(NODES) if not party.active else tuple(party.registry)
    helpers[0] = Faulty(party.journals[0], "check", lambda _: ids, registry=party.registry)
    assert_mean(run(grid_of(party), party.wrapped(helpers=helpers)).arrays, NODES)


def test_helpers_that_contradict_each_other_end_the_round(semi_honest):
    helpers: list[LocalHelper] = semi_honest.helpers
    helpers[0] = Faulty(semi_honest.journals[0], "open", lies)
    with pytest.raises(RemoteProtocolError) as caught:
        run(grid_of(semi_honest), semi_honest.wrapped(helpers=helpers))
    assert caught.value.check == "holders"


@pytest.mark.parametrize("step", ["endorse", "check", "open"])
def test_too_few_helpers_are_an_error(party, step):
    helpers: list[LocalHelper] = [
        Faulty(journal, step, dies, registry=party.registry) for journal in party.journals
    ]
    helpers[-1] = party.helpers[-1]
    with pytest.raises(RemoteProtocolError) as caught:
        run(grid_of(party), party.wrapped(helpers=helpers))
    assert caught.value.check == "helpers"
    skipped = run(grid_of(party), party.wrapped(helpers=helpers, on_failure="skip"))
    assert not skipped.arrays


def test_a_helper_at_the_place_of_another_is_left_out(semi_honest):
    helpers: Sequence[LocalHelper] = semi_honest.helpers
    helpers[1] = LocalHelper(semi_honest.journals[0])
    helpers[1].public = semi_honest.journals[1].public
    assert_mean(run(grid_of(semi_honest), semi_honest.wrapped(helpers=helpers)).arrays, NODES)
