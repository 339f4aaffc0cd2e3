"""Mistakes of a new user: the log of node or server names what to change, and nothing leaks."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from flwr.app import Array, Context, Error, Message, RecordDict
from flwr.serverapp.strategy import FedAvg

from flower_nodes import (
    NODES,
    Meddler,
    assert_mean,
    configs,
    logged_errors,
    make_app,
    model,
    run,
    secure_app,
    train,
    update,
    wrapped,
)
from secagg import ClientPolicy, TooFewSurvivors
from secagg.flower import OneShotMod, SecAggMod
from secagg.flower.testing import LocalGrid

HEAVY = 4711
PLAIN = make_app([])


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "flwr.secagg")
    return caplog


def causes(log: pytest.LogCaptureFixture) -> set[str]:
    """Texts of the exceptions in the log of the nodes."""
    return {str(error) for error in logged_errors(log.records)}


def warnings(log: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in log.records if r.levelno == logging.WARNING]


def heavy(message: Message, context: Context) -> Message:
    reply = train(message, context)
    reply.content["metrics"]["num-examples"] = HEAVY
    return reply


def fails(grid: LocalGrid, strategy: object) -> str:
    """Text of the error of a run with too few nodes."""
    with pytest.raises(TooFewSurvivors) as caught:
        run(grid, strategy)
    assert caught.value.survivors < caught.value.needed
    assert str(caught.value).startswith(f"{caught.value.phase}: ")
    return str(caught.value)


def test_a_weight_above_the_largest_one_is_lowered_and_names_the_argument(log, semi_honest):
    grids = [LocalGrid(secure_app(train=heavy), configs())]
    grids += [LocalGrid(semi_honest.app(heavy), semi_honest.configs())]
    strategies = [wrapped(max_weight=55), semi_honest.wrapped(max_weight=55)]
    for grid, strategy in zip(grids, strategies, strict=True):
        log.clear()
        result = run(grid, strategy)
        lowered = [line for line in warnings(log) if line.startswith("node ")]
        assert len(lowered) == len(NODES)
        assert all("SecAgg(max_weight=" in line for line in lowered)
        assert str(HEAVY) not in log.text
        assert not any(reply.has_error() for reply in grid.replies)
        np.testing.assert_allclose(
            result.arrays["bias"].numpy(), unweighted("bias"), rtol=0, atol=2**-15
        )
    assert result.train_metrics_clientapp[1]["secagg-clipped-nodes"] == 1


def unweighted(name: str) -> np.ndarray:
    """Mean of the nodes' arrays of a name, with the same weight for each node."""
    found = [update(node, model()[name].numpy()) for node in NODES]
    return np.mean(found, axis=0)


def test_a_mod_of_the_other_protocol_names_both(log, semi_honest):
    run(LocalGrid(secure_app(), configs()), semi_honest.wrapped(on_failure="skip"))
    (cause,) = causes(log)
    assert all(name in cause for name in ("SecAggMod", "OneShotMod", "or SecAgg on"))
    log.clear()
    run(LocalGrid(semi_honest.app(), configs()), wrapped(on_failure="skip"))
    (cause,) = causes(log)
    assert all(name in cause for name in ("OneShotMod", "SecAggMod", "or OneShot on"))


@pytest.mark.parametrize("protocol", ["four", "one"])
def test_nodes_without_the_mod_are_told_from_lost_ones(log, semi_honest, protocol):
    """Without the mod, an app raises in the first exchange, and replies to a report."""
    strategy = wrapped() if protocol == "four" else semi_honest.wrapped()

    def meddle(message, answer):
        if message.metadata.dst_node_id != NODES[0]:
            return answer(message)
        return Message(Error(5, "Node Unavailable"), reply_to=message)

    grid = Meddler(PLAIN, configs())
    grid.meddle = meddle
    error = fails(grid, strategy)
    lines = warnings(log)
    (lost,) = [line for line in lines if f"node {NODES[0]} " in line]
    assert "Node Unavailable" in lost
    assert "first mod" not in lost
    hinted = [line for line in lines if "first mod" in line and "SecAggMod()" in line]
    assert len(hinted) == len(NODES) - 1
    assert "4 without the protocol" in error
    assert "1 with Flower's error 5" in error


def test_errors_of_nodes_with_the_mod_get_no_hint_of_it(log):
    fails(LocalGrid(secure_app(ClientPolicy(min_clients=6)), configs()), wrapped())
    assert "first mod" not in log.text


