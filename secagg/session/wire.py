"""Frames between a session and the members: tasks, answers, and the names of attempts.

A frame is the byte 1 (the version) and a MessagePack array: an integer tag, then the fields.
docs/sessions.md specifies the frames. The messages of the protocol are inside, unchanged.
"""

from __future__ import annotations

import hashlib
import struct
from contextlib import suppress
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.msgpack import Decoder

from secagg._check import as_bytes
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.oneshot import OneShotParams
from secagg.protocol import NEXT, Phase, RoundParams
from secagg.protocol.identities import SIGNATURE_BYTES
from secagg.protocol.messages import (
    AdvertiseKeys,
    ConsistencySignature,
    MaskedInput,
    ShareKeys,
    UnmaskShares,
    max_bytes,
)
from secagg.protocol.params_bytes import SAME_RELEASE

VERSION = 1
REPORT = "report"
"""Step of a one-shot sum; the steps of a round are the phases."""
FRAME = 64
"""More than version, tag, task id and length prefix of an answer take."""
_SESSION_BYTES = 64
_TAIL = struct.Struct("<8sIH8s32s")
_ANSWERS: dict[Phase, type[Struct]] = {
    Phase.ADVERTISE_KEYS: AdvertiseKeys,
    Phase.SHARE_KEYS: ShareKeys,
    Phase.MASKED_INPUT: MaskedInput,
    Phase.CONSISTENCY_CHECK: ConsistencySignature,
    Phase.UNMASKING: UnmaskShares,
}

TaskId = Annotated[bytes, Meta(min_length=16, max_length=16)]
F = TypeVar("F", bound=Struct)


class Task(Struct, frozen=True, array_like=True, tag=1, forbid_unknown_fields=True):
    """Request of the server to one member.

    Attributes
    ----------
    id : bytes
        `task_id` of the round, attempt and step.
    number, attempt : int
        Number of the round in the session, and of the attempt at the round, from 0.
    step : str
        Phase of the due message, or "report" in one-shot sums.
    params : bytes
        Parameters, in the first task of an attempt and in "report"; empty in all others.
    message : bytes
        Message of the application, in "masked_input" and "report"; empty in all others.
    data : bytes
        The server's message of the protocol. In "report" the helpers' endorsements.
    """

    id: TaskId
    number: Annotated[int, Meta(ge=0, lt=1 << 32)]
    attempt: Annotated[int, Meta(ge=0, lt=1 << 16)]
    step: Annotated[str, Meta(max_length=32)]
    params: bytes
    message: bytes
    data: bytes


class Answer(Struct, frozen=True, array_like=True, tag=2, forbid_unknown_fields=True):
    """Answer of a member to a task: a message of the protocol, or a report."""

    task: TaskId
    data: bytes


class Declined(Struct, frozen=True, array_like=True, tag=3, forbid_unknown_fields=True):
    """Answer of a member that takes no part. A reason could be private."""

    task: TaskId


_TASK = Decoder(Task)
_ANSWER: Decoder[Answer | Declined] = Decoder(Answer | Declined)


class AttemptName(NamedTuple):
    """Name of an attempt at a round: the end of its ``params.session``.

    Attributes
    ----------
    run : bytes
        8 random bytes of the session, the same after a restart from the folder.
    number, attempt : int
    fresh : bytes
        8 random bytes of the attempt.
    message : bytes
        `message_digest` of the application's message.
    """

    run: bytes
    number: int
    attempt: int
    fresh: bytes
    message: bytes


def message_digest(message: bytes) -> bytes:
    """Return the 32 bytes that tell the clients of an attempt whether their messages agree."""
    return hashlib.sha256(b"secagg/1 session message" + message).digest()


def bind(session: bytes, message: bytes) -> bytes:
    """Return a session name for the reports to a single sum of clients that agree on a message.

    Without this agreement a lying server could send a model without a gradient to all clients
    but one, and the sum would be that client's vector (Pasquini et al. 2022).

    Parameters
    ----------
    session : bytes
        Name of the sum, different for every sum, ≥ 1 byte. More than 32 bytes are hashed.
    message : bytes
        The application's message, as for `Session.one_shot`; b"" for none.

    Returns
    -------
    bytes
        Value of ``OneShotParams(session=...)``, at most 64 bytes.

    Raises
    ------
    ParameterError
        The name is empty.
    """
    name, digest = as_bytes(session, "session"), message_digest(as_bytes(message))
    if not name:
        raise ParameterError("session is empty; pass a name that no other sum has")
    if len(name) > _SESSION_BYTES - len(digest):
        name = hashlib.sha256(name).digest()
    return name + digest


