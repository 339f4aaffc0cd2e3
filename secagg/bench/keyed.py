"""Measurement of systems with a key: clients encrypt, an aggregator adds, a holder decrypts.

Work that exceeds the time budget is measured on a sample of elements or additions, scaled up
and marked.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from operator import methodcaller
from typing import NamedTuple, Protocol, Self

import numpy as np

from secagg.bench.cases import F64, Case, Figure, Load, Row, System
from secagg.bench.roles import Role
from secagg.errors import SecAggError

DISTINCT = 5  # vectors that are encrypted, and sent to the aggregator repeatedly, up to n


class Opened(NamedTuple):
    """Decrypted sum, and the number of bytes from the key holder to the aggregator."""

    sum: F64
    sent: int

    @classmethod
    def clear(cls, total: F64) -> Self:
        """Return a sum that the key holder sends unencrypted, eight bytes an element."""
        return cls(total, total.nbytes)


class Sender(Protocol):
    """Client of a system."""

    def encrypt(self, vector: F64) -> bytes:
        """Return the client's only message."""


class Aggregator(Protocol):
    """Party that adds the clients' encrypted messages."""

    def add(self, message: bytes, length: int) -> None:
        """Add the message of a client's vector, of `length` elements, to the total."""

    def total(self) -> bytes:
        """Return the total and set it to zero."""


class Holder(Protocol):
    """Party that decrypts the total."""

    def decrypt(self, total: bytes, length: int) -> Opened:
        """Return the decrypted sum, of `length` elements."""


