"""Interface of all aggregations, which sum the users' tables as integers.

All aggregations of integers encode in the same way and leave out the same users. So the same
training gives the same integers, bit for bit; compare them by `Aggregate.digest`.

To add an aggregation, inherit from `IntegerSum` and write `_add`, or implement `Aggregation`.
Export the class from `fedmf.aggregate`. For ``fedmf train``, enter it in `fedmf.cli.choices`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Literal, Protocol

import secagg
from fedmf.aggregate.vectors import Aggregate, Vectors
from fedmf.errors import FedMFError
from fedmf.settings import Settings

Phase = Literal["advertise_keys", "share_keys", "masked_input", "unmasking"]
PHASES: tuple[Phase, ...] = ("advertise_keys", "share_keys", "masked_input", "unmasking")

Encoding = secagg.FixedPoint | secagg.Integers
Progress = Callable[[str, int, int], None]
"""Function of the name of a phase, the finished steps and all steps, for work without records.

A sum has phases and no `RoundRecord`. So sums and attacks report by `Progress`, and estimators
by callbacks, which take a record.
"""
Dropouts = Mapping[int, Phase]
"""Map from the id of a dropped-out user to the phase of the first message that is not sent."""


def silent(what: str, done: int, of: int) -> None:
    """Report no progress. A function of a module can be pickled, unlike a lambda."""


class RoundAborted(FedMFError):
    """Too few users were left for a sum; nothing was revealed."""


class Aggregation(Protocol):
    """Adds up the tables of a cohort's users; some users may drop out.

    `vectors` computes a table at each look-up, so a table is looked up once at most. `dropouts`
    maps the id of a user who drops out to a phase; the user sends no message from that phase
    on. `session` is the name of the round.
    """

    def sum(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes) -> Aggregate:
        """Add up tables of floats, as fixed-point integers; raises RoundAborted."""

    def count(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes) -> Aggregate:
        """Add up tables of zeros and ones; raises RoundAborted."""


@dataclass(frozen=True, kw_only=True)
class IntegerSum(Settings, ABC):
    """Base class of aggregations that sum integers.

    Parameters
    ----------
    clip, fractional_bits
        Fixed-point encoding: floats in [−clip, clip] as multiples of 2^−fractional_bits.
    """

    clip: float = 16.0
    fractional_bits: int = 16

    def _check(self) -> None:
        _ = self.encoding  # raises if a setting is out of range

    def sum(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes = b"") -> Aggregate:
        """Sum tables of floats, as fixed-point integers; see `Aggregation`."""
        return self._add(vectors, dropouts, session, self.encoding)

    def count(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes = b"") -> Aggregate:
        """Add up tables of zeros and ones; see `Aggregation`."""
        return self._add(vectors, dropouts, session, secagg.Integers(1))

    @property
    def encoding(self) -> secagg.FixedPoint:
        """Fixed-point encoding of floats, rounded to nearest, so that sums are repeatable."""
        return secagg.FixedPoint(self.clip, self.fractional_bits, rounding="nearest")

    @abstractmethod
    def _add(
        self, vectors: Vectors, dropouts: Dropouts, session: bytes, encoding: Encoding
    ) -> Aggregate: ...


class Stopwatch:
    """Stopwatch that adds up the time of several steps in `seconds`."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self, *, for_each_of: int = 1) -> Iterator[None]:
        """Time the body of the ``with`` statement and count the time `for_each_of` times."""
        start = perf_counter()
        yield
        self.seconds += (perf_counter() - start) * for_each_of


def in_the_sum(vectors: Vectors, dropouts: Dropouts) -> tuple[int, ...]:
    """Return the ids of the users with a vector in the sum, ascending.

    A user sends the vector as the masked input. So a user who drops out before the message of
    "unmasking" is still in the sum.
    """
    return tuple(user for user in sorted(vectors) if dropouts.get(user) in (None, "unmasking"))


def modulus_bits(n_clients: int, encoding: Encoding) -> int:
    """Return b for sums modulo 2^b, the fewest bits that no sum of `n_clients` exceeds."""
    largest = n_clients * encoding.max_encoded
    return (2 * largest if encoding.signed else largest).bit_length()
