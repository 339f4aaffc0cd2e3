"""Systems with a key: clients encrypt, an aggregator adds, a key holder decrypts.

What takes longer than the budget is done on a sample, fewer elements or fewer additions, and
its figures know it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from secagg.compare.roles import Role
from secagg.compare.rows import Case, Figure, Load, Row, System, sample_length
from secagg.errors import SecAggError

__all__ = ["Aggregator", "Holder", "Keyed", "Sender", "measure"]

F64 = NDArray[np.float64]
T = TypeVar("T")

DISTINCT = 8
"""Vectors that are encrypted; the aggregator is sent them again until it has n."""
FLOAT_BYTES = 8
"""What the key holder returns of each element, as it has the sum in the clear."""


class Sender(Protocol):
    """A client."""

    def encrypt(self, vector: F64) -> bytes:
        """Return its one message."""
        ...


class Aggregator(Protocol):
    """Adds what it cannot read."""

    def add(self, message: bytes, length: int) -> None:
        """Add a client's message, of a vector of so many elements, to the total."""
        ...

    def total(self) -> bytes:
        """Return the total, and start again."""
        ...


class Holder(Protocol):
    """Has the key."""

    def decrypt(self, total: bytes, length: int) -> F64:
        """Return the sum, of so many elements."""
        ...


@dataclass(frozen=True)
class Keyed:
    """A system and how its parties are made; what makes them can be pickled.

    Attributes
    ----------
    sender, aggregator, holder : callable
    unit : int
        Elements that are encrypted together; samples are multiples of it.
    shared : bool
        Every client holds the key and decrypts the sum itself.
    tolerance : float
        The largest error of an element of the sum, for each vector that is in it.
    """

    system: System
    setting: str
    sender: Callable[[], Sender]
    aggregator: Callable[[], Aggregator]
    holder: Callable[[], Holder]
    unit: int
    shared: bool = False
    tolerance: float = 0.0


def measure(keyed: Keyed, case: Case, budget: float) -> Row:
    """Measure the three parties, each for about so many seconds at most.

    Raises
    ------
    SecAggError
        A party failed, or the sum is wrong.
    """
    n, d = case.clients, case.length
    distinct, unit = min(n, DISTINCT), min(d, keyed.unit)
    with _Parties(keyed, case) as pilot:
        trial = pilot.encrypt(unit, 2)  # the first of them warms up
        seconds, _ = pilot.decrypt(pilot.add(trial.messages[:1], unit, 1, budget), unit)
    length = sample_length(d, unit, trial.later * distinct, budget)
    short = sample_length(length, unit, seconds, budget)

    with _Parties(keyed, case) as parties:
        sent = parties.encrypt(length, distinct)
        added = parties.add(sent.messages, length, n, budget)
        client = Load(Figure(sent.later, length, d), parties.memory(parties.sender, length))
        server = Load(
            Figure(added.seconds, added.count * length, n * d),
            parties.memory(parties.aggregator, length),
        )
        if short < length:
            few = parties.encrypt(short, distinct).messages
            added = parties.add(few, short, distinct, budget)
        seconds, error = parties.decrypt(added, short)
        holder = Load(Figure(seconds, short, d), parties.memory(parties.holder, short))
    received = Figure(len(added.total), short, d)
    return Row(
        system=keyed.system,
        case=case,
        setting=keyed.setting,
        client=client + holder if keyed.shared else client,
        server=server,
        holder=None if keyed.shared else holder,
        bytes_up=Figure(len(sent.messages[0]), length, d),
        bytes_down=received if keyed.shared else Figure(0),
        holder_bytes_in=None if keyed.shared else received,
        holder_bytes_out=None if keyed.shared else Figure(FLOAT_BYTES * d),
        setup_seconds=parties.sender.setup_seconds + max(0.0, sent.first - sent.later),
        error=error,
    )


@dataclass(frozen=True)
class _Sent:
    """What clients sent, and the seconds of the first vector and of later ones."""

    messages: list[bytes]
    first: float
    later: float


@dataclass(frozen=True)
class _Added:
    """A total of so many vectors, and what it took."""

    total: bytes
    count: int
    seconds: float


class _Parties:
    """The three parties, until the end of the ``with`` block."""

    def __init__(self, keyed: Keyed, case: Case) -> None:
        self._keyed, self._case = keyed, case
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start their processes."""
        keyed = self._keyed
        with ExitStack() as stack:
            self.sender = stack.enter_context(Role("client", keyed.sender))
            self.aggregator = stack.enter_context(Role("aggregator", keyed.aggregator))
            self.holder = stack.enter_context(Role("key holder", keyed.holder))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """End them."""
        self._stack.close()

    def encrypt(self, length: int, count: int) -> _Sent:
        """Let one client after the other encrypt its vector, under the same key."""
        took = [self.sender.do(_encrypt, self._case.vector(u, length)) for u in range(count)]
        first, *later = (one.seconds for one in took)
        return _Sent([one.result for one in took], first, statistics.median(later))

    def add(self, messages: list[bytes], length: int, clients: int, budget: float) -> _Added:
        """Add the messages in turn until there are as many as clients, or time is up."""
        count, seconds = 0, 0.0
        while count < clients and (count < len(messages) or seconds < budget):
            message = messages[count % len(messages)]
            seconds += self.aggregator.do(_add, message, length).seconds
            count += 1
        total = self.aggregator.do(_total)
        # the total is written once, however many are added
        return _Added(total.result, count, seconds + total.seconds * count / clients)

    def decrypt(self, added: _Added, length: int) -> tuple[float, float]:
        """Return the seconds, and the largest error of the sum."""
        took = self.holder.do(_decrypt, added.total, length)
        distinct = min(self._case.clients, DISTINCT)
        expected = np.zeros(length)
        for u in range(min(distinct, added.count)):
            times = len(range(u, added.count, distinct))
            expected += times * self._case.vector(u, length)
        error = float(np.abs(took.result - expected).max())
        if not error <= self._keyed.tolerance * added.count:
            raise SecAggError(
                f"{self._keyed.system.label}: the sum is wrong by {error:g}: please report "
                "this, with the command"
            )
        return took.seconds, error

    def memory(self, role: Role[T], done: int) -> int | None:
        """Return a party's memory, unless it has done only a sample."""
        return role.memory() if done == self._case.length else None


# what is sent to a process goes by its name, which a method that is chosen there has not


def _encrypt(sender: Sender, vector: F64) -> bytes:
    return sender.encrypt(vector)


def _add(aggregator: Aggregator, message: bytes, length: int) -> None:
    aggregator.add(message, length)


def _total(aggregator: Aggregator) -> bytes:
    return aggregator.total()


def _decrypt(holder: Holder, total: bytes, length: int) -> F64:
    return holder.decrypt(total, length)
