"""Records of the protocol: what is read is exactly what was written."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from msgspec.msgpack import encode as write_plan

from flower_nodes import configs, model, secure_app
from secagg import ParameterError, Phase, RemoteProtocolError
from secagg.flower.testing import LocalGrid
from secagg.flower.wire import (
    MISSING,
    RECORD,
    Plan,
    Task,
    answer_record,
    content_digest,
    read_answer,
    read_plan,
    read_task,
    task_record,
)

PLAN = Plan("num-examples", "arrays", ("steps",), (("loss", 2.0),))
RUN = {"own": True, "lr": 0.1}
"""Configuration of a run."""
TASKS = [
    Task(Phase.ADVERTISE_KEYS, b"params", b"", b""),
    Task(Phase.SHARE_KEYS, b"params", b"", b"data"),
    Task(Phase.MASKED_INPUT, b"params", b"plan", b"data"),
    Task(Phase.CONSISTENCY_CHECK, b"params", b"", b"data"),
    Task(Phase.UNMASKING, b"params", b"", b"data"),
    Task("report", b"params", b"plan", b"data"),
]


@pytest.fixture(autouse=True)
def _grid() -> None:
    LocalGrid(secure_app(), configs())  # Flower's messages need a run in the process


def config(task: Task, **changes: object) -> RecordDict:
    fields = {**task_record(task), **changes}
    return RecordDict(
        {RECORD: ConfigRecord({k: v for k, v in fields.items() if v is not None})}
    )


@pytest.mark.parametrize("task", TASKS, ids=lambda task: str(task.phase))
def test_task_is_read_as_it_was_written(task: Task) -> None:
    assert read_task(RecordDict({RECORD: task_record(task)})) == task
    assert read_task(RecordDict({"arrays": ArrayRecord()})) is None


@pytest.mark.parametrize(
    ("task", "changes", "check"),
    [
        (1, {"version": None}, "version"),
        (1, {"phase": "finished"}, "record"),
        (1, {"params": None}, "record"),
        (1, {"data": "text"}, "record"),
        (1, {"more": b""}, "record"),
        (1, {"plan": b"plan"}, "record"),
        (2, {"plan": b""}, "record"),
        (0, {"data": b"data"}, "record"),
    ],
    ids=str,
)
def test_other_tasks_are_rejected(task, changes, check):
    with pytest.raises(RemoteProtocolError) as caught:
        read_task(config(TASKS[task], **changes))
    assert caught.value.check == check
    with pytest.raises(RemoteProtocolError) as caught:
        read_task(RecordDict({RECORD: ArrayRecord()}))
    assert caught.value.check == "record"


def test_plan_is_read_as_it_was_written():
    assert read_plan(write_plan(PLAN)) == PLAN
    names = [f"{j:0256d}" for j in range(256)]
    most = Plan("weight", None, (), tuple((p + n, 1.0) for p in ("", MISSING) for n in names))
    assert read_plan(write_plan(most)) == most
    without = Plan("weight", None, (), ())
    unweighted = Plan(None, "arrays", (), ())
    assert read_plan(write_plan(without)) == without
    assert read_plan(write_plan(unweighted)) == unweighted


OTHER = [
    [("loss", 0.0)],
    [("loss", float("nan"))],
    [("loss", float("inf"))],
    [("loss", 1e-309)],
    [("loss", 1.0), ("loss", 2.0)],
    [("w", 1.0)],
    [(f"{i}", 1.0) for i in range(257)],
    [("l" * 257, 1.0)],
    [("secagg-clipped-nodes", 0.5)],
    [("secagg-clipped-nodes", 1.0), ("loss", 1.0)],
    [("secagg-missing-loss", 1.0)],
    [("loss", 2.0), ("secagg-missing-loss", 2.0)],
    [("loss", 1.0), ("secagg-missing-los", 1.0)],
    [("secagg-clipped-nodes", 1.0), ("secagg-missing-secagg-clipped-nodes", 1.0)],
]
"""Metrics of no plan."""


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x90",
        write_plan(PLAN)[:-1],
        write_plan(PLAN) + b"\0",
        *(write_plan(Plan("w", "a", (), metrics)) for metrics in OTHER),
        write_plan(Plan("w", None, (), ())).replace(b"\xa1w", b"\xd9\x01w"),  # a longer form
        write_plan(Plan(None, "a", (), (("loss", 1.0),))),  # a metric of an unweighted sum
    ],
)
def test_other_plans_are_rejected(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        read_plan(data)
    assert caught.value.check == "plan"


@pytest.mark.parametrize("large", [False, True])
def test_answer_is_read_as_it_was_written(large: bool) -> None:
    content = RecordDict({RECORD: answer_record(b"data", large=large)})
    assert read_answer(content, large=large, sender=1, phase="p") == b"data"


def array(data: bytes = b"data", stype: str = "secagg.message") -> Array:
    return Array("uint8", (len(data),), stype, data)


@pytest.mark.parametrize(
    ("large", "content"),
    [
        (False, {}),
        (False, {RECORD: ConfigRecord()}),
        (False, {RECORD: ConfigRecord({"data": "text"})}),
        (False, {RECORD: ConfigRecord({"data": b"", "more": b""})}),
        (False, {RECORD: ConfigRecord({"data": b""}), "more": ConfigRecord()}),
        (False, {"other": ConfigRecord({"data": b""})}),
        (False, {RECORD: ArrayRecord({"data": array()})}),
        (True, {RECORD: ConfigRecord({"data": b""})}),
        (True, {RECORD: ArrayRecord({"data": array(stype="numpy.ndarray")})}),
        (True, {RECORD: ArrayRecord({"data": array(), "more": array()})}),
    ],
)
def test_other_answers_are_rejected(large, content):
    with pytest.raises(RemoteProtocolError) as caught:
        read_answer(RecordDict(content), large=large, sender=7, phase="p")
    assert (caught.value.check, caught.value.sender) == ("record", 7)


def message(content: dict | None = None, kind: str = "train", group: str = "3") -> Message:
    found = content or {"arrays": model(), "config": ConfigRecord({"lr": 0.1})}
    return Message(RecordDict(found), 11, kind, group_id=group)


def part(kind: bytes, data: bytes) -> bytes:
    return bytes([len(kind)]) + struct.pack("<Q", len(data)) + kind + data


def test_digest_is_that_of_the_specification():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    flwr = Array(array)
    given = {
        "b": ConfigRecord({"s": "é", "l": [1, -2], "f": 0.5, "t": True, "y": b"\0", "e": []}),
        "a": ArrayRecord({"w": flwr}),
        "m": MetricRecord({"x": 1}),
        RECORD: ConfigRecord({"data": b"ignored"}),
    }
    one, two = struct.pack("<Q", 1), struct.pack("<Q", 2)
    expected = [
        *[(b"", b"plan"), (b"", b"train"), (b"", b"3"), (b"", two)],
        *[(b"", b"lr"), (b"float", struct.pack("<d", 0.1))],
        *[(b"", b"own"), (b"bool", b"\1")],
        *[(b"ArrayRecord", b"a"), (b"", one), (b"", b"w"), (b"array", b"float32")],
        *[(b"array", struct.pack("<2Q", 2, 3)), (b"array", b"numpy.ndarray")],
        *[(b"array", flwr.data), (b"ConfigRecord", b"b"), (b"", struct.pack("<Q", 6))],
        *[(b"", b"s"), (b"", one), (b"str", "é".encode())],
        *[(b"", b"l"), (b"list", two), (b"int", b"1"), (b"int", b"-2")],
        *[(b"", b"f"), (b"", one), (b"float", struct.pack("<d", 0.5))],
        *[(b"", b"t"), (b"", one), (b"bool", b"\1")],
        *[(b"", b"y"), (b"", one), (b"bytes", b"\0")],
        *[(b"", b"e"), (b"list", struct.pack("<Q", 0)), (b"MetricRecord", b"m"), (b"", one)],
        *[(b"", b"x"), (b"", one), (b"int", b"1")],
    ]
    data = b"secagg/2 flower message" + b"".join(part(*item) for item in expected)
    assert content_digest(message(given), b"plan", RUN) == hashlib.sha256(data).digest()


CONFIG = {"lr": 0.1, "steps": 3}
CHANGES = [
    {"kind": "train.own"},
    {"group": "4"},
    {"content": {"arrays": model()}},
    {"content": {"arrays": model(w=np.ones(2)), "config": ConfigRecord(CONFIG)}},
    {"content": {"model": model(), "config": ConfigRecord(CONFIG)}},
    {"content": {"arrays": model(), "config": MetricRecord(CONFIG)}},
    *(
        {"content": {"arrays": model(), "config": ConfigRecord(other)}}
        for other in (dict(reversed(CONFIG.items())), CONFIG | {"steps": 3.0})
    ),
    {"content": {"arrays": model(), "config": ConfigRecord(CONFIG | {"steps": [3]})}},
]


@pytest.mark.parametrize("change", range(len(CHANGES)))
def test_every_change_of_a_message_changes_its_digest(change: int) -> None:
    same = {"content": {"arrays": model(), "config": ConfigRecord(CONFIG)}}
    first = content_digest(message(**same), b"plan", RUN)
    assert content_digest(message(**same), b"plan", RUN) == first
    assert content_digest(message(**{**same, **CHANGES[change]}), b"plan", RUN) != first
    assert content_digest(message(**same), b"other", RUN) != first


@pytest.mark.parametrize(
    "other",
    [{}, {"own": True}, {"own": True, "lr": 0.2}, {"own": 1, "lr": 0.1}, {**RUN, "x": 1}],
    ids=str,
)
def test_every_change_of_a_configuration_changes_the_digest(other: dict[str, object]) -> None:
    first = content_digest(message(), b"plan", RUN)
    assert content_digest(message(), b"plan", dict(reversed(RUN.items()))) == first
    assert content_digest(message(), b"plan", other) != first


def test_value_of_an_unknown_type_is_an_error():
    record = ConfigRecord({"x": 1})
    record.__dict__["_data"]["x"] = None
    with pytest.raises(ParameterError):
        content_digest(message({"config": record}), b"plan", RUN)
