"""Systems with a key: clients encrypt, an aggregator adds, a key holder decrypts.

Work beyond the budget is done on a sample, of fewer elements or additions, and marked so.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from secagg.bench.cases import Case, Figure, Load, Row, System, sample
from secagg.bench.roles import Role
from secagg.errors import SecAggError

F64 = NDArray[np.float64]
T = TypeVar("T")

DISTINCT = 5
"""Vectors that are encrypted; the aggregator is sent them again until it has n."""


@dataclass(frozen=True)
class Opened:
    """A sum in the clear, and the bytes that were sent for the aggregator to have it."""

    sum: F64
    sent: int

    @classmethod
    def clear(cls, total: F64) -> Self:
        """Return a sum that is sent as it is, eight bytes an element."""
        return cls(total, total.nbytes)


class Sender(Protocol):
    """A client."""

    def encrypt(self, vector: F64) -> bytes:
        """Return its one message."""
        ...


class Aggregator(Protocol):
    """The party that adds messages it cannot read."""

    def add(self, message: bytes, length: int) -> None:
        """Add a client's message, of a vector of so many elements, to the total."""
        ...

    def total(self) -> bytes:
        """Return the total, and start again."""
        ...


class Holder(Protocol):
    """The key holder."""

    def decrypt(self, total: bytes, length: int) -> Opened:
        """Return the sum, of so many elements."""
        ...


