"""Fuzz target of one-shot sums: parameters, and every message at the party that decodes it.

The first byte selects a session of the golden vectors and a decoder. The rest is its input, or
the body of a message that begins as it should. What is accepted keeps the sum exact.
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from oneshot_vectors import Session
from secagg import RemoteProtocolError
from secagg.oneshot import Accumulator, OneShotParams, messages
from secagg.oneshot.messages import Kind
from vectors_reader import b, load

SESSIONS = ("example", "two-of-two", "three-of-five")
PHASES = {"parameters", "report", "check", "reserve", "open", "accumulator", "unmasking"}
KINDS = {
    "add": Kind.REPORT,
    "check": Kind.BOXES,
    "reserve": Kind.REQUEST,
    "open": Kind.REQUEST,
    "reservation": Kind.RESERVATION,
    "answer": Kind.ANSWER,
    "stored": Kind.ACCUMULATOR,
}
NAMES = ("parameters", *KINDS)
_open = ExitStack()  # journals, and the folder that they are in
atexit.register(_open.close)


class World:
    """Helpers that checked and reserved the list of a session, and its aggregator."""

    def __init__(self, name: str) -> None:
        folder = _open.enter_context(tempfile.TemporaryDirectory())
        self.session = Session(name, Path(folder))
        for journal in self.session.journals:
            _open.enter_context(journal)
        self.session.check_boxes()
        self.params, self.list = self.session.params, self.session.list
        self.honest = [b(data) for data in self.list["answers"]]
        self.aggregator = self.session.accumulator()
        self.aggregator.request()
        for helper in self.session.helpers:
            helper.open(b(self.list["signed_request"]))

    def add(self, data: bytes) -> None:
        made = self.session.accumulator(0)
        empty = made.to_bytes()
        made.add(data)
        made.drop(made.ids)
        assert made.to_bytes() == empty

    def check(self, data: bytes) -> None:
        for helper in self.session.helpers:
            rejected = helper.check(data)
            assert all(0 <= u < 1 << 64 for u in rejected)

    def reserve(self, data: bytes) -> None:
        (helper, *_) = self.session.helpers
        assert helper.reserve(data) == b(self.list["reservations"][0])

    def open(self, data: bytes) -> None:
        (helper, *_) = self.session.helpers
        assert helper.open(data) == self.honest[0]

    def reservation(self, data: bytes) -> None:
        if self.params.quorum < 2:
            assert self.aggregator.request([data]) == b(self.list["request"])
            return
        others = [b(item) for item in self.list["reservations"]]
        known = self.aggregator.request(others)
        assert self.aggregator.request([*others, data]) == known

    def answer(self, data: bytes) -> None:
        j = int.from_bytes(data[34:36], "little")
        others = [a for i, a in enumerate(self.honest, 1) if i != j]
        if len(others) < self.params.threshold - 1:
            return
        result = self.aggregator.result([*others, data])
        if self.params.threshold < len(self.params.helpers):  # each mask has two holders
            weight = [] if result.weight is None else [result.weight]
            expected = [int(x) for x in self.list["integers"]]
            assert [*result.integers.tolist(), *weight] == expected

    def stored(self, data: bytes) -> None:
        made = Accumulator.from_bytes(data, self.params, registry=self.session.registry)
        assert made.to_bytes() == data

    def parameters(self, data: bytes) -> None:
        made = OneShotParams.from_bytes(data)
        assert made.to_bytes() == data
        assert made.layout.report > made.layout.packed

    def decoders(self) -> list[Callable[[bytes], None]]:
        """Return the decoders of whole messages, then of their bodies."""
        whole = [getattr(self, name) for name in NAMES]
        starts = [messages.start(kind, self.params) for kind in KINDS.values()]
        pairs = zip(starts, whole[1:], strict=True)
        begun = [lambda rest, s=start, decode=d: decode(s + rest) for start, d in pairs]
        return [*whole, *begun]


@cache
def _decoders() -> list[Callable[[bytes], None]]:
    return [decode for name in SESSIONS for decode in World(name).decoders()]


def oneshot_targets(data: bytes) -> None:
    """The first byte says which session and decoder; the rest is what it reads."""
    if not data:
        return
    decoders = _decoders()
    try:
        decoders[data[0] % len(decoders)](data[1:])
    except RemoteProtocolError as error:
        assert error.phase in PHASES
        assert len(str(error)) < 400


def first_byte(session: str, decoder: str, *, begun: bool = False) -> bytes:
    """Return the byte that selects a decoder in a session; `begun`: with the start in front."""
    of_one = 2 * len(NAMES) - 1
    at = NAMES.index(decoder) + (len(NAMES) - 1 if begun else 0)
    return bytes([of_one * SESSIONS.index(session) + at])


@cache
def oneshot_seeds() -> list[bytes]:
    """Every message of the sessions, whole and without its start."""
    out = []
    for session in load("oneshot")["sessions"]:
        if session["name"] not in SESSIONS:
            continue
        made = session["list"]
        sent = {
            "add": session["clients"][0]["report"],
            "check": made["boxes"][0],
            "reserve": made["request"],
            "open": made["signed_request"],
            "reservation": made["reservations"][0],
            "answer": made["answers"][0],
            "stored": made["stored"],
        }
        out.append(first_byte(session["name"], "parameters") + b(session["bytes"]))
        for name, text in sent.items():
            out.append(first_byte(session["name"], name) + b(text))
            out.append(first_byte(session["name"], name, begun=True) + b(text)[34:])
    return out
