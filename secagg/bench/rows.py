"""What is measured of a system, and what is scaled from a sample: marked as such."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from secagg._check import check_integer
from secagg.bench.trial import RandomVectors
from secagg.encoding import FixedPoint

__all__ = ["ENCODING", "Case", "Figure", "Load", "Row", "System", "sample"]

CLIP = 8.0
ENCODING = FixedPoint(CLIP, rounding="nearest")
"""Every system sums the same vectors: multiples of 2^−16 in [−8, 8]."""


@dataclass(frozen=True)
class Case:
    """A sum of n vectors of d elements.

    Parameters
    ----------
    clients : int
        n, 3 to 100,000.
    length : int
        d, 1 to 10^8.

    Raises
    ------
    ParameterError
        A value is out of range.
    """

    clients: int
    length: int

    def __post_init__(self) -> None:
        check_integer("clients", self.clients, 3, 100_000)
        check_integer("length", self.length, 1, 100_000_000)

    def vector(self, client: int, length: int | None = None) -> NDArray[np.float64]:
        """Return a client's vector, or the first elements of one, exact in fixed point."""
        short = self.length if length is None else length
        drawn = RandomVectors(self.clients, short, CLIP, 0)[client]
        exact: NDArray[np.float64] = np.rint(drawn * ENCODING.scale) / ENCODING.scale
        return exact


@dataclass(frozen=True)
class Figure:
    """An amount that was measured on `done` of `of` equal parts of the work.

    Attributes
    ----------
    amount : float
        Seconds or bytes of the parts that were done.
    done, of : int
        Ciphertexts, or ciphertexts times clients.
    """

    amount: float
    done: int = 1
    of: int = 1

    @property
    def value(self) -> float:
        """The amount of all parts: scaled in proportion where only some were done."""
        return self.amount * self.of / self.done

    @property
    def measured(self) -> bool:
        """Whether nothing was scaled."""
        return self.done == self.of

    def __add__(self, other: Figure) -> Figure:
        """Return the sum, which is known as well as the one that is known less."""
        less = min(self, other, key=lambda figure: figure.done / figure.of)
        return Figure((self.value + other.value) * less.done / less.of, less.done, less.of)


@dataclass(frozen=True)
class System:
    """What is said of a system once, whatever the case.

    Attributes
    ----------
    name : str
        Its key in the JSON document.
    label : str
        What people read.
    family : "ss" or "he"
        By whose name on the command line it is measured.
    messages : int
        How many a client sends, each an answer to one it has waited for but the first.
    dropouts : str
        What becomes of the sum when clients vanish.
    decrypts : str
        Who is able to see single vectors.
    """

    name: str
    label: str
    family: Literal["ss", "he"]
    messages: int
    dropouts: str
    decrypts: str


@dataclass(frozen=True)
class Load:
    """What a party has to do.

    Attributes
    ----------
    seconds : Figure
        On one core.
    memory : int or None
        Bytes: the peak of the party's process beyond the library itself; None where only a
        sample of the work was done.
    """

    seconds: Figure
    memory: int | None

    def __add__(self, other: Load) -> Load:
        """Return the load of one that does both, one after the other."""
        known = self.memory is not None and other.memory is not None
        memory = max(self.memory or 0, other.memory or 0) if known else None
        return Load(self.seconds + other.seconds, memory)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A system in one case.

    Attributes
    ----------
    setting : str
        What the system chose for the case, in words.
    clients_run : int
        How many clients there were; where fewer than n, what they sent was sent again.
    client, server, holder : Load or None
        One client, the server or aggregator, and whoever holds the key; None where there is
        no such party.
    bytes_up, bytes_down : Figure
        Of one client; the sum that every client is told at last is not counted.
    holder_bytes_in, holder_bytes_out : Figure or None
        What the key holder is sent, and sends.
    setup_seconds : float
        What a client takes once per key, before its first vector.
    error : float
        The largest difference between an element of the sum and the exact one.
    """

    system: System
    case: Case
    setting: str
    clients_run: int
    client: Load
    server: Load
    holder: Load | None = None
    bytes_up: Figure
    bytes_down: Figure
    holder_bytes_in: Figure | None = None
    holder_bytes_out: Figure | None = None
    setup_seconds: float = 0.0
    error: float = 0.0

    @property
    def measured(self) -> bool:
        """Whether none of its figures was scaled."""
        loads = [load.seconds for load in (self.client, self.server, self.holder) if load]
        down, up = self.holder_bytes_in, self.holder_bytes_out
        figures = [*loads, self.bytes_up, self.bytes_down, down, up]
        return all(figure is None or figure.measured for figure in figures)


def sample(whole: int, unit: int, seconds_per_unit: float, budget: float) -> int:
    """Return how many of all parts of a work fit the budget: whole units, one at least.

    Parameters
    ----------
    whole : int
        All parts.
    unit : int
        Parts that a pilot has done, in so many seconds.
    seconds_per_unit, budget : float
    """
    units = max(1, int(budget / max(seconds_per_unit, 1e-9)))
    return min(whole, units * unit)
