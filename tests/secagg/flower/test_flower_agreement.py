"""Inputs of a node's application: agreed on by all nodes of a sum, or the node's own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from flower_helpers import Door
from flower_nodes import (
    NODES,
    Meddler,
    assert_mean,
    configs,
    logged_errors,
    model,
    noting,
    phase_of,
    run,
    secure_app,
    train,
)
from secagg import TooFewSurvivors
from secagg.flower.testing import LocalGrid

CONFIG = {"lr": 0.1, "epochs": 2, "name": "é", "own": True}
OTHERS = list(NODES[1:])
Answer = Callable[[Message], Message]


CHANGES = [
    {**CONFIG, "epochs": 2.0},
    {**CONFIG, "epochs": True},
    {**CONFIG, "more": 1},
    {},
]


@pytest.mark.parametrize("other", CHANGES, ids=str)
def test_check49_a_node_with_another_configuration_does_not_train(
    door: Door, other: dict, caplog: pytest.LogCaptureFixture
) -> None:
    trained: list[int] = []
    grid = door.grid(noting(trained), run_config=CONFIG)
    grid.contexts[NODES[0]].run_config = other
    with caplog.at_level(logging.ERROR, "flwr.secagg"):
        assert_mean(run(grid, door.strategy()).arrays, OTHERS)
    assert sorted(trained) == OTHERS
    (error,) = logged_errors(caplog.records)
    assert error.check == "message"


def test_check49_a_server_with_a_configuration_for_each_node_gets_no_sum(door: Door) -> None:
    grid = door.grid(run_config={"lr": 0.0})
    for node, context in grid.contexts.items():
        context.run_config = {"lr": 1.0 if node == NODES[0] else 0.0}
    with pytest.raises(TooFewSurvivors):  # all but the victim: four of the nodes have lr = 0
        run(grid, door.strategy(**{"min_clients" if door.name == "one" else "threshold": 5}))


def shown(door: Door, alter: Callable[[Meddler, Message], None]) -> dict[int, tuple]:
    """All that an application finds in its arguments, by node, with one altered message."""
    found: dict[int, tuple] = {}

    def spy(message: Message, context: Context) -> Message:
        metadata = {k: v for k, v in vars(message.metadata).items() if k != "_created_at"}
        assert abs(vars(message.metadata)["_created_at"] - created[0]) < 3600
        node = (metadata.pop("_dst_node_id"), context.node_id)
        private = ("node_id", "node_config", "state")
        own = {k: v for k, v in vars(context).items() if k not in private}
        more = {k: v for k, v in vars(message).items() if k not in ("_metadata", "_content")}
        records = [(name, list(record.items())) for name, record in message.content.items()]
        assert node == (context.node_id, context.node_id)
        found[context.node_id] = (metadata, own, list(own["run_config"]), more, records)
        return train(message, context)

    def meddle(message: Message, answer: Answer) -> Message:
        created[:] = created or [message.metadata.created_at]
        # the server holds one object for all nodes
        node, message = (
            message.metadata.dst_node_id,
            message_from_proto(message_to_proto(message)),
        )
        if node == NODES[0] and phase_of(message) in ("masked_input", "report"):
            alter(grid, message)
        return grid.answer_as(node, message)

    created: list[float] = []

    class Altering(Meddler):
        def answer_as(self, node: int, message: Message) -> Message:
            context = self.contexts[node]
            try:
                return self._app(message, context)
            finally:
                self.contexts[node] = context

    honest = door.grid(spy, run_config=CONFIG)
    grid = Altering(
        honest._app, {n: c.node_config for n, c in honest.contexts.items()}, run_config=CONFIG
    )
    grid.meddle = meddle
    strategy = door.strategy(on_failure="skip")
    strategy.start(grid, model(), num_rounds=1, timeout=0.0, train_config=ConfigRecord(CONFIG))
    return found


def in_metadata(name: str, value: object) -> Callable[[Meddler, Message], None]:
    return lambda grid, message: message.metadata.__dict__.update({name: value})


def in_context(name: str, value: object) -> Callable[[Meddler, Message], None]:
    return lambda grid, message: grid.contexts[NODES[0]].__dict__.update({name: value})


def order_of_records(grid: Meddler, message: Message) -> None:
    message.content = RecordDict(dict(reversed(message.content.items())))


def order_of_configuration(grid: Meddler, message: Message) -> None:
    context = grid.contexts[NODES[0]]
    context.run_config = dict(reversed(context.run_config.items()))


def attribute_of_message(grid: Meddler, message: Message) -> None:
    message.__dict__["_lr"] = 1.0


METADATA = {
    **dict.fromkeys(("_message_id", "_reply_to_message_id", "_delivered_at"), "4711"),
    **dict.fromkeys(("_src_node_id", "_dst_node_id", "_src_task_id", "_dst_task_id"), 4711),
    **dict.fromkeys(("_ttl", "_created_at"), 4711.0),
    **dict.fromkeys(("_run_id", "_lr"), 4711),
}
WITHHELD = {
    **{name: in_metadata(name, value) for name, value in METADATA.items()},
    "series_id": in_context("series_id", 4711),
    "context": in_context("lr", 4711),
    "records": order_of_records,
    "configuration": order_of_configuration,
    "message": attribute_of_message,
}


@pytest.mark.parametrize("name", WITHHELD)
def test_check49_what_is_not_agreed_on_is_withheld(door: Door, name: str) -> None:
    found = shown(door, WITHHELD[name])
    assert sorted(found) == list(NODES)
    first, *others = (found[node] for node in NODES)
    assert first[1]["run_config"] == CONFIG
    assert all(repr(first) == repr(other) for other in others)


BOUND = {
    "_group_id": in_metadata("_group_id", "4711"),
    "_message_type": in_metadata("_message_type", "train.default"),
    "run_id": in_context("run_id", 4711),
    "run_config": in_context("run_config", {**CONFIG, "lr": 1.0}),
}


@pytest.mark.parametrize("name", BOUND)
def test_check49_what_the_application_gets_is_agreed_on(door: Door, name: str) -> None:
    assert sorted(shown(door, BOUND[name])) == OTHERS


def test_state_of_a_node_changes_in_sums_only(door: Door) -> None:
    """Nobody agreed on an evaluate message whose reply is public."""

    def noting(message: Message, context: Context) -> Message:
        context.state.setdefault("seen", ConfigRecord({"n": 0}))["n"] += 1
        return train(message, context)

    def evaluate(message: Message, context: Context) -> Message:
        seen = context.state["seen"]["n"]
        context.state["seen"]["n"] = 4711
        context.state["more"] = ArrayRecord()
        content = {"metrics": train(message, context).content["metrics"]}
        content["metrics"]["train-loss"] = seen
        return Message(RecordDict(content), reply_to=message)

    grid = door.grid(noting, evaluate=evaluate, public=("num-examples", "train-loss"))
    run(grid, door.strategy(), rounds=2)
    content = RecordDict({"arrays": model()})
    (reply,) = grid.send_and_receive([Message(content, NODES[0], "evaluate")])
    assert reply.content["metrics"]["train-loss"] == 2
    assert dict(grid.contexts[NODES[0]].state["seen"]) == {"n": 2}
    assert set(grid.contexts[NODES[0]].state) == {"seen"}


def test_reply_works_where_the_process_has_no_task(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Actors of Flower's simulation set no identity of a task."""
    grid = door.grid()
    answer = grid.answer

    def without(message: Message) -> Message:
        with monkeypatch.context() as patch:
            for name in ("_task_id", "_run_id", "_node_id"):
                patch.setattr(TaskIdentity, name, None)
            return answer(message)

    grid.answer = without
    assert_mean(run(grid, door.strategy()).arrays, NODES)


def test_configuration_of_a_run_is_fused_of_its_app_and_what_it_overrides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    grid = LocalGrid(secure_app(), configs(), run_config={"lr": 0.5, "deep": {"n": 3}})
    monkeypatch.setenv("FLWR_HOME", str(tmp_path))
    folder = tmp_path / "apps" / "me.app.1.0.0.01234567"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "app"\nversion = "1.0.0"\nlicense = "MIT"\n'
        'description = ""\n[tool.flwr.app]\npublisher = "me"\n'
        '[tool.flwr.app.components]\nserverapp = "a:a"\nclientapp = "a:a"\n'
        "[tool.flwr.app.config]\nlr = 0.1\n[tool.flwr.app.config.deep]\nn = 3\n"
    )
    made = Run.create_empty(1)
    made.fab_id, made.fab_version, made.fab_hash = "me/app", "1.0.0", "0123456789"
    made.override_config = {"lr": 0.5}
    grid.set_run(made)
    assert_mean(run(grid).arrays, NODES)
