"""Everything that a node replies, whatever its application does: nothing of it in the clear."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import numpy as np
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.common.serde import message_to_proto
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from flower_helpers import Party
from flower_nodes import FIXED, Meddler, configs, make_app, wrapped
from secagg.flower import OneShotMod, SecAggMod
from secagg.flower.node import Guard
from secagg.flower.wire import RECORD
from secagg.oneshot import OneShotPolicy

SECRET = "patient4711"  # noqa: S105
LOSS = 0.7310585786300049
PLAIN = (SECRET.encode(), struct.pack("<d", LOSS), struct.pack("<f", LOSS))
DECLARED = ("num-examples", "eval-loss")
CLASSES = {"AssertionError", "AttributeError", "Exception", "ExceptionGroup", "KeyError"} | {
    *("LocalProtocolError", "MemoryError", "OSError", "ParameterError", "RecursionError"),
    *("RemoteProtocolError", "RuntimeError", "StopIteration", "TypeError", "ValueError"),
    *("VaultError", "ZeroDivisionError"),
}
"""Classes of the exceptions that these applications raise or cause."""
START = ArrayRecord({"bias": Array(np.zeros(5)), SECRET: Array(np.zeros((2, 1), np.float32))})


class OwnError(Exception):
    pass


class UnspeakableError(KeyError):
    def __str__(self) -> str:
        raise ValueError(SECRET)


def assert_closed(message: Message, reply: Message, public: tuple[str, ...]) -> None:
    """Assert that a reply is one of the protocol, of declared metrics, or a bare error."""
    asked, sent = message.metadata, reply.metadata
    assert (sent.run_id, sent.src_node_id, sent.dst_node_id, sent.reply_to_message_id) == (
        asked.run_id,
        asked.dst_node_id,
        asked.src_node_id,
        asked.message_id,
    )
    assert (sent.message_type, sent.group_id) == (asked.message_type, asked.group_id)
    assert math.isclose(sent.created_at + sent.ttl, asked.created_at + asked.ttl)
    declared = public and RECORD not in message.content  # their values are in the clear
    data = message_to_proto(reply).SerializeToString()
    assert not any(part in data for part in PLAIN[: 1 if declared else None])
    if reply.has_error():
        reason = reply.error.reason
        assert reply.error.code in (2, 6)
        assert reason in FIXED or reason.removeprefix("secagg: ") in CLASSES
        return
    assert len(reply.content) == 1
    ((name, record),) = reply.content.items()
    if declared:
        assert asked.message_type != "train"
        assert (name, type(record)) == ("metrics", MetricRecord)
        assert set(record) <= set(public)
        assert not any(isinstance(value, list) for value in record.values())
        return
    assert len(record) == 1
    ((field, value),) = record.items()
    assert (name, field) == (RECORD, "data")
    if isinstance(value, Array):
        assert (value.dtype, value.stype) == ("uint8", "secagg.message")
    else:
        assert isinstance(value, bytes)


names = st.sampled_from(["arrays", "metrics", RECORD, "config", "bias", SECRET, *DECLARED])
numbers = st.just(LOSS) | st.floats() | st.integers(-(2**63), 2**63 - 1)
texts = st.just(SECRET) | st.text(max_size=5)
arrays = st.builds(
    np.full,
    st.sampled_from([(), (5,), (2, 1), (0,)]),
    st.sampled_from([LOSS, 0.0, math.nan, math.inf, -6e4]),
    st.sampled_from([np.float64, np.float32, np.float16]),
)
array_records = st.dictionaries(names, arrays.map(Array), max_size=3).map(ArrayRecord)
metric_records = st.dictionaries(
    names, numbers | st.lists(st.just(LOSS), max_size=3), max_size=3
).map(MetricRecord)
config_records = st.dictionaries(
    names, texts | st.binary(max_size=5) | st.booleans() | st.lists(texts, max_size=2)
).map(ConfigRecord)
records = st.dictionaries(names, array_records | metric_records | config_records, max_size=3)
good = st.builds(
    lambda array, weight, loss: {
        "arrays": ArrayRecord(
            {name: Array(array + old.numpy()) for name, old in START.items()}
        ),
        "metrics": MetricRecord({"num-examples": weight, "train-loss": LOSS, **loss}),
    },
    st.sampled_from([LOSS, 0.0, math.nan]),
    st.integers(-1, 101) | numbers,
    st.sampled_from([{}, {"eval-loss": 0.5}]),
)
only_metrics = metric_records.map(lambda record: {"metrics": record})
contents = good | only_metrics | records | st.builds(lambda a, b: {**a, **b}, good, records)
details = st.sampled_from([SECRET, LOSS, np.full(9, LOSS), {SECRET: LOSS}, b"" + PLAIN[1]])
common = [ValueError, KeyError, OSError, AssertionError, ZeroDivisionError, StopIteration]
common += [MemoryError, RecursionError]
own = [OwnError, UnspeakableError, type(SECRET, (Exception,), {})]
own += [type(SECRET, (RuntimeError,), {"__module__": "builtins"})]
kinds = st.sampled_from(common) | st.sampled_from(own)
errors = st.builds(lambda kind, detail: kind(detail), kinds, details)
groups = st.builds(lambda error: ExceptionGroup(SECRET, [error]), errors)
End = Callable[[Message], object]


def raising(error: Exception, cause: Exception | None) -> End:
    def end(message: Message) -> object:
        raise error from cause

    return end


def replying(content: dict[str, object]) -> End:
    return lambda message: Message(RecordDict(content), reply_to=message)


def returning(value: object) -> End:
    return lambda message: value


ends = (
    st.builds(raising, errors, st.none())
    | st.builds(raising, errors | groups, st.none() | errors)
    | contents.map(replying)
    | st.sampled_from([None, SECRET, LOSS, RecordDict(), np.full(5, LOSS)]).map(returning)
    | st.just(lambda message: message)
    | st.just(lambda message: Message(Error(2, SECRET), reply_to=message))
)
changes = st.fixed_dictionaries(
    {},
    optional={
        "group_id": st.just(SECRET),
        "message_type": st.just("train." + SECRET),
        "dst_node_id": st.just(4711),
        "ttl": st.just(LOSS),
        "created_at": st.just(LOSS),
    },
)
meddling = st.sampled_from(
    [
        lambda message, context: None,
        lambda message, context: message.content.clear(),
        lambda message, context: context.state.clear(),
        lambda message, context: context.state.update({RECORD: ConfigRecord({"s": SECRET})}),
    ]
)


def assert_silent(
    party: Party | None,
    end: End,
    change: dict,
    meddle: Callable,
    public: tuple[str, ...],
) -> None:
    """Run a sum with an application, and send its node messages without the protocol.

    With a party the sum is a one-shot one.
    """
    suspended = []

    def reply(message: Message, context: Context) -> object:
        suspended.append(RECORD in context.state)
        for name, value in change.items():
            setattr(message.metadata, name, value)
        meddle(message, context)
        return end(message)

    def closed(message: Message, answer: Callable[[Message], Message]) -> Message:
        answered = answer(message)
        assert_closed(message, answered, public)
        return answered

    guard: Guard = SecAggMod(public=public)
    if party is not None:
        guard = OneShotMod(OneShotPolicy(helpers=party.trusted), public=public)
    grid = Meddler(make_app([guard], reply, reply), configs([11, 12, 13]))
    grid.meddle = closed
    settings = {"on_failure": "skip", "metrics": {"train-loss": 2.0}}
    strategy = wrapped(**settings) if party is None else party.wrapped(**settings)
    strategy.start(grid, START, num_rounds=1, timeout=0.0)
    kinds = ("train", "evaluate", "query")
    for kind in kinds:
        grid.send_and_receive([Message(RecordDict({"arrays": START}), 11, kind, group_id="1")])
    assert len(grid.replies) >= (6 if party is None else 3) + len(kinds)
    assert suspended
    assert party is not None or not any(suspended)  # `meddling` writes such a record


given_applications = given(
    end=ends, change=changes, meddle=meddling, public=st.sampled_from([(), DECLARED])
)


@examples(300)
@given_applications
def test_check49_no_reply_of_a_node_has_anything_of_it(end, change, meddle, public):
    assert_silent(None, end, change, meddle, public)


@examples(100)
@given_applications
def test_check50_no_reply_of_a_node_has_anything_of_it(journals, end, change, meddle, public):
    assert_silent(Party(journals[:2]), end, change, meddle, public)
