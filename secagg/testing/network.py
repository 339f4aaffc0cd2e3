"""Test of a transport: rounds on a network that loses, delays, repeats and reorders packets.

Clients and server are real. The transport under test turns messages into packets and back. The
simulated network applies a schedule of faults to the packets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from secagg._check import as_bytes, check_integer, check_kind
from secagg.client.client import answer_quietly
from secagg.errors import ParameterError, RemoteProtocolError, TooFewSurvivors
from secagg.protocol import NEXT, Phase
from secagg.server import RoundResult
from secagg.testing.invariants import between, check_result, require
from secagg.testing.rounds import Round, needed

FAULTS = {
    "twice": "arrives, and arrives again",
    "held": "arrives after everything else of its phase",
    "late": "arrives when the server has closed the phase",
    "repeated": "arrives, and again when the server has closed the phase",
    "lost": "never arrives",
}
"""Faults that a packet can have, with their meaning."""


@dataclass(frozen=True)
class Schedule:
    """Faults of the packets in a run. Packets without a fault arrive once, in order.

    Parameters
    ----------
    faults : mapping of int to str
        Name of a fault in ``FAULTS`` for each faulty packet. Packets are numbered from 0 in the
        order sent; numbers beyond the last packet have no effect.

    Raises
    ------
    ParameterError
        A number is negative, or a fault is not in ``FAULTS``.
    """

    faults: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, fault in self.faults.items():
            check_integer("the number of a packet", number, 0, 1 << 62)
            if fault not in FAULTS:
                raise ParameterError(
                    f"packet {number} has the fault {fault!r}; the faults are "
                    f"{', '.join(FAULTS)}"
                )


class Transport(Protocol):
    """Interface of a transport under test, for both ends of every connection.

    `sender` and `receiver` are client ids; None is the server.
    """

    def send(self, sender: int | None, receiver: int | None, data: bytes) -> Iterable[bytes]:
        """Return the packets for a message; called at the sender's end."""

    def deliver(
        self, sender: int | None, receiver: int | None, packet: bytes
    ) -> Iterable[bytes]:
        """Return the messages that this packet completes; called at the receiver's end."""


@dataclass(eq=False)
class _Message:
    ends: tuple[int | None, int | None]
    """Sender and receiver."""
    data: bytes
    due: Phase
    """Phase when the receiver expects the message."""
    pending: set[int] = field(default_factory=set)
    """Numbers of the message's packets that have not arrived."""
    arrived: bool = False

    def __str__(self) -> str:
        return f"the {self.due} message {between(*self.ends)}"


@dataclass(frozen=True)
class _Packet:
    number: int
    data: bytes
    message: _Message


def run_over(transport: Transport, round: Round, schedule: Schedule) -> RoundResult | None:
    """Run a round over a transport, and check for the exact sum or a rightful abort.

    The server closes a phase when no packet is left to deliver, and clients drop out by
    ``round.dropouts``. The transport may deliver only messages that the sender sent to the
    receiver. A message must be delivered if all its packets arrive. The server must accept
    every message that arrives in time, and the sum must be over the inputs
    that arrive in time.

    Parameters
    ----------
    transport : Transport
        New transport, not used in another run.
    round : Round
    schedule : Schedule
        Faults of the packets.

    Returns
    -------
    RoundResult or None
        None if the server aborted because too few messages arrived.

    Raises
    ------
    AssertionError
        A condition above is violated.
    ParameterError
        `send` or `deliver` returned another type than an iterable of bytes.
    """
    return _Run(transport, round, schedule).finish()