def is_bound(params: OneShotParams, message: bytes) -> bool:
    """Return whether parameters name the message, so that all clients have the same message."""
    return params.session.endswith(message_digest(message))


def endorsements_of(task_data: bytes) -> list[bytes]:
    """Return the helpers' endorsements in the `data` of a task, in the order of the helpers."""
    size = SIGNATURE_BYTES
    return [task_data[at : at + size] for at in range(0, len(task_data), size)]


def check_bound(params: OneShotParams, message: bytes) -> None:
    """Raise `ParameterError` unless `is_bound`."""
    if not is_bound(params, message):
        raise ParameterError(
            f"the session {params.session!r} does not name this message of {len(message)} "
            "bytes, so a server could send each client another message; pass "
            "OneShotParams(session=secagg.session.bind(name, message))"
        )


def task_id(params_digest: bytes, number: int, attempt: int, step: str) -> bytes:
    """Return the id of a task, 16 bytes, which both sides compute."""
    place = struct.pack("<IH", number, attempt)
    label = b"secagg/1 session task"
    return hashlib.sha256(label + params_digest + place + step.encode()).digest()[:16]


def write_name(prefix: bytes, name: AttemptName) -> bytes:
    """Return the ``params.session`` of an attempt: the prefix and the name.

    A prefix of up to 10 bytes is unchanged. A longer prefix is replaced by 10 bytes of the
    SHA-256 of the prefix.
    """
    most = _SESSION_BYTES - _TAIL.size
    if len(prefix) > most:
        prefix = hashlib.sha256(prefix).digest()[:most]
    return prefix + _TAIL.pack(*name)


def read_name(session: bytes) -> AttemptName | None:
    """Return the name of an attempt from the ``params.session``, or None without a name."""
    if len(session) < _TAIL.size:
        return None
    return AttemptName(*_TAIL.unpack(session[-_TAIL.size :]))


def encode(frame: Struct) -> bytes:
    """Return a frame as bytes."""
    return bytes([VERSION]) + msgspec.msgpack.encode(frame)


def read_task(data: bytes) -> Task:
    """Return the task that `encode` wrote.

    Raises
    ------
    RemoteProtocolError
        "version" or "encoding": the data are not a task.
    """
    return _read(data, _TASK, None, "task")


def read_answer(data: bytes, limit: int, sender: int, phase: str) -> Answer | Declined:
    """Return a member's answer of at most `limit` bytes.

    Raises
    ------
    RemoteProtocolError
        "size", "version" or "encoding": the data are not an answer.
    """
    if len(data) > limit:
        why = f"{len(data)} bytes; an answer has at most {limit} here"
        raise RemoteProtocolError(why, sender=sender, phase=phase, check="size")
    return _read(data, _ANSWER, sender, phase)


def answer_limit(params: RoundParams) -> int:
    """Return an upper bound on the bytes of an answer in a round."""
    return FRAME + max(max_bytes(_ANSWERS[phase], params) for phase in NEXT[params.security])


def _read(data: bytes, decoder: Decoder[F], sender: int | None, phase: str) -> F:
    if not data or data[0] != VERSION:
        first = data[0] if data else "none"
        why = (
            f"first byte {first}; this side reads version {VERSION} of the session's frames: "
            f"{SAME_RELEASE}"
        )
        raise RemoteProtocolError(why, sender=sender, phase=phase, check="version")
    # not chained: the decoder's error may quote the content
    with suppress(msgspec.MsgspecError, ValueError, RecursionError):
        frame = decoder.decode(memoryview(data)[1:])
        if encode(frame) == data:  # the same frame in other bytes would count as another one
            return frame
    why = "these bytes are not the frame that is due here"
    raise RemoteProtocolError(why, sender=sender, phase=phase, check="encoding")
