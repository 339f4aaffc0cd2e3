"""Answers of a node: never decided by its numbers, and within bounds of its own."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg

from flower_helpers import Door, Party
from flower_nodes import (
    ERROR,
    NODES,
    LocalGrid,
    Reply,
    assert_mean,
    configs,
    errors,
    logged_errors,
    noting,
    run,
    secure_app,
    signed_configs,
    sizes,
    train,
    wrapped,
)
from secagg import (
    Bounds,
    FixedPoint,
    ParameterError,
    RemoteProtocolError,
    SecAggError,
)
from secagg.flower.vectors import Layout
from secagg.flower.wire import Plan

FIRST, *OTHERS = NODES
REFUSED = "secagg: ParameterError"


def replying(**metrics: Any) -> Reply:
    """Train, with other metrics of the first node; None leaves a metric out."""

    def reply(message: Message, context: Context) -> Message:
        found = train(message, context)
        if context.node_id == FIRST:
            record = found.content["metrics"]
            for name, value in metrics.items():
                key = name.replace("_", "-")
                record.pop(key, None)
                if value is not None:
                    record[key] = value
        return found

    return reply


def with_element(value: float) -> Reply:
    def reply(message: Message, context: Context) -> Message:
        found = train(message, context)
        if context.node_id == FIRST:
            bias = found.content["arrays"]["bias"].numpy().copy()
            bias[1] = value
            found.content["arrays"]["bias"] = Array(bias)
        return found

    return reply


def instead(value: Callable[[Message], Any]) -> Reply:
    return lambda m, c: value(m) if c.node_id == FIRST else train(m, c)


def raising(message: Message) -> Message:
    raise KeyError("patient 4711")


WITHOUT = {
    "raises": instead(raising),
    "error": instead(lambda message: Message(Error(2, "patient"), reply_to=message)),
    "none": instead(lambda message: None),
    "empty": instead(lambda message: Message(RecordDict(), reply_to=message)),
    "no weight": replying(num_examples=None),
    "negative": replying(num_examples=-1),
    "nan weight": replying(num_examples=math.nan),
    "inf weight": replying(num_examples=math.inf),
    "nan": with_element(math.nan),
}
"""Outcomes that cannot be summed."""


@pytest.mark.parametrize("name", WITHOUT)
def test_check49_a_node_without_a_valid_update_sends_zeros_of_weight_0(
    door: Door, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    honest = door.grid()
    run(honest, door.strategy())
    grid = door.grid(WITHOUT[name])
    with caplog.at_level(logging.ERROR, "flwr.secagg"):
        result = run(grid, door.strategy())
    assert_mean(result.arrays, OTHERS)
    assert not errors(grid)
    assert sizes(grid) == sizes(honest)
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "zeros" in record.getMessage()
    (error,) = logged_errors([record])
    assert bool(record.exc_info) != isinstance(error, SecAggError)  # one line, or a traceback


@pytest.mark.parametrize(
    ("value", "sent"),
    [(3.0, 2.0), (-3.0, -2.0), (1e300, 2.0), (-(2**60), -2.0)],
    ids=str,
)
def test_check49_a_metric_beyond_its_bound_saturates_and_is_counted(
    door: Door, value: float, sent: float
) -> None:

    def reply(message: Message, context: Context) -> Message:
        found = replying(train_loss=value)(message, context)
        if context.node_id != FIRST:
            found.content["metrics"]["train-loss"] = 1.0
        return found

    grid = door.grid(reply)
    result = run(grid, door.strategy(metrics={"train-loss": 2.0}))
    assert_mean(result.arrays, NODES)
    found = result.train_metrics_clientapp[1]
    assert found["train-loss"] == pytest.approx((14 + sent) / 15, abs=2 * ERROR)
    clipped = found["secagg-clipped" if door.name == "four" else "secagg-clipped-nodes"]
    assert clipped == (1 if door.name == "four" else pytest.approx(1 / 15, abs=ERROR))
    assert not errors(grid)


@pytest.mark.parametrize("value", [1e300, 10**400, 3.0])
@pytest.mark.parametrize("bound", [2.0**-1022, 1.0, 1.7e308])
def test_elements_of_metrics_are_finite(value: float, bound: float) -> None:
    layout = Layout(Plan("n", None, (), (("loss", bound),)), RecordDict(), 2.0)
    record = MetricRecord({"n": 1})
    record.__dict__["_data"]["loss"] = value
    ((element,), _) = layout.vector(RecordDict({"m": record}))
    assert element == (2.0 * (value / bound) if value <= bound else math.nextafter(2.0, 3.0))


OTHER = [
    {"clip": 2.0},
    {"clip": 1.0 + 2**-40},
    {"fractional_bits": 15},
    {"max_weight": 99},
    {"max_weight": 101},
    {"metrics": {"train-loss": 4.5}},
]


@pytest.mark.parametrize("settings", OTHER, ids=str)
@pytest.mark.parametrize("change", ["", "run", "server", "kind"])
def test_check49_bounds_of_the_first_sum_hold_for_all(
    door: Door, semi_honest: Party, settings: dict, change: str
) -> None:
    trained: list[int] = []

    nodes, given = configs(), {"metrics": {"train-loss": 4.0}}
    run(door.grid(nodes=nodes), door.strategy(**given))
    if change == "kind":  # the other protocol
        door = Door("one" if door.name == "four" else "four", semi_honest)
    grid = door.grid(noting(trained), nodes, run_id=2 if change else 1)
    if change == "server":
        evaluated = {"evaluate": settings.get("metrics", given["metrics"])}
        others = {k: v for k, v in settings.items() if k != "metrics"}
        strategy = door.strategy(FedAvg(), **others, **evaluated, on_failure="skip")
    else:
        strategy = door.strategy(**{**given, **settings}, on_failure="skip")
    result = run(grid, strategy)
    if change == "server" and "metrics" in settings:
        assert result.arrays  # the bound is that of the evaluation only
        assert not result.evaluate_metrics_clientapp
    else:
        assert not result.arrays
        assert not trained
    assert set(errors(grid)) == {REFUSED}
    again = run(door.grid(nodes=nodes, run_id=3), door.strategy(**given))
    assert_mean(again.arrays, NODES)


def test_check49_the_metric_that_is_the_weight_holds_for_all_sums(door: Door) -> None:
    """A metric that is 0 in all nodes but one would make the sum the update of that node."""
    rare = replying(rare_cases=1)

    def counted(message: Message, context: Context) -> Message:
        found = rare(message, context)
        found.content["metrics"].setdefault("rare-cases", 0)
        return found

    nodes = configs()
    assert run(door.grid(counted, nodes), door.strategy()).arrays
    other = door.strategy(
        FedAvg(fraction_evaluate=0.0, weighted_by_key="rare-cases"), on_failure="skip"
    )
    grid = door.grid(counted, nodes, run_id=2)
    assert not run(grid, other).arrays
    assert set(errors(grid)) == {REFUSED}
    stated = Bounds(encoding=FixedPoint(1.0, 16), max_weight=100, weight="rare-cases")
    assert run(door.grid(counted, nodes, policy={"bounds": stated}, run_id=3), other).arrays


def test_check49_bounds_of_the_policy_count_alone(door: Door) -> None:
    nodes = configs()
    own = Bounds(encoding=FixedPoint(1.0, 16), max_weight=100, metrics={"train-loss": 4.0})
    run(door.grid(nodes=nodes), door.strategy(clip=2.0))
    for settings, accepted in [
        ({}, True),
        ({"metrics": {"train-loss": 4.0}}, True),
        ({"metrics": {"train-loss": 2.0}}, False),
        ({"metrics": {"num-rows": 4.0}}, False),
        *((other, False) for other in OTHER),
    ]:
        grid = door.grid(nodes=nodes, policy={"bounds": own}, run_id=2)
        found = run(grid, door.strategy(**settings, on_failure="skip")).arrays
        assert bool(found) == accepted
        assert set(errors(grid)) == (set() if accepted else {REFUSED})
    names = {path.name for path in Path(nodes[FIRST]["secagg-state-dir"]).iterdir()}
    assert {name for name in names if "bounds" in name} == {f"{node}.bounds" for node in NODES}


def test_check49_bounds_are_those_of_the_identity(active: Party) -> None:
    """The server gives the ids of nodes."""
    nodes = signed_configs()
    registered = active.registry
    given = {"security": "active", "registry": registered}
    run(LocalGrid(secure_app(), nodes), wrapped(**given))
    moved = {node + 100: config for node, config in nodes.items()}
    grid = LocalGrid(secure_app(), moved, run_id=2)
    assert not run(grid, wrapped(**given, clip=2.0, on_failure="skip")).arrays
    assert set(errors(grid)) == {REFUSED}


def test_an_application_refuses_where_the_server_broke_its_protocol(door: Door) -> None:
    """It drops out: zeros of some nodes would leave the vectors of the others alone."""

    def reply(message: Message, context: Context) -> Message:
        if context.node_id == FIRST:
            raise RemoteProtocolError("no", sender=None, phase="training", check="own")
        return train(message, context)

    grid = door.grid(reply)
    assert_mean(run(grid, door.strategy()).arrays, OTHERS)
    assert set(errors(grid)) == {"secagg: RemoteProtocolError"}


@pytest.mark.parametrize("kind", ["exits", "clears its state", "replaces its state"])
def test_check49_an_application_cannot_drop_its_node_out(door: Door, kind: str) -> None:
    def reply(message: Message, context: Context) -> Message:
        if context.node_id == FIRST:
            if kind == "exits":
                raise SystemExit(1)
            if kind == "clears its state":
                context.state.clear()
            else:
                context.state = RecordDict()
        return train(message, context)

    grid = door.grid(reply)
    result = run(grid, door.strategy())
    assert not errors(grid)
    assert_mean(result.arrays, OTHERS if kind == "exits" else NODES)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_check49_models_that_fail_some_trainings_are_rejected(door: Door, bad: float) -> None:
    """Their zeros would leave the nodes that do not use the element alone in the sum."""
    trained: list[int] = []

    start = ArrayRecord({"weights": Array(np.array([0.0, bad])), "bias": Array(np.zeros(2))})
    grid = door.grid(noting(trained))
    for excluded in ((), ("weights",)):
        if excluded and math.isinf(bad):
            continue
        with pytest.raises(ParameterError):
            door.strategy(exclude=excluded).start(grid, start, num_rounds=1)
    assert not trained


def test_a_sum_is_spent_before_the_training(door: Door) -> None:
    grid = door.grid(WITHOUT["raises"])
    messages: list[Message] = []
    grid.meddle = lambda message, answer: messages.append(message) or answer(message)
    run(grid, door.strategy())
    for message in messages:
        assert grid.answer(message).error.reason.startswith("secagg: ")