class _Run:
    """Round that runs over a transport, with the simulated network."""

    def __init__(self, transport: Transport, round: Round, schedule: Schedule) -> None:
        self.transport, self.round, self.schedule = transport, round, schedule
        self.server = round.server()
        self.clients = {u: round.client(u) for u in round.vectors}
        self.messages: dict[tuple[int | None, int | None], list[_Message]] = {}
        self.packets = 0
        self.queue: deque[_Packet] = deque()
        self.held: list[_Packet] = []
        self.late: list[_Packet] = []
        self.accepted: dict[Phase, set[int]] = {}

    def finish(self) -> RoundResult | None:
        for u in self.round.present(Phase.ADVERTISE_KEYS):
            self._answer(u, b"")
        while self.server.phase in NEXT[self.round.params.security]:
            while self.queue or self.held:
                self._bring(self.queue.popleft() if self.queue else self.held.pop())
            if not self._close():
                return None
        result = self.server.result()
        u3 = sorted(self.accepted[Phase.MASKED_INPUT])
        require(
            list(result.survivors) == u3,
            f"the sum is over {result.survivors}, but the inputs of {u3} arrived",
        )
        check_result(self.round, result)
        return result

    def _close(self) -> bool:
        """Close the server's phase and send the answers; return False if the server aborted."""
        phase = self.server.phase
        arrived = self.accepted.setdefault(phase, set())
        it_takes = needed(self.round.params, phase)
        try:
            answers = self.server.close_round()
        except TooFewSurvivors as error:
            u1 = len(self.accepted[Phase.ADVERTISE_KEYS])
            # on a graph all missing messages may be from the holders of one client
            cut = u1 - min(self.round.params.holders, u1)
            require(
                len(arrived) - cut < it_takes,
                f"{len(arrived)} messages of {phase} arrived, but the round was aborted: "
                f"{error}",
            )
            return False
        require(
            len(arrived) >= it_takes,
            f"{phase} was closed with {len(arrived)} messages, but it needs {it_takes}",
        )
        # their phase is closed now, so these packets are late
        self.queue.extend(self.late)
        self.late.clear()
        for u, data in answers.items():
            self._send(None, u, data, self.server.phase)
        return True

    def _send(self, sender: int | None, receiver: int | None, data: bytes, due: Phase) -> None:
        message = _Message((sender, receiver), data, due)
        self.messages.setdefault(message.ends, []).append(message)
        packets = self.transport.send(sender, receiver, data)
        for packet in _pieces("send", "packets", packets):
            message.pending.add(self.packets)
            self._put(_Packet(self.packets, packet, message))
            self.packets += 1
        require(bool(message.pending), f"the transport made no packet of {message}")

    def _put(self, packet: _Packet) -> None:
        """Queue a packet according to its fault in the schedule."""
        fault = self.schedule.faults.get(packet.number)
        if fault in (None, "twice", "repeated"):
            self.queue.extend([packet] * (2 if fault == "twice" else 1))
        if fault == "held":
            self.held.append(packet)
        if fault in ("late", "repeated"):
            self.late.append(packet)

    def _bring(self, packet: _Packet) -> None:
        message = packet.message
        message.pending.discard(packet.number)
        delivered = self.transport.deliver(*message.ends, packet.data)
        for data in _pieces("deliver", "messages", delivered):
            # equal messages of a pair are interchangeable
            known = [m for m in self.messages[message.ends] if m.data == data]
            require(
                bool(known),
                f"{len(data)} bytes were delivered that were not sent, with packet "
                f"{packet.number} of {message}",
            )
            self._hand_over(known[0])
        require(
            message.arrived or bool(message.pending),
            f"all packets of {message} arrived, but the message did not",
        )

    def _hand_over(self, message: _Message) -> None:
        first, message.arrived = not message.arrived, True
        sender, receiver = message.ends
        if sender is None:
            if receiver is not None and first:  # a client ignores repetitions
                self._answer(receiver, message.data)
            return
        in_time = message.due == self.server.phase
        try:
            self.server.receive(sender, message.data)
        except RemoteProtocolError as error:
            require(not in_time, f"{message} arrived in time but was rejected: {error}")
        else:
            if in_time:
                self.accepted.setdefault(message.due, set()).add(sender)

    def _answer(self, u: int, data: bytes) -> None:
        client, round = self.clients[u], self.round
        due = client.phase
        if u not in round.present(due):
            return
        try:
            out = answer_quietly(client, data, round.vectors[u], round.weight(u))
        except RemoteProtocolError as error:
            why = f"client {u} rejected the server's message: {error}"
            raise AssertionError(why) from error
        self._send(u, None, out, due)


def _pieces(method: str, name: str, returned: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a transport's results; raise `ParameterError` unless they are bytes."""
    # bytes are iterable themselves, into ints
    if isinstance(returned, bytes | bytearray | memoryview | str):
        raise ParameterError(
            f"{method} of the transport must return a list of {name}, not "
            f"{type(returned).__name__}; put a single one in a list"
        )
    check_kind(f"the result of the transport's {method}", returned, Iterable, f"{name}, a list")
    for piece in returned:
        yield as_bytes(piece, f"each of the {name} that {method} of the transport returns")
