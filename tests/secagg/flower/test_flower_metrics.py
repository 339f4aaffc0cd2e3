"""Metrics that are no number at some nodes: the server has none, and a warning in its log."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg

from flower_helpers import Door, Party
from flower_nodes import (
    ERROR,
    NODES,
    LocalGrid,
    assert_mean,
    configs,
    errors,
    run,
    sizes,
    train,
    weight,
)
from secagg.flower.wire import MISSING

ASKED = {"accuracy": 1.0, "loss": 4.0}
Change = Callable[[RecordDict], object]


def given(value: object) -> Change:
    return lambda content: content["metrics"].update({"accuracy": value})


def moved(content: RecordDict) -> None:
    content["others"] = ConfigRecord({"accuracy": content["metrics"].pop("accuracy")})


def renamed(content: RecordDict) -> None:
    content["metrics"]["acuracy"] = content["metrics"].pop("accuracy")


NO_NUMBER: dict[str, Change] = {
    "missing": lambda content: content["metrics"].pop("accuracy"),
    "another name": renamed,
    "another record": moved,
    "nan": given(math.nan),
    "-inf": given(-math.inf),
    "list": given([0.5]),
}
PLACES = {"first": NODES[:1], "all but one": NODES[1:], "all": NODES}


def replying(change: Change, nodes: Any, *, trains: bool) -> Callable[..., Message]:
    """Reply with two metrics, of which `change` spoils the accuracy at some nodes."""

    def reply(message: Message, context: Context) -> Message:
        node = context.node_id
        measured = {"num-examples": weight(node), "accuracy": 0.25, "loss": 2.0}
        content = RecordDict({"metrics": MetricRecord(measured)})
        if trains:
            content["arrays"] = train(message, context).content["arrays"]
        if node in nodes:
            change(content)
        return Message(content, reply_to=message)

    return reply


def grid_of(door: Door, change: Change, nodes: Any) -> LocalGrid:
    training, evaluating = (replying(change, nodes, trains=trains) for trains in (True, False))
    return door.grid(training, evaluate=evaluating)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", NO_NUMBER)
def test_check49_a_metric_that_is_no_number_is_left_out_with_a_warning(
    door: Door, kind: str, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """All other metrics and the model are those of honest nodes, and so are all sizes."""
    settings = {"metrics": ASKED, "evaluate": ASKED}
    honest = grid_of(door, lambda _: None, ())
    with caplog.at_level(logging.WARNING, "flwr.secagg"):
        plain = run(honest, door.strategy(FedAvg(), **settings))
    assert not caplog.records
    grid = grid_of(door, NO_NUMBER[kind], PLACES[place])
    with caplog.at_level(logging.WARNING, "flwr.secagg"):
        result = run(grid, door.strategy(FedAvg(), **settings))
    assert_mean(result.arrays, NODES)
    assert not errors(grid)
    assert sizes(grid) == sizes(honest)
    rounds = (result.train_metrics_clientapp[1], result.evaluate_metrics_clientapp[1])
    before = (plain.train_metrics_clientapp[1], plain.evaluate_metrics_clientapp[1])
    for found, known in zip(rounds, before, strict=True):
        assert set(known) - set(found) == {"accuracy"}
        assert not any(name.startswith(MISSING) for name in known)
        assert known["accuracy"] == pytest.approx(0.25, abs=ERROR)
        assert found["loss"] == pytest.approx(2.0, abs=4 * ERROR)
        counted = "secagg-clipped" if door.name == "four" else "secagg-clipped-nodes"
        assert known[counted] == 0
        assert 0 < found[counted] <= (len(PLACES[place]) if door.name == "four" else 1)
    server = [one.getMessage() for one in caplog.records if one.getMessage()[:4] != "node"]
    assert len([line for line in server if "'accuracy'" in line]) == 2
    assert not any("'loss'" in line for line in server)


@pytest.mark.parametrize(("largest", "lowered"), [(500, 0), (499, 1), (250, 3), (99, 5)])
@pytest.mark.parametrize("far", [0, 1])
def test_lowered_weights_count_as_clipped_and_name_the_argument(
    door: Door,
    largest: int,
    lowered: int,
    far: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One element of each node is beyond the clip, too, if `far` is 1."""

    def reply(message: Message, context: Context) -> Message:
        found = train(message, context)
        found.content["metrics"]["num-examples"] = 100 * weight(context.node_id)
        record = found.content["arrays"]
        record["scale"] = Array(np.asarray(record["scale"].numpy() + 9 * far))
        return found

    grid = door.grid(reply)
    with caplog.at_level(logging.WARNING, "flwr.secagg"):
        found = run(grid, door.strategy(max_weight=largest)).train_metrics_clientapp[1]
    lines = [one.getMessage() for one in caplog.records if "max_weight" in one.getMessage()]
    server = [line for line in lines if not line.startswith("node ")]
    assert len(lines) - len(server) == lowered
    assert len(server) == (lowered + far > 0)
    if door.name == "four":
        assert found["secagg-clipped"] == lowered + far * len(NODES)
    else:
        weights = [min(100 * weight(node), largest) for node in NODES]
        part = sum(weights if far else weights[len(NODES) - lowered :]) / sum(weights)
        assert found["secagg-clipped-nodes"] == pytest.approx(part, abs=2 * ERROR)


@pytest.mark.parametrize("clip", [0.1, 1 / 3, 1.0, 8.0, 0.01])
def test_parts_of_the_weight_are_at_most_1(semi_honest: Party, clip: float) -> None:
    """The encoding rounds the clip."""

    def reply(message: Message, context: Context) -> Message:
        found = train(message, context)
        record = found.content["arrays"]
        record["scale"] = Array(np.asarray(record["scale"].numpy() + 99))
        return found

    grid = LocalGrid(semi_honest.app(reply), configs())
    found = run(grid, semi_honest.wrapped(clip=clip)).train_metrics_clientapp[1]
    assert 1 - 2**-16 / clip <= found["secagg-clipped-nodes"] <= 1
