"""Replies of a node: nothing of it in the clear, whatever its application does."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict

from flower_helpers import Door
from flower_nodes import (
    FIXED,
    NODES,
    configs,
    make_app,
    model,
    run,
    secure_app,
    train,
    wrapped,
)
from secagg import ClientPolicy
from secagg.flower import SecAggMod
from secagg.flower.testing import LocalGrid
from secagg.flower.wire import RECORD

LOSS = {"eval-loss": 0.5}
WEAK = {"secagg-min-clients": 3, "secagg-min-cohort": 2, "secagg-require-active": False}
"""Configuration that demands less than any policy."""


def test_check49_masked_inputs_of_zeros_look_uniform(door: Door) -> None:
    """An update of zeros is sent as the masks alone; a missing mask would show as zeros."""

    def still(message: Message, context: Context) -> Message:
        reply = train(message, context)
        reply.content["arrays"] = message.content["arrays"]
        return reply

    grid = door.grid(still)
    door.strategy().start(grid, model(w=np.zeros(2000)), num_rounds=1)
    records = [reply.content[RECORD] for reply in grid.replies]
    sent = [record["data"].data for record in records if isinstance(record, ArrayRecord)]
    assert len(sent) == len(NODES)
    for vector in sent:
        counts = Counter(vector)
        assert len(counts) == 256
        assert max(counts.values()) < 3 * len(vector) / 256


@pytest.mark.parametrize("kind", ["train", "train.own", "evaluate", "query"])
def test_check49_a_message_without_the_protocol_is_refused(door: Door, kind: str) -> None:
    called: list[int] = []
    app = make_app([door.mod()], lambda *_: called.append(1), lambda *_: called.append(1))
    app.train("own")(lambda *_: called.append(1))
    grid = LocalGrid(app, configs())
    (reply,) = grid.send_and_receive([Message(RecordDict({"arrays": model()}), NODES[0], kind)])
    assert reply.error.reason in FIXED
    assert not called


@pytest.mark.parametrize("kind", ["evaluate", "query"])
def test_declared_metrics_are_sent(kind: str) -> None:
    mod = SecAggMod(public=["num-examples", "eval-loss"])
    grid = LocalGrid(make_app([mod]), configs())
    (reply,) = grid.send_and_receive([Message(RecordDict(), NODES[0], kind)])
    assert dict(reply.content["metrics"]) == {"num-examples": 1, "eval-loss": 11 / 8}


@pytest.mark.parametrize(
    "records",
    [
        {},
        {"loss": MetricRecord(LOSS)},
        {"metrics": MetricRecord(LOSS), "more": MetricRecord(LOSS)},
        {"metrics": MetricRecord(LOSS), "arrays": model()},
        {"metrics": MetricRecord({**LOSS, "age": 40})},
        {"metrics": MetricRecord({"eval-loss": [0.5]})},
        {"metrics": ConfigRecord(LOSS)},
    ],
    ids=["none", "name", "two", "arrays", "undeclared", "list", "config"],
)
def test_check49_other_replies_than_declared_metrics_are_refused(
    records: dict[str, object],
) -> None:
    def reply(message: Message, context: Context) -> Message:
        return Message(RecordDict(records), reply_to=message)

    app = make_app([SecAggMod(public=LOSS)], evaluate=reply)
    grid = LocalGrid(app, configs())
    (sent,) = grid.send_and_receive([Message(RecordDict(), NODES[0], "evaluate")])
    assert sent.error.reason in FIXED


CONFIGURED = [
    ({}, {"secagg-min-clients": 5, "secagg-min-cohort": 5, "secagg-min-threshold": 3}, True),
    ({}, {"secagg-min-clients": 6}, False),
    ({}, {"secagg-min-cohort": 6}, False),
    ({}, {"secagg-min-threshold": 5}, False),
    ({}, {"secagg-require-active": True}, False),
    ({}, {"secagg-min-clients": 0}, True),
    ({}, {"secagg-min-clients": True}, False),
    ({}, {"secagg-require-active": 1}, False),
    ({}, {"secagg-require-hybrid": True}, False),
    ({}, {"secagg-require-hybrid": False}, True),
    ({}, {"secagg-min-client": 3}, False),
    ({}, {"partition-id": 3, "secagg-require-active": False}, True),
    ({"min_clients": 5}, WEAK, True),
    ({"min_clients": 6}, WEAK, False),
    ({"min_cohort": 6}, WEAK, False),
    ({"require_active": True}, WEAK, False),
    ({"require_hybrid": True}, {"secagg-require-hybrid": False}, False),
    ({"max_length": 5}, WEAK, False),
]


@pytest.mark.parametrize(("policy", "config", "accepted"), CONFIGURED, ids=str)
def test_check49_configuration_of_a_node_makes_its_policy_stricter(policy, config, accepted):
    nodes = {node: {**own, **config} for node, own in configs().items()}
    grid = LocalGrid(secure_app(ClientPolicy(**policy)), nodes)
    assert bool(run(grid, wrapped(on_failure="skip")).arrays) == accepted


@pytest.mark.parametrize("suite", [None, "hybrid", "x25519"])
def test_nodes_that_require_hybrid_are_in_no_other_sum(suite):
    """A short vector is in suite x25519 by default."""
    nodes = {node: {**own, "secagg-require-hybrid": True} for node, own in configs().items()}
    found = run(LocalGrid(secure_app(), nodes), wrapped(on_failure="skip", suite=suite))
    assert bool(found.arrays) == (suite == "hybrid")


def test_configuration_of_a_run_has_no_part_in_the_policy():
    config = {"secagg-min-clients": 3, "secagg-state-dir": "/nowhere"}
    grid = LocalGrid(secure_app(ClientPolicy(min_clients=6)), configs(), run_config=config)
    assert not run(grid, wrapped(on_failure="skip")).arrays


def test_check49_a_context_alone_has_no_secret():
    grid = LocalGrid(secure_app(), configs())
    grid.drop(NODES[0], 2)
    run(grid)
    (state,) = grid.contexts[NODES[0]].state.values()
    assert set(state) == {"phase", "state"}
    assert not any(grid.contexts[node].state for node in NODES[1:])
