"""Systems with a key: clients encrypt, an aggregator adds, a key holder decrypts.

What takes longer than the budget is done on a sample, fewer elements or fewer additions, and
its figures know it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

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

    def add(self, message: bytes) -> None:
        """Add a client's message to the total."""
        ...

    def total(self) -> bytes:
        """Return the total, and start again."""
        ...


class Holder(Protocol):
    """Has the key."""

    def decrypt(self, total: bytes) -> F64:
        """Return the sum."""
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
    with (
        Role("client", keyed.sender) as sender,
        Role("aggregator", keyed.aggregator) as aggregator,
        Role("key holder", keyed.holder) as holder,
    ):
        run = _Run(keyed, case, budget, sender, aggregator, holder)
        return run.row()


class _Run:
    """One case under way."""

    def __init__(
        self,
        keyed: Keyed,
        case: Case,
        budget: float,
        sender: Role[Sender],
        aggregator: Role[Aggregator],
        holder: Role[Holder],
    ) -> None:
        self._keyed, self._case, self._budget = keyed, case, budget
        self._sender, self._aggregator, self._holder = sender, aggregator, holder

    def row(self) -> Row:
        n, d = self._case.clients, self._case.length
        distinct, unit = min(n, DISTINCT), min(d, self._keyed.unit)
        encrypting, messages = self._encrypt(unit, 1)  # a pilot, which warms all three up
        decrypting, _ = self._decrypt(self._add(messages, 1).total, unit, 1)

        length = sample_length(d, unit, encrypting * distinct, self._budget)
        encrypting, messages = self._encrypt(length, distinct)
        added = self._add(messages, n)
        client = Load(Figure(encrypting, length, d), self._memory(self._sender, length))
        server = Load(
            Figure(added.seconds, added.count * length, n * d),
            self._memory(self._aggregator, length),
        )
        sent = Figure(len(messages[0]), length, d)

        short = sample_length(length, unit, decrypting, self._budget)
        if short < length:
            added = self._add(self._encrypt(short, distinct)[1], distinct)
        decrypting, error = self._decrypt(added.total, short, added.count)
        holder = Load(Figure(decrypting, short, d), self._memory(self._holder, short))
        total = Figure(len(added.total), short, d)
        shared = self._keyed.shared
        return Row(
            system=self._keyed.system,
            case=self._case,
            setting=self._keyed.setting,
            client=client + holder if shared else client,
            server=server,
            holder=None if shared else holder,
            bytes_up=sent,
            bytes_down=total if shared else Figure(0),
            holder_bytes_in=None if shared else total,
            holder_bytes_out=None if shared else Figure(FLOAT_BYTES * d),
            setup_seconds=self._sender.setup_seconds,
            error=error,
        )

    def _encrypt(self, length: int, count: int) -> tuple[float, list[bytes]]:
        """Return a client's seconds, and the messages of so many clients."""
        took = [self._sender.do(_encrypt, self._case.vector(u, length)) for u in range(count)]
        return statistics.median(one.seconds for one in took), [one.result for one in took]

    def _add(self, messages: list[bytes], clients: int) -> _Added:
        """Add the messages in turn until there are as many as clients, or time is up."""
        count, seconds = 0, 0.0
        while count < clients and (count < len(messages) or seconds < self._budget):
            seconds += self._aggregator.do(_add, messages[count % len(messages)]).seconds
            count += 1
        total = self._aggregator.do(_total)
        # the total is written once, however many are added
        return _Added(total.result, count, seconds + total.seconds * count / clients)

    def _decrypt(self, total: bytes, length: int, count: int) -> tuple[float, float]:
        """Return the seconds and the largest error of the sum of so many vectors."""
        took = self._holder.do(_decrypt, total)
        expected = np.zeros(length)
        for i in range(count):
            expected += self._case.vector(i % min(self._case.clients, DISTINCT), length)
        error = float(np.abs(took.result - expected).max())
        if not error <= self._keyed.tolerance * count:
            raise SecAggError(
                f"{self._keyed.system.label}: the sum is wrong by {error:g}: please report "
                "this, with the command"
            )
        return took.seconds, error

    def _memory(self, role: Role[T], done: int) -> int | None:
        """Return a party's memory, unless it has done only a sample."""
        return role.memory() if done == self._case.length else None


@dataclass(frozen=True)
class _Added:
    total: bytes
    count: int
    seconds: float


# what is sent to a process goes by its name, which a method that is chosen there has not


def _encrypt(sender: Sender, vector: F64) -> bytes:
    return sender.encrypt(vector)


def _add(aggregator: Aggregator, message: bytes) -> None:
    aggregator.add(message)


def _total(aggregator: Aggregator) -> bytes:
    return aggregator.total()


def _decrypt(holder: Holder, total: bytes) -> F64:
    return holder.decrypt(total)
