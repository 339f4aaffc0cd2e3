"""Interface of all aggregations: users' tables in, their exact integer sum out.

All of them encode alike and leave out the same users. So the same training gives the same
integers, bit for bit; `Aggregate.digest` compares them.

To add an aggregation, inherit from `IntegerSum` and write `_add`, or implement `Aggregation`.
Export it from `fedmf.aggregate`; ``fedmf train`` takes it once `fedmf.cli.choices` names it.
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

__all__ = [
    "PHASES",
    "Aggregation",
    "Dropouts",
    "Encoding",
    "IntegerSum",
    "Phase",
    "Progress",
    "RoundAborted",
    "Stopwatch",
    "in_the_sum",
    "modulus_bits",
]

Phase = Literal["advertise_keys", "share_keys", "masked_input", "unmasking"]
PHASES: tuple[Phase, ...] = ("advertise_keys", "share_keys", "masked_input", "unmasking")

Encoding = secagg.FixedPoint | secagg.Integers
Progress = Callable[[str, int, int], None]
Dropouts = Mapping[int, Phase]
"""Dropouts: the phase before whose message each user drops out."""


class RoundAborted(FedMFError):
    """Too few users were left for a sum; nothing was revealed."""


class Aggregation(Protocol):
    """Sums or counts the tables of a cohort, looking up each once at most.

    `dropouts` maps users' ids to the phase before whose message they drop out; `session` names
    the round.
    """

    def sum(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes) -> Aggregate:
        """Sum tables of floats, as fixed-point integers; raises RoundAborted."""
        ...

    def count(self, vectors: Vectors, *, dropouts: Dropouts, session: bytes) -> Aggregate:
        """Add up tables of zeros and ones; raises RoundAborted."""
        ...


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
        """Encoding of floats; it rounds to nearest, hence repeatably."""
        return secagg.FixedPoint(self.clip, self.fractional_bits, rounding="nearest")

    @abstractmethod
    def _add(
        self, vectors: Vectors, dropouts: Dropouts, session: bytes, encoding: Encoding
    ) -> Aggregate: ...


class Stopwatch:
    """Total of the `seconds` that it ran."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self, *, for_each_of: int = 1) -> Iterator[None]:
        """Time a step that is done once and stands for so many."""
        start = perf_counter()
        yield
        self.seconds += (perf_counter() - start) * for_each_of


def in_the_sum(vectors: Vectors, dropouts: Dropouts) -> tuple[int, ...]:
    """Return the users who send their vector before they drop out, ascending.

    The vector is sent as the masked input; a user who drops out of "unmasking" has sent it.
    """
    return tuple(user for user in sorted(vectors) if dropouts.get(user) in (None, "unmasking"))


def modulus_bits(n_clients: int, encoding: Encoding) -> int:
    """Return the b of Z_{2^b}: 32, whose lanes need no packing, or more if the sum needs it."""
    largest = n_clients * encoding.max_encoded
    return max(32, (2 * largest if encoding.signed else largest).bit_length())