def test_too_few_survivors_names_the_errors_of_the_nodes(party):
    app, policy = secure_app(), {"secagg-min-clients": 6}
    nodes = {n: {**c, **policy} for n, c in configs().items()}
    nodes[NODES[0]]["secagg-state-dir"] = "/dev/null/patient4711"
    del nodes[NODES[0]]["secagg-min-clients"]
    reports = {n: {**c, **policy} for n, c in party.configs().items()}
    reports[NODES[0]]["secagg-state-dir"] = "/dev/null/patient4711"
    del reports[NODES[0]]["secagg-min-clients"]
    for grid, strategy in (
        (LocalGrid(app, nodes), wrapped()),
        (LocalGrid(party.app(), reports), party.wrapped()),
    ):
        error = fails(grid, strategy)
        assert "1 with VaultError" in error
        assert "4 with ParameterError" in error
        assert "bounds" in error
        assert "patient4711" not in error


def test_text_of_a_node_is_not_in_the_error_of_the_run():
    def meddle(message, answer):
        return Message(Error(2, "secagg: no class, patient4711"), reply_to=message)

    grid = Meddler(PLAIN, configs())
    grid.meddle = meddle
    assert "patient4711" not in fails(grid, wrapped())


def test_too_few_survivors_names_the_nodes_that_were_late():
    grid = Meddler(secure_app(), configs())
    grid.meddle = lambda message, answer: None
    assert "5 without a reply in time" in fails(grid, wrapped())


@pytest.mark.parametrize("mod", [SecAggMod, OneShotMod])
@pytest.mark.parametrize(
    ("kind", "remedy"),
    [("train", "SecAgg(FedAvg(), ...)"), ("evaluate", "evaluate={...}"), ("query", "public=")],
)
def test_a_refusal_has_a_remedy_and_no_data(log, mod, kind, remedy):
    grid = LocalGrid(make_app([mod()]), configs())
    replies = [
        grid.send_and_receive([Message(RecordDict({"arrays": model()}), node, kind)])
        for node in NODES
    ]
    (reason,) = {reply.error.reason for (reply,) in replies}
    assert reason.startswith("secagg: ")
    assert remedy in reason
    article = "an" if kind == "evaluate" else "a"
    assert f"refused {article} {kind} message" in log.text


def test_a_reply_to_a_refused_round_names_the_refusal(log):
    """A wrapper with no metric to `evaluate` passes evaluate messages as they are."""
    grid = LocalGrid(secure_app(), configs())
    result = wrapped(FedAvg(), evaluate={}).start(grid, model(), num_rounds=1, timeout=0.0)
    assert_mean(result.arrays, NODES)
    reasons = {reply.error.reason for reply in grid.replies if reply.has_error()}
    assert len(reasons) == 1
    assert "SecAgg(evaluate={...})" in reasons.pop()


def test_one_clipped_element_is_no_plural(log, semi_honest):
    def large(message: Message, context: Context) -> Message:
        reply = train(message, context)
        if context.node_id == NODES[0]:
            scale = np.asarray(reply.content["arrays"]["scale"].numpy() + 5)
            reply.content["arrays"]["scale"] = Array(scale)
        return reply

    run(LocalGrid(secure_app(train=large), configs()))
    run(LocalGrid(semi_honest.app(large), semi_honest.configs()), semi_honest.wrapped())
    clipped = [line for line in warnings(log) if "clipped" in line]
    assert len(clipped) == 4  # of a node and of the server, in either protocol
    assert not any("1 elements" in line for line in clipped)


def test_an_update_below_the_step_is_logged_in_the_node_alone(log, semi_honest):
    def tiny(message: Message, context: Context) -> Message:
        reply = train(message, context)
        if context.node_id == NODES[0]:
            (sent,) = message.content.array_records.values()
            near = {name: Array(np.asarray(one.numpy() + 1e-6)) for name, one in sent.items()}
            reply.content["arrays"] = type(sent)(near)
        return reply

    grids = (
        LocalGrid(secure_app(train=tiny), configs()),
        LocalGrid(semi_honest.app(tiny), semi_honest.configs()),
    )
    run(grids[0])
    run(grids[1], semi_honest.wrapped())
    lost = [line for line in warnings(log) if "half a step" in line]
    assert len(lost) == 2
    assert all("fractional_bits" in line for line in lost)
    assert not any(reply.has_error() for grid in grids for reply in grid.replies)
