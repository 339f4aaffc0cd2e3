"""Frames of a session: canonical, versioned, and rejected with a named check otherwise."""

from __future__ import annotations

import asyncio
import hashlib
import struct
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from oneshot_parties import rejects
from secagg import FixedPoint, ParameterError, RemoteProtocolError, RoundParams
from secagg.protocol import NEXT
from secagg.protocol.messages import max_bytes
from secagg.session import bind, take_part
from secagg.session.wire import (
    _ANSWERS,
    FRAME,
    Answer,
    AttemptName,
    Declined,
    Task,
    answer_limit,
    encode,
    message_digest,
    read_answer,
    read_name,
    read_task,
    task_id,
    write_name,
)

PARAMS = RoundParams(n_clients=5, threshold=3, length=4, encoding=FixedPoint(clip=8.0))
NAME = AttemptName(b"the run!", 7, 2, b"8 random", message_digest(b"message"))
TASK = Task(bytes(range(16)), 7, 2, "advertise_keys", PARAMS.to_bytes(), b"message", b"data")
FRAMES = [encode(TASK), encode(Answer(bytes(16), b"data")), encode(Declined(bytes(16)))]
CHECKS = {"version", "encoding", "size"}


LONGER = FRAMES[1][:1] + b"\xdc\x00\x03" + FRAMES[1][2:]  # array 16 for a fixarray
WRONG = [
    ("size", FRAMES[1] + b"data"),
    ("version", b""),
    ("version", b"\x02" + FRAMES[1][1:]),
    ("encoding", FRAMES[1] + b"\0"),
    ("encoding", LONGER),
    ("encoding", encode(Declined(bytes(15)))),
]


@pytest.mark.parametrize(("check", "data"), WRONG)
def test_wrong_frames_are_named(check, data):
    error = rejects(check, lambda: read_answer(data, len(FRAMES[1]) + 2, 3, "masked_input"))
    assert error.sender == 3


def test_long_prefixes_of_a_session_are_hashed():
    assert read_name(b"short") is None
    for size in (0, 10, 11, 64):
        session = write_name(b"x" * size, NAME)
        assert len(session) <= 64
        assert session.startswith(b"x" * 10) == (size == 10)
        assert read_name(session) == NAME


def test_name_of_a_one_shot_sum_ends_in_the_digest_of_its_message():
    """As docs/sessions.md, 3, states it."""
    digest = hashlib.sha256(b"secagg/1 session messagemodel").digest()
    assert bind(b"x" * 32, b"model") == b"x" * 32 + digest
    assert bind(b"x" * 33, b"model") == hashlib.sha256(b"x" * 33).digest() + digest
    assert bind(b"x", bytearray()) == b"x" + message_digest(b"")
    for name, message in ((b"", b"model"), ("x", b"model"), (b"x", "model")):
        with pytest.raises(ParameterError):
            bind(name, message)


def test_layout_of_the_frames():
    """As docs/sessions.md, 2 and 3, state it."""
    packed = PARAMS.to_bytes()
    expected = b"\x01\x98\x01\xc4\x10" + bytes(range(16)) + b"\x07\x02\xaeadvertise_keys"
    expected += b"\xc4" + bytes([len(packed)]) + packed + b"\xc4\x07message\xc4\x04data"
    assert expected == FRAMES[0]
    assert FRAMES[1] == b"\x01\x93\x02\xc4\x10" + bytes(16) + b"\xc4\x04data"
    assert FRAMES[2] == b"\x01\x92\x03\xc4\x10" + bytes(16)
    place = struct.pack("<IH", 7, 2) + b"unmasking"
    digest = hashlib.sha256(b"secagg/1 session task" + PARAMS.digest + place).digest()
    assert task_id(PARAMS.digest, 7, 2, "unmasking") == digest[:16]
    name = b"the run!" + struct.pack("<IH", 7, 2) + b"8 random"
    name += hashlib.sha256(b"secagg/1 session messagemessage").digest()
    assert write_name(b"app", NAME) == b"app" + name
    assert write_name(b"x" * 11, NAME) == hashlib.sha256(b"x" * 11).digest()[:10] + name


@pytest.mark.parametrize("suite", ["hybrid", "x25519"])
def test_answers_of_the_largest_messages_are_within_the_limit(suite):
    chosen = replace(PARAMS, suite=suite)
    for params in (chosen, replace(chosen, threshold=4, security="active", session=b"s")):
        largest = max(max_bytes(_ANSWERS[phase], params) for phase in NEXT[params.security])
        answer = encode(Answer(bytes(16), bytes(largest)))
        assert len(answer) <= answer_limit(params) == largest + FRAME


@st.composite
def altered(draw: st.DrawFn) -> bytes:
    frame = bytearray(draw(st.sampled_from(FRAMES) | st.binary(max_size=40)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(frame)))
        frame[at : at + draw(st.integers(0, 9))] = draw(st.binary(max_size=9))
    return bytes(frame)


@given(altered())
@examples(500)
def test_any_bytes_are_a_frame_in_its_own_bytes_or_rejected(data):
    for read in (read_task, lambda data: read_answer(data, 300, 3, "masked_input")):
        try:
            assert encode(read(data)) == data
        except RemoteProtocolError as error:
            assert error.check in CHECKS
            assert len(str(error)) < 200


class Once:
    """Link with one task."""

    def __init__(self, data: bytes) -> None:
        self.data, self.sent = data, list[bytes]()

    async def next_task(self, after: bytes) -> bytes | None:
        return None if after else self.data

    async def send(self, answer: bytes) -> None:
        self.sent.append(answer)


@given(altered(), st.sampled_from(["", "advertise_keys", "masked_input", "report", "x"]))
@examples(200)
def test_any_task_is_declined_or_an_error_for_the_application(data, step):
    if step:
        data = encode(Task(bytes(16), 0, 0, step, data, data, data))
    link = Once(data)
    with suppress(ParameterError, RemoteProtocolError):
        assert asyncio.run(take_part(link, 0, lambda m, p: np.zeros(4))) == 0
    for answer in link.sent:
        assert isinstance(read_answer(answer, len(answer), 0, ""), Declined)