@dataclass(frozen=True)
class Keyed:
    """A system and the factories of its parties, which can be pickled.

    Attributes
    ----------
    slots, reserved : int
        Elements of a ciphertext, of which samples are made, and the slots of a vector that
        are not for its elements.
    pilot : int
        Ciphertexts on which the pace is found.
    tables : bool
        A client's first vector takes longer, because tables are made for the key.
    shared : bool
        Every client holds the key and decrypts the sum itself.
    trustees : int
        How many parties make up the holder, each of which is sent the total.
    tolerance : float
        The largest error of an element of the sum, for each vector that is in it.
    """

    system: System
    setting: str
    sender: Callable[[], Sender]
    aggregator: Callable[[], Aggregator]
    holder: Callable[[], Holder]
    slots: int
    reserved: int = 0
    pilot: int = 1
    tables: bool = False
    shared: bool = False
    trustees: int = 1
    tolerance: float = 0.0

    def ciphertexts(self, length: int) -> int:
        """Return how many ciphertexts a vector of so many elements takes."""
        return -(-(length + self.reserved) // self.slots)


def measure(keyed: Keyed, case: Case, budget: float) -> Row:
    """Measure the three parties, each for about so many seconds at most.

    Raises
    ------
    SecAggError
        A party failed, or the sum is wrong.
    """
    n, whole = case.clients, keyed.ciphertexts(case.length)
    distinct, pilot = min(n, DISTINCT), min(whole, keyed.pilot)
    with ExitStack() as stack:
        parties = _Parties(keyed, case, stack)
        trial = parties.encrypt(pilot, 2)  # the first of them warms up
        total = parties.add(trial.messages, pilot, 2, budget)
        pace = parties.decrypt(total, pilot, 2).seconds
    count = sample(whole, pilot, trial.later * distinct, budget)
    few = sample(count, pilot, pace, budget)

    with ExitStack() as stack:
        parties = _Parties(keyed, case, stack)
        sent = parties.encrypt(count, distinct)
        added = parties.add(sent.messages, count, n, budget)
        client = Load(Figure(sent.later, count, whole), parties.memory(parties.sender, count))
        server = Load(
            Figure(added.seconds, added.vectors * count, n * whole),
            parties.memory(parties.aggregator, count),
        )
        if few < count:
            short = parties.encrypt(few, distinct).messages
            added = parties.add(short, few, distinct, budget)
        opened = parties.decrypt(added, few, distinct)
        holder = Load(Figure(opened.seconds, few, whole), parties.memory(parties.holder, few))
        setup = parties.sender.setup_seconds + max(0.0, sent.first - sent.later)
    received = Figure(keyed.trustees * len(added.total), few, whole)
    return Row(
        system=keyed.system,
        case=case,
        setting=keyed.setting,
        clients_run=distinct,
        client=client + holder if keyed.shared else client,
        server=server,
        holder=None if keyed.shared else holder,
        bytes_up=Figure(len(sent.messages[0]), count, whole),
        bytes_down=received if keyed.shared else Figure(0),
        holder_bytes_in=None if keyed.shared else received,
        holder_bytes_out=None if keyed.shared else Figure(opened.sent, few, whole),
        setup_seconds=setup if keyed.tables else 0.0,
        error=opened.error,
    )


@dataclass(frozen=True)
class _Sent:
    """Messages of clients, and the seconds of the first vector and of later ones."""

    messages: list[bytes]
    first: float
    later: float


@dataclass(frozen=True)
class _Added:
    """A total of so many vectors, and its seconds."""

    total: bytes
    vectors: int
    seconds: float


@dataclass(frozen=True)
class _Opened:
    """Seconds and bytes of opening a total, and the largest error of an element."""

    seconds: float
    sent: int
    error: float


class _Parties:
    """The three parties, whose processes end with the stack."""

    def __init__(self, keyed: Keyed, case: Case, stack: ExitStack) -> None:
        self._keyed, self._case = keyed, case
        self.sender = stack.enter_context(Role("client", keyed.sender))
        self.aggregator = stack.enter_context(Role("aggregator", keyed.aggregator))
        self.holder = stack.enter_context(Role("key holder", keyed.holder))

    def encrypt(self, ciphertexts: int, clients: int) -> _Sent:
        """Let one client after the other encrypt its vector, under the same key."""
        length = self._length(ciphertexts)
        took = [self.sender.do(_encrypt, self._case.vector(u, length)) for u in range(clients)]
        first, *later = (one.seconds for one in took)
        return _Sent([one.result for one in took], first, statistics.median(later))

    def add(
        self, messages: list[bytes], ciphertexts: int, clients: int, budget: float
    ) -> _Added:
        """Add the messages in turn until there are as many as clients, or time is up."""
        length, vectors, seconds = self._length(ciphertexts), 0, 0.0
        while vectors < clients and (vectors < len(messages) or seconds < budget):
            message = messages[vectors % len(messages)]
            seconds += self.aggregator.do(_add, message, length).seconds
            vectors += 1
        total = self.aggregator.do(_total)
        # the total is written once, however many are added
        return _Added(total.result, vectors, seconds + total.seconds * vectors / clients)

    def decrypt(self, added: _Added, ciphertexts: int, distinct: int) -> _Opened:
        """Open the sum of so many different vectors, and check it."""
        length = self._length(ciphertexts)
        took = self.holder.do(_decrypt, added.total, length)
        expected = np.zeros(length)
        for u in range(min(distinct, added.vectors)):
            times = len(range(u, added.vectors, distinct))
            expected += times * self._case.vector(u, length)
        error = float(np.abs(took.result.sum - expected).max())
        if not error <= self._keyed.tolerance * added.vectors:
            raise SecAggError(
                f"{self._keyed.system.label}: the sum is wrong by {error:g}: please report "
                "this, with the command"
            )
        return _Opened(took.seconds, took.result.sent, error)

    def memory(self, role: Role[T], ciphertexts: int) -> int | None:
        """Return a party's memory, unless it has done only a sample."""
        return role.memory() if self._length(ciphertexts) == self._case.length else None

    def _length(self, ciphertexts: int) -> int:
        """Return the elements of so many ciphertexts."""
        most = ciphertexts * self._keyed.slots - self._keyed.reserved
        return min(self._case.length, most)


# functions sent to a process are pickled by name, so methods of a protocol need these


def _encrypt(sender: Sender, vector: F64) -> bytes:
    return sender.encrypt(vector)


def _add(aggregator: Aggregator, message: bytes, length: int) -> None:
    aggregator.add(message, length)


def _total(aggregator: Aggregator) -> bytes:
    return aggregator.total()


def _decrypt(holder: Holder, total: bytes, length: int) -> Opened:
    return holder.decrypt(total, length)
