"""Errors of a round: kinds and numbers of lost nodes, and nothing that nodes say."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Error, Message

import secagg
from flower_helpers import Door
from flower_nodes import (
    NODES,
    Meddler,
    configs,
    errors,
    fedavg,
    logged_errors,
    make_app,
    run,
    secure_app,
    train,
    wrapped,
)
from secagg import ParameterError, TooFewSurvivors
from secagg.flower import OneShot, RemoteHelper
from secagg.flower.testing import LocalGrid, LocalHelper


def fails(grid: LocalGrid, strategy: object) -> str:
    """Text of the error of a run with too few nodes."""
    with pytest.raises(TooFewSurvivors) as caught:
        run(grid, strategy)
    assert caught.value.survivors < caught.value.needed
    assert str(caught.value).startswith(f"{caught.value.phase}: ")
    return str(caught.value)


def test_nodes_without_the_mod_are_told_from_lost_ones(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the mod, an app raises in the first exchange, and replies to a report."""
    caplog.set_level(logging.WARNING, "flwr.secagg")
    grid = Meddler(make_app([]), configs())
    grid.meddle = lambda message, answer: (
        answer(message)
        if message.metadata.dst_node_id != NODES[0]
        else Message(Error(5, "Node Unavailable"), reply_to=message)
    )
    error = fails(grid, door.strategy())
    hinted = [line for line in caplog.messages if "SecAggMod()" in line]
    assert len(hinted) == len(NODES) - 1
    assert "4 without the protocol" in error
    assert "1 with Flower's error 5" in error


def test_too_few_survivors_counts_the_errors_of_the_nodes(door: Door) -> None:
    nodes = {n: {**c, "secagg-min-clients": 6} for n, c in configs().items()}
    nodes[NODES[0]] = {"secagg-state-dir": "/dev/null/patient4711"}
    error = fails(door.grid(nodes=nodes), door.strategy())
    assert "1 with VaultError" in error
    assert "4 with ParameterError" in error
    assert "wait longer" not in error  # neither time nor more nodes help against a refusal
    assert "patient4711" not in error


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (2, "secagg: no class, patient4711", "a refusal"),
        (2, "secagg: patient4711" + 60 * "x", "a refusal"),
        (6, "secagg: patient4711", "a refusal"),
        (2, "patient4711", "without the protocol"),
        (1, "secagg: patient4711", "Flower's error 1"),
        (2, "secagg: KeyError", "with KeyError"),
    ],
)
def test_text_of_a_node_is_not_in_the_error_of_the_run(code: int, text: str, kind: str) -> None:
    grid = Meddler(secure_app(), configs())
    grid.meddle = lambda message, answer: Message(Error(code, text), reply_to=message)
    error = fails(grid, wrapped())
    assert f"5 with {kind}" in error or f"5 {kind}" in error
    assert "patient4711" not in error


def test_an_update_below_the_step_is_logged_in_the_node_alone(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    def tiny(message: Message, context: Context) -> Message:
        reply = train(message, context)
        if context.node_id == NODES[0]:
            (sent,) = message.content.array_records.values()
            near = {name: Array(np.asarray(one.numpy() + 1e-6)) for name, one in sent.items()}
            reply.content["arrays"] = ArrayRecord(near)
        return reply

    caplog.set_level(logging.WARNING, "flwr.secagg")
    grid = door.grid(tiny)
    run(grid, door.strategy())
    (lost,) = [line for line in caplog.messages if "fractional_bits" in line]
    assert lost.startswith(f"node {NODES[0]}: ")
    assert not errors(grid)


@pytest.mark.parametrize("wrong", ["url", None, ("url", b"key"), RemoteHelper, [LocalHelper]])
def test_a_wrong_helper_is_named_by_its_place(semi_honest, wrong):
    helpers = semi_honest.helpers
    helpers[1] = wrong
    with pytest.raises(ParameterError, match=r"^helpers\[1\] "):
        OneShot(fedavg(), helpers=helpers, clip=1.0, max_weight=1)


def test_an_update_beyond_all_floats_is_no_sum(caplog):
    start = ArrayRecord({"w": Array(np.full(3, -1.7e308))})

    def reply(message: Message, context: Context) -> Message:
        found = train(message, context)
        found.content["arrays"] = ArrayRecord({"w": Array(np.full(3, 1.7e308))})
        return found

    grid = LocalGrid(secure_app(train=reply), configs())
    with caplog.at_level(logging.ERROR, "flwr.secagg"):
        assert not wrapped(on_failure="skip").start(grid, start, num_rounds=1).arrays
    assert len(logged_errors(caplog.records)) == len(NODES)


def test_errors_of_a_round_have_few_frames():
    grid = LocalGrid(secure_app(), configs(NODES[:2]))
    with pytest.raises(TooFewSurvivors) as caught:
        run(grid)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    package = Path(secagg.__file__).parent
    inside = [entry.path for entry in caught.traceback if package in entry.path.parents]
    assert not inside
