"""Records of the protocol in Flower's messages, as docs/flower-messages.md specifies them.

A train message without the record "secagg" is the application's own. The content is bound to
the round: the digest is in the name of the attempt, on which all clients of a sum agree.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from contextlib import suppress
from typing import NamedTuple

import msgspec
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict, UserConfig
from msgspec import Struct

from secagg.errors import ParameterError, RemoteProtocolError
from secagg.protocol import NEXT, Phase
from secagg.protocol.params_bytes import SAME_RELEASE
from secagg.session.wire import REPORT

RECORD = "secagg"
"""Name of the protocol's record in a message and in the Context of a node."""
VERSION = 1
CLIPPED_NODES = "secagg-clipped-nodes"
"""Metric that a node computes itself: 1 if an element was clipped or the weight lowered.

This metric is the last metric of a plan. The mean is the part of the weight of such nodes.
"""
MISSING = "secagg-missing-"
"""Beginning of the name of a metric that a node computes itself, before another metric's name.

The metric is 1 if the other metric was no finite number. The mean is the part of the weight of
such nodes.
"""
PREFIX = b"flower"
"""Beginning of the ``params.session`` of every sum."""
TRAINING: frozenset[str] = frozenset({Phase.MASKED_INPUT, REPORT})
"""Phases whose message has the plan and the strategy's records."""
ERROR = "secagg: "
"""Beginning of the reason of every error that a guarded node replies with."""
RAISED, REFUSED = 2, 6
"""Flower's codes for an exception of the app, and for a mod that refuses a message."""
NO_PROTOCOL = (
    "it answered without the protocol: is SecAggMod() (with OneShot: OneShotMod()) the first "
    "mod of its ClientApp?"
)
"""Note on a node that seems to have no mod of this package."""
_STYPE = "secagg.message"
_METRICS = 256
"""Most metrics of a plan, and most characters of a name."""
_FIELDS = frozenset({"version", "phase", "params", "plan", "data"})


