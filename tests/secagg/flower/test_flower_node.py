"""A node against parameters and messages that no honest server sends, and its state."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MetricRecord,
    RecordDict,
)

from flower_helpers import Door
from flower_nodes import (
    NODES,
    Meddler,
    configs,
    fedavg,
    logged_errors,
    model,
    noting,
    phase_of,
    run,
    secure_app,
    wrapped,
)
from frames import leaks
from secagg import Integers, ParameterError, RemoteProtocolError, VaultError
from secagg.flower.state import NodeState
from secagg.flower.testing import LocalGrid
from secagg.flower.vectors import Layout
from secagg.flower.wire import Plan
from secagg.session.wire import read_name, write_name

SECRET = 0.0731
"""Update of every element in the test of the frames of errors."""


def renamed(**fields: object) -> Callable[[Any], Any]:
    """Change of a field of the name of the sum."""

    def change(params: Any) -> Any:
        name = read_name(params.session)._replace(**fields)
        return replace(params, session=write_name(b"flower", name))

    return change


UNFIT = {
    "run": (renamed(run=bytes(8)), "advertise_keys"),
    "attempt": (renamed(attempt=1), "advertise_keys"),
    "no name": (lambda params: replace(params, session=b"short"), "advertise_keys"),
    "message": (renamed(message=bytes(32)), "masked_input"),
    "length": (lambda params: replace(params, length=params.length + 1), "masked_input"),
    "unweighted": (lambda params: replace(params, max_weight=None), "advertise_keys"),
    "encoding": (lambda params: replace(params, encoding=Integers(9)), "advertise_keys"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_check49_parameters_that_do_not_fit_are_rejected_before_training(
    door: Door, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (change, phase), trained, refused = UNFIT[name], [], []
    strategy = door.strategy(on_failure="skip")
    kind, honest = type(strategy), type(strategy)._params
    monkeypatch.setattr(kind, "_params", lambda *given: change(honest(*given)))

    def note(message: Message, answer: Callable[[Message], Message]) -> Message:
        reply = answer(message)
        if reply.has_error():
            refused.append((phase_of(message), reply.error.reason))
        return reply

    grid = door.grid(noting(trained))
    grid.meddle = note
    run(grid, strategy)
    due = phase if door.name == "four" else "report"
    assert refused == [(due, "secagg: RemoteProtocolError")] * len(NODES)
    assert not trained


def test_check46_frames_of_a_failed_message_do_not_have_the_update(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    """A number that is none is found beside the vector."""

    def wrong(message: Message, context: Context) -> Message:
        before = message.content["arrays"].items()
        arrays = {name: np.asarray(array.numpy() + SECRET) for name, array in before}
        arrays["weights"][0, 0] = np.nan
        measured = MetricRecord({"num-examples": 1})
        content = RecordDict({"arrays": model(**arrays), "metrics": measured})
        return Message(content, reply_to=message)

    with caplog.at_level(logging.ERROR, "flwr.secagg"):
        run(door.grid(wrong), door.strategy(on_failure="skip"))
    failed = logged_errors(caplog.records)
    assert len(failed) == len(NODES)
    start = model()["bias"].numpy()
    secrets = [(start + SECRET).tobytes(), (start + SECRET - start).tobytes()]
    assert not [place for error in failed for place in leaks(error, secrets, __name__)]


def test_a_node_without_a_client_does_not_train():
    trained = []

    def forget(message: Message, answer: Callable[[Message], Message]) -> Message:
        if phase_of(message) == "masked_input":
            grid.contexts[message.metadata.dst_node_id].state.clear()
        return answer(message)

    grid = Meddler(secure_app(train=noting(trained)), configs())
    grid.meddle = forget
    run(grid, wrapped(on_failure="skip"))
    assert {r.error.reason for r in grid.replies if r.has_error()} == {
        "secagg: LocalProtocolError"
    }
    assert not trained


def test_a_sum_of_metrics_has_no_arrays() -> None:
    """An evaluate message whose plan asks for the arrays of the reply gets none of them."""
    layout = Layout(Plan("num-examples", None, (), (("eval-loss", 4.0),)), RecordDict(), 1.0)
    reply = RecordDict({"m": MetricRecord({"num-examples": 2, "eval-loss": 1.0, "more": 5})})
    vector, found = layout.vector(reply)
    assert (vector.tolist(), found) == ([0.25], 2)
    arrays, metrics = layout.restored(np.array([0.25]))
    assert (dict(arrays), metrics) == ({}, {"eval-loss": 1.0})


def content(arrays: dict[str, np.ndarray], **metrics: float) -> RecordDict:
    return RecordDict({"a": model(**arrays), "m": MetricRecord({"num-examples": 1, **metrics})})


START = {"b": np.zeros(2, dtype=np.float32), "a": np.ones((1, 2)), "n": np.array(7)}
LAYOUT = Layout(
    Plan("num-examples", "arrays", ("n",), (("loss", 2.0),)),
    RecordDict({"arrays": model(**START)}),
    0.5,
)


def test_vector_is_the_difference_in_the_order_of_names_and_the_metrics():
    after = {"a": np.array([[2.0, 3.0]]), "b": np.array([0.5, 0.25], dtype=np.float32)}
    vector, _ = LAYOUT.vector(content(after, loss=1.0))
    assert vector.tolist() == [1.0, 2.0, 0.5, 0.25, 0.25]
    assert LAYOUT.length == 5
    arrays, metrics = LAYOUT.restored(vector)
    assert list(arrays) == list(START)
    assert arrays["a"].numpy().tolist() == [[2.0, 3.0]]
    assert arrays["b"].numpy().dtype == np.float32
    assert metrics == {"loss": 1.0}


@pytest.mark.parametrize(
    "reply",
    [
        content({"a": np.ones((1, 2))}, loss=1.0),
        content({**START, "c": np.ones(1)}, loss=1.0),
        content({**START, "b": np.zeros(3)}, loss=1.0),
        content({**START, "b": np.zeros(2, int)}, loss=1.0),
        content({**START}, **{"num-examples": 1.5, "loss": 1.0}),
        content({**START}, **{"num-examples": float("nan"), "loss": 1.0}),
        content({**START}, **{"num-examples": float("inf"), "loss": 1.0}),
        RecordDict({"a": model(**START)}),
        RecordDict({"m": MetricRecord({"num-examples": 1, "loss": 1.0})}),
        RecordDict({**content(START, loss=1.0), "b": model(**START)}),
        RecordDict({**content(START, loss=1.0), "n": MetricRecord()}),
    ],
    ids=range(11),
)
def test_reply_that_does_not_fit_the_plan_is_an_error(reply: RecordDict) -> None:
    with pytest.raises(ParameterError):
        LAYOUT.vector(reply)


def test_weights_may_be_floats_of_whole_numbers():
    assert LAYOUT.vector(content(START, **{"num-examples": 3.0, "loss": 0.0}))[1] == 3


def test_message_without_the_model_is_an_error():
    with pytest.raises(ParameterError):
        Layout(Plan("w", "arrays", (), ()), RecordDict(), 1.0)
    with pytest.raises(ParameterError):
        Layout(Plan("w", "c", (), ()), RecordDict({"c": ConfigRecord({"a": 1.0})}), 1.0)


@pytest.mark.parametrize(
    "array",
    [Array(np.ones(2, int)), Array("bfloat16", (1,), "torch", b"\0\0")],
    ids=["int", "bfloat16"],
)
def test_model_with_other_arrays_than_floats_is_an_error_in_a_node(array: Array) -> None:
    with pytest.raises(ParameterError):
        Layout(Plan("w", "a", (), ()), RecordDict({"a": ArrayRecord({"w": array})}), 1.0)


def context(folder: object, node: int = 1, run_id: int = 1) -> Context:
    return Context(run_id, node, {"secagg-state-dir": folder}, RecordDict(), {})


def test_check49_number_of_a_client_is_that_of_its_identity(ram_path: Path) -> None:
    NodeState(context(str(ram_path)), client_id=5).begin(3)
    with pytest.raises(RemoteProtocolError):
        NodeState(context(str(ram_path), node=2), client_id=5).begin(3)
    NodeState(context(str(ram_path), node=2), client_id=6).begin(3)


def test_folder_and_files_are_the_nodes_own(ram_path: Path) -> None:
    folder = ram_path / "new" / "state"
    NodeState(context(str(folder))).begin(0)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())]
    assert modes == [0o700, 0o600]


def test_folder_is_by_default_in_that_of_flower(
    monkeypatch: pytest.MonkeyPatch, ram_path: Path
) -> None:
    monkeypatch.setenv("FLWR_HOME", str(ram_path))
    NodeState(Context(1, 1, {}, RecordDict(), {})).begin(0)
    assert os.listdir(ram_path / "secagg") == ["1-1.last"]


def test_folder_that_cannot_be_used_is_an_error(ram_path: Path) -> None:
    (ram_path / "file").touch()
    with pytest.raises(VaultError) as caught:
        NodeState(context(str(ram_path / "file")))
    assert caught.value.check == "file"
    with pytest.raises(ParameterError):
        NodeState(context(7))


def resent(
    batch: list[Message], *kinds: str, groups: tuple[str, ...] = ("",), **records: Any
) -> list[Message]:
    """Messages of one content, in turn of these kinds and groups."""
    content = RecordDict({**batch[0].content, **records})
    return [
        Message(
            content,
            message.metadata.dst_node_id,
            kinds[place % len(kinds)],
            group_id=groups[place % len(groups)],
        )
        for place, message in enumerate(batch)
    ]


BATCHES: dict[str, tuple[Callable[[list[Message]], list[Message]], bool]] = {
    "default": (lambda batch: resent(batch, "train.default"), True),
    "copies": (lambda batch: [resent([one], "train")[0] for one in batch], True),
    "group": (lambda batch: resent(batch, "train", groups=("7",)), True),
    "twice": (lambda batch: batch + batch[:1], False),
    "record": (lambda batch: resent(batch, "train", secagg=ConfigRecord()), False),
    "models": (lambda batch: resent(batch, "train", more=model()), False),
    "kinds": (lambda batch: resent(batch, "train", "evaluate"), False),
    "names": (lambda batch: resent(batch, "train", "train.default"), False),
    "groups": (lambda batch: resent(batch, "train", groups=("7", "8")), False),
    "contents": (
        lambda batch: resent(batch[:1], "train", own=ConfigRecord({"lr": 1})) + batch[1:],
        False,
    ),
}


@pytest.mark.parametrize("name", BATCHES)
def test_strategies_own_messages_must_be_of_one_kind_and_model(name: str) -> None:
    change, accepted = BATCHES[name]

    class Changed(type(fedavg())):
        def configure_train(self, *given):
            return change(list(super().configure_train(*given)))

    strategy = wrapped(Changed(fraction_evaluate=0), averaging=True)
    with nullcontext() if accepted else pytest.raises(ParameterError):
        run(LocalGrid(secure_app(), configs()), strategy)


def test_errors_of_nodes_follow_the_mean():
    seen = []

    class Spy(type(fedavg())):
        def aggregate_train(self, server_round, replies):
            seen.extend(replies)
            return super().aggregate_train(server_round, seen)

    grid = LocalGrid(secure_app(), configs())
    grid.drop(NODES[0], 2)
    run(grid, wrapped(Spy(fraction_evaluate=0.0), averaging=True))
    assert [reply.has_error() for reply in seen] == [False, True]