@dataclass(frozen=True)
class Keyed:
    """System with functions that make the parties; the functions can be pickled."""

    system: System
    setting: str
    sender: Callable[[], Sender]
    aggregator: Callable[[], Aggregator]
    holder: Callable[[], Holder]
    slots: int  # elements of a ciphertext
    reserved: int = 0  # slots of a vector that are not for its elements
    pilot: int = 1  # ciphertexts on which the pace is found
    tables: bool = False  # are made for the key with a client's first vector
    shared: bool = False  # every client has the key and decrypts the sum itself
    trustees: int = 1  # parties that make up the holder, each of which receives the total
    tolerance: float = 0.0  # largest error of an element of the sum, per vector in it

    def ciphertexts(self, length: int) -> int:
        """Return the number of ciphertexts of a vector."""
        return -(-(length + self.reserved) // self.slots)


def measure(keyed: Keyed, case: Case, budget: float) -> Row:
    """Measure client, aggregator and key holder in a case, each for about `budget` seconds.

    Raise SecAggError if a party fails or the sum is wrong.
    """
    n, whole = case.clients, keyed.ciphertexts(case.length)
    distinct, pilot = min(n, DISTINCT), min(whole, keyed.pilot)
    # a pilot run with few ciphertexts shows the pace, which decides the sizes of the samples
    with ExitStack() as stack:
        parties = _Parties(keyed, case, stack)
        sent, _, later = parties.encrypt(pilot, 2)  # the first of them warms up
        total, vectors, _ = parties.add(sent, pilot, 2, budget)
        pace, *_ = parties.decrypt(total, vectors, pilot, 2)
    count = sample(whole, pilot, later * distinct, budget)
    few = sample(count, pilot, pace, budget)

    # new processes: the peak memory must not include the pilot run
    with ExitStack() as stack:
        parties = _Parties(keyed, case, stack)
        sent, first, later = parties.encrypt(count, distinct)
        total, vectors, seconds = parties.add(sent, count, n, budget)
        client = Load(Figure(later, count, whole), parties.memory(parties.sender, count))
        server = Load(
            Figure(seconds, vectors * count, n * whole),
            parties.memory(parties.aggregator, count),
        )
        if few < count:
            short, *_ = parties.encrypt(few, distinct)
            total, vectors, _ = parties.add(short, few, distinct, budget)
        seconds, out, error = parties.decrypt(total, vectors, few, distinct)
        holder = Load(Figure(seconds, few, whole), parties.memory(parties.holder, few))
        # the first vector takes longer, because tables are made for the key
        setup = parties.sender.setup_seconds + max(0.0, first - later)
    received = Figure(keyed.trustees * len(total), few, whole)
    return Row(
        system=keyed.system,
        case=case,
        setting=keyed.setting,
        clients_run=distinct,
        client=client + holder if keyed.shared else client,
        server=server,
        holder=None if keyed.shared else holder,
        bytes_up=Figure(len(sent[0]), count, whole),
        bytes_down=received if keyed.shared else Figure(0),
        holder_bytes_in=None if keyed.shared else received,
        holder_bytes_out=None if keyed.shared else Figure(out, few, whole),
        setup_seconds=setup if keyed.tables else 0.0,
        error=error,
    )


def sample(whole: int, unit: int, seconds_per_unit: float, budget: float) -> int:
    """Return the number of parts, out of `whole`, that can be measured within `budget` seconds.

    The number is a multiple of `unit` parts, which take `seconds_per_unit` together. At least
    one unit is measured.
    """
    units = max(1, int(budget / max(seconds_per_unit, 1e-9)))
    return min(whole, units * unit)


class _Parties:
    """Processes of client, aggregator and key holder, which end with the exit stack."""

    def __init__(self, keyed: Keyed, case: Case, stack: ExitStack) -> None:
        self._keyed, self._case = keyed, case
        self.sender = stack.enter_context(Role("client", keyed.sender))
        self.aggregator = stack.enter_context(Role("aggregator", keyed.aggregator))
        self.holder = stack.enter_context(Role("key holder", keyed.holder))

    def encrypt(self, ciphertexts: int, clients: int) -> tuple[list[bytes], float, float]:
        """Encrypt vectors; return messages, seconds of the first and median of the others."""
        vectors = (self._case.vector(u, self._length(ciphertexts)) for u in range(clients))
        took = [self.sender.do(methodcaller("encrypt", vector)) for vector in vectors]
        first, *later = (one.seconds for one in took)
        return [one.result for one in took], first, statistics.median(later)

    def add(
        self, messages: list[bytes], ciphertexts: int, clients: int, budget: float
    ) -> tuple[bytes, int, float]:
        """Add messages, in turn, until `clients` are added or `budget` seconds are over.

        Each message is added at least once. Return the total, the number of vectors in the
        total, and the seconds.
        """
        length, vectors, seconds = self._length(ciphertexts), 0, 0.0
        while vectors < clients and (vectors < len(messages) or seconds < budget):
            message = messages[vectors % len(messages)]
            seconds += self.aggregator.do(methodcaller("add", message, length)).seconds
            vectors += 1
        total = self.aggregator.do(methodcaller("total"))
        # the total is written once, however many are added
        return total.result, vectors, seconds + total.seconds * vectors / clients

    def decrypt(
        self, total: bytes, vectors: int, ciphertexts: int, distinct: int
    ) -> tuple[float, int, float]:
        """Decrypt and check a total; return seconds, bytes sent and the largest error.

        The total has `vectors` vectors, `distinct` of them different.
        """
        length = self._length(ciphertexts)
        took = self.holder.do(methodcaller("decrypt", total, length))
        expected = np.zeros(length)
        for u in range(min(distinct, vectors)):
            # `add` took the messages in turn
            times = len(range(u, vectors, distinct))
            expected += times * self._case.vector(u, length)
        error = float(np.abs(took.result.sum - expected).max())
        if not error <= self._keyed.tolerance * vectors:
            raise SecAggError(
                f"{self._keyed.system.label}: the sum is wrong by {error:g}: please report "
                "this, with the command"
            )
        return took.seconds, took.result.sent, error

    def memory(self, role: Role, ciphertexts: int) -> int | None:
        """Return a party's peak memory in bytes; None if the party has done only a sample."""
        return role.memory if self._length(ciphertexts) == self._case.length else None

    def _length(self, ciphertexts: int) -> int:
        most = ciphertexts * self._keyed.slots - self._keyed.reserved
        return min(self._case.length, most)
