"""Rounds over a grid in one process: means, dropouts, and messages with faults."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
from flwr.app import Array, Context, Message
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.serverapp.strategy import FedAvg

from flower_helpers import Door
from flower_nodes import (
    NODES,
    Meddler,
    assert_mean,
    configs,
    errors,
    model,
    phase_of,
    run,
    secure_app,
    train,
    wrapped,
)
from secagg import (
    ClientPolicy,
    LinkError,
    RemoteProtocolError,
    TooFewSurvivors,
)
from secagg.flower.testing import LocalGrid
from secagg.flower.wire import RECORD

Answer = Callable[[Message], Message]
TRAINING = ("masked_input", "report")
OTHERS = [node for node in NODES if node != NODES[0]]
PHASES = ["advertise_keys", "share_keys", "masked_input", "unmasking"]


def meddler(
    meddle: Callable[[Message, Answer], Message | None], policy: ClientPolicy | None = None
) -> Meddler:
    grid = Meddler(secure_app(policy), configs())
    grid.meddle = meddle
    return grid


def test_a_cohort_that_default_policies_reject_is_asked_for_no_shares():
    """200 nodes have a graph with room for six that are away."""
    nodes = range(10, 210)
    grid = LocalGrid(secure_app(), configs(nodes))
    for node in nodes[:7]:
        grid.drop(node, after=0)
    with pytest.raises(TooFewSurvivors) as caught:
        run(grid, wrapped())
    assert (caught.value.survivors, caught.value.needed) == (193, 194)
    assert len(grid.replies) == 193


def test_mean_and_total_weight_are_those_of_all_nodes():
    result = run(LocalGrid(secure_app(), configs()), wrapped(metrics={"train-loss": 4.0}))
    assert_mean(result.arrays, NODES)
    metrics = result.train_metrics_clientapp[1]
    mean = sum((node - 10) * node / 8 for node in NODES) / sum(node - 10 for node in NODES)
    assert metrics["train-loss"] == pytest.approx(mean, abs=4 * 2**-16)
    assert metrics["secagg-clipped"] == 0


def test_weight_has_the_key_of_the_strategy():
    def renamed(message: Message, context: Context) -> Message:
        reply = train(message, context)
        record = reply.content["metrics"]
        record["rows"] = record.pop("num-examples")
        return reply

    secagg = wrapped(FedAvg(fraction_evaluate=0.0, weighted_by_key="rows"))
    assert_mean(run(LocalGrid(secure_app(train=renamed), configs()), secagg).arrays, NODES)


@pytest.mark.parametrize("exchanges", range(4))
def test_a_node_drops_out_at_an_exchange(exchanges: int) -> None:
    grid = LocalGrid(secure_app(), configs())
    grid.drop(NODES[0], exchanges)
    result = run(grid)
    assert_mean(result.arrays, NODES if exchanges == 3 else OTHERS)


@pytest.mark.parametrize("exchanges", range(4))
def test_below_the_threshold_nothing_is_opened(exchanges: int) -> None:
    grid = LocalGrid(secure_app(), configs())
    for node in NODES[:3]:
        grid.drop(node, exchanges)
    with pytest.raises(TooFewSurvivors):
        run(grid)
    assert all(reply.has_error() or RECORD in reply.content for reply in grid.replies)


def test_a_round_without_weight_has_no_mean():
    def idle(message: Message, context: Context) -> Message:
        reply = train(message, context)
        reply.content["metrics"]["num-examples"] = 0
        return reply

    with pytest.raises(RemoteProtocolError) as caught:
        run(LocalGrid(secure_app(train=idle), configs()))
    assert caught.value.check == "weight"
    grid = LocalGrid(secure_app(train=idle), configs())
    assert not run(grid, wrapped(on_failure="skip")).arrays


def test_replies_to_earlier_messages_are_ignored():
    class Late(LocalGrid):
        def pull_messages(self, message_ids):
            pulled = super().pull_messages(message_ids)
            return [*self.replies, *pulled] if message_ids else []

    assert_mean(run(Late(secure_app(), configs())).arrays, NODES)


def test_check49_a_used_state_gives_no_second_masked_input():
    kept = {}

    def meddle(message: Message, answer: Answer) -> Message:
        node = message.metadata.dst_node_id
        if node != NODES[0]:
            return answer(message)
        if phase_of(message) == "masked_input":
            before = copy.deepcopy(grid.contexts[node])
            first = answer(message)
            assert first.has_content()
            grid.contexts[node] = before
            kept["second"] = answer(message)
            return first
        return answer(message)

    grid = meddler(meddle)
    result = run(grid)
    assert kept["second"].error.reason == "secagg: VaultError"
    assert_mean(result.arrays, NODES)


@pytest.mark.parametrize("phase", PHASES[1:])
def test_check49_a_state_of_another_exchange_is_of_no_use(phase: str) -> None:
    old = {}

    def meddle(message: Message, answer: Answer) -> Message:
        node = message.metadata.dst_node_id
        if node != NODES[0]:
            return answer(message)
        if phase_of(message) == phase:
            grid.contexts[node] = old["context"]
        old["context"] = copy.deepcopy(grid.contexts[node])
        return answer(message)

    grid = meddler(meddle)
    assert_mean(run(grid).arrays, OTHERS if phase != "unmasking" else NODES)


def test_a_node_that_is_not_connected_drops_out():
    class Partly(LocalGrid):
        def push_messages(self, messages):
            ids = list(super().push_messages(messages))
            return [
                "" if m.metadata.dst_node_id == NODES[0] else i
                for m, i in zip(messages, ids, strict=True)
            ]

        def pull_messages(self, message_ids):
            names = list(message_ids)
            assert all(names)
            return super().pull_messages(names)

    assert_mean(run(Partly(secure_app(), configs())).arrays, OTHERS)


def test_check49_two_models_for_two_nodes_are_not_summed(door: Door) -> None:
    def meddle(message: Message, answer: Answer) -> Message:
        if message.metadata.dst_node_id == NODES[0] and phase_of(message) in TRAINING:
            message = message_from_proto(message_to_proto(message))
            message.content["arrays"]["bias"] = Array(np.zeros(5))
        return answer(message)

    grid = door.grid()
    grid.meddle = meddle
    assert_mean(run(grid, door.strategy()).arrays, OTHERS)
    assert errors(grid) == ["secagg: RemoteProtocolError"]


@pytest.mark.parametrize("field", ["params", "plan", "data", "phase", "version"])
@pytest.mark.parametrize("phase", PHASES)
def test_check49_a_node_answers_no_altered_task(door: Door, phase: str, field: str) -> None:
    due = phase if door.name == "four" else "report"

    def meddle(message: Message, answer: Answer) -> Message:
        if message.metadata.dst_node_id == NODES[0] and phase_of(message) == due:
            message = message_from_proto(message_to_proto(message))
            record = message.content[RECORD]
            altered = {"phase": "finished", "version": 2}
            record[field] = altered[field] if field in altered else b"\0" + record[field]
        return answer(message)

    grid = door.grid()
    grid.meddle = meddle
    run(grid, door.strategy())
    assert sum(reply.has_error() for reply in grid.replies) == 1


def test_messages_that_the_superlink_does_not_take_are_an_error(monkeypatch):
    monkeypatch.setattr(LocalGrid, "push_messages", lambda grid, messages: [])
    with pytest.raises(LinkError) as caught:
        run(LocalGrid(secure_app(), configs()))
    assert caught.value.check == "push"


def test_training_has_its_own_time_and_the_model():
    sent: list[tuple[set[float], set[str]]] = []

    class Living(LocalGrid):
        def push_messages(self, messages):
            sent.extend((one.metadata.ttl, set(one.content)) for one in messages[:1])
            return super().push_messages(messages)

    grid = Living(secure_app(), configs())
    wrapped(key_timeout=7.0).start(grid, model(), num_rounds=1, timeout=900.0)
    short, training = (37.0, {RECORD}), (930.0, {RECORD, "arrays", "config"})
    assert sent == [short, short, training, short]