class Plan(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Content of the vectors of a sum, the same for all clients of the sum.

    Attributes
    ----------
    weight : str or None
        Key of the weight in the MetricRecord of a reply. None: the sum is unweighted, and the
        vector has no metrics.
    arrays : str or None
        Name of the ArrayRecord with the global model. The vector begins with the update, the
        difference to that model. None: the vector has metrics only.
    exclude : tuple of str
        Names of arrays that are not in the vector.
    metrics : tuple of (str, float)
        Names of the metrics in the vector, after the arrays, and the largest absolute value of
        each.
    """

    weight: str | None
    arrays: str | None
    exclude: tuple[str, ...]
    metrics: tuple[tuple[str, float], ...]


class Task(NamedTuple):
    """Request of the server to a node.

    Attributes
    ----------
    phase : str
        `Phase` whose message is due, or "report" in one-shot sums.
    params : bytes
        Parameters of the sum, in every task.
    plan : bytes
        Plan of the sum in MessagePack, in "masked_input" and "report", else empty.
    data : bytes
        The server's message of the protocol. In "report" the helpers' endorsements.
    """

    phase: str
    params: bytes
    plan: bytes
    data: bytes


_PLAN = msgspec.msgpack.Decoder(Plan)


def read_plan(data: bytes) -> Plan:
    """Return the plan in MessagePack bytes; raise RemoteProtocolError ("plan") otherwise.

    A plan has each metric once, with a bound by which a node can divide.
    """
    # not chained: the decoder's error may quote the content
    with suppress(msgspec.MsgspecError, ValueError, RecursionError):
        plan = _PLAN.decode(data)
        names = [name for name, _ in plan.metrics]
        measured = {name for name in names if not is_computed(name)}
        if (
            msgspec.msgpack.encode(plan) == data
            # nodes keep the bounds of all metrics that they were ever asked for
            and max(len(measured), *map(len, measured), 0) <= _METRICS
            # a metric with two bounds would be clipped at both
            and len({plan.weight, *names}) == 1 + len(names)
            and (plan.weight is not None or not names)
            and all(sys.float_info.min <= bound < float("inf") for _, bound in plan.metrics)
            and (CLIPPED_NODES not in names or plan.metrics[-1] == (CLIPPED_NODES, 1.0))
            and all(
                bound == 1.0 and name.removeprefix(MISSING) in measured
                for name, bound in plan.metrics
                if name.startswith(MISSING)
            )
        ):
            return plan
    raise violation("message", "plan", "these bytes are not a plan of a sum")


def is_computed(name: str) -> bool:
    """Return True if a node computes a metric itself, whatever its application replies."""
    return name == CLIPPED_NODES or name.startswith(MISSING)


def task_record(task: Task) -> ConfigRecord:
    """Return the record of a task, which `read_task` reads."""
    return ConfigRecord({"version": VERSION, **task._asdict(), "phase": str(task.phase)})


def read_task(content: RecordDict) -> Task | None:
    """Return the task in a message of the server, or None if there is none.

    Raises
    ------
    RemoteProtocolError
        "version" or "record": the record is not the record of a task.
    """
    record = content.get(RECORD)
    if record is None:
        return None
    if not isinstance(record, ConfigRecord):
        raise violation("message", "record", "the record is not a ConfigRecord")
    if record.get("version") != VERSION:
        why = f"the record is not of version {VERSION} of the messages: {SAME_RELEASE}"
        raise violation("message", "version", why)
    phase, *rest = (record.get(field) for field in Task._fields)
    data = [field for field in rest if isinstance(field, bytes)]
    known = phase == REPORT or phase in NEXT["active"]
    if set(record) != _FIELDS or len(data) != len(rest) or not known:
        raise violation("message", "record", "the record has not the fields of a task")
    task = Task(str(phase), *data)
    first = task.phase == Phase.ADVERTISE_KEYS
    if (first and task.data) or bool(task.plan) != (task.phase in TRAINING):
        raise violation("message", "record", "a field is not empty, or is, in its phase")
    return task


def answer_record(data: bytes, *, large: bool) -> ArrayRecord | ConfigRecord:
    """Return the record of a client's message; a `large` one is an Array.

    Flower transfers Arrays in chunks, and any other record at once.
    """
    if not large:
        return ConfigRecord({"data": data})
    return ArrayRecord({"data": Array("uint8", (len(data),), _STYPE, data)})


def read_answer(content: RecordDict, *, large: bool, sender: int, phase: str) -> bytes:
    """Return the client's message in a reply.

    Raises
    ------
    RemoteProtocolError
        "record": the reply has not exactly the record of an answer.
    """
    record = content.get(RECORD)
    if len(content) == 1 and isinstance(record, ArrayRecord if large else ConfigRecord):
        value = record.get("data")
        if isinstance(value, Array) and value.stype == _STYPE:
            value = value.data
        if len(record) == 1 and isinstance(value, bytes):
            return value
    raise violation(phase, "record", NO_PROTOCOL, sender)


def run_name(run_id: int) -> bytes:
    """Return the 8 bytes of a run in the names of its attempts."""
    return struct.pack("<Q", run_id % (1 << 64))


def content_digest(message: Message, plan: bytes, config: UserConfig) -> bytes:
    """Return the 32 bytes by which all clients of a sum agree on what decides their vectors.

    The bytes are the SHA-256 of the plan, of the run's configuration, and of all that an
    application reads in the message: type, group, and records except the protocol's record.
    """
    metadata = message.metadata
    parts = [(b"", plan), (b"", metadata.message_type.encode())]
    parts += [(b"", metadata.group_id.encode()), (b"", struct.pack("<Q", len(config)))]
    for name, setting in sorted(config.items()):
        parts += [(b"", name.encode()), _scalar(setting)]
    for name, record in sorted(message.content.items()):
        if name == RECORD:
            continue
        parts.append((type(record).__name__.encode(), name.encode()))
        parts.append((b"", struct.pack("<Q", len(record))))
        for key, value in record.items():  # in order, which an application may rely on
            parts.append((b"", key.encode()))
            if isinstance(value, Array):
                shape = struct.pack(f"<{len(value.shape)}Q", *value.shape)
                array = value.dtype.encode(), shape, value.stype.encode(), value.data
                parts += [(b"array", part) for part in array]
                continue
            values = value if isinstance(value, list) else [value]
            kind = b"list" if isinstance(value, list) else b""
            parts.append((kind, struct.pack("<Q", len(values))))
            parts += map(_scalar, values)
    digest = hashlib.sha256(b"secagg/2 flower message")
    for kind, part in parts:
        # after kind and length, so that no two contents give the same bytes
        digest.update(struct.pack("<BQ", len(kind), len(part)) + kind)
        digest.update(part)
    return digest.digest()


def _scalar(value: bool | int | float | str | bytes) -> tuple[bytes, bytes]:
    """Return kind and bytes of a value of a ConfigRecord or MetricRecord."""
    match value:
        case bool():
            return b"bool", bytes([value])
        case int():
            return b"int", str(int(value)).encode()
        case float():
            return b"float", struct.pack("<d", value)
        case str():
            return b"str", value.encode()
        case bytes():
            return b"bytes", value
    raise ParameterError(
        f"a record or the run's configuration has a value of type {type(value).__name__}; "
        "leave it out"
    )


def violation(
    phase: str, check: str, why: str, sender: int | None = None
) -> RemoteProtocolError:
    """Return the error for a message of the server, or of a node, that fails a check."""
    return RemoteProtocolError(why, sender=sender, phase=phase, check=check)
