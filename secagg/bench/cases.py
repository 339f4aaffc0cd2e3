"""Cases, systems, and their measured rows, with figures that may be scaled from a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from secagg._check import check_integer
from secagg.bench.table import Value
from secagg.encoding import FixedPoint
from secagg.errors import SecAggError

CLIP = 8.0
ENCODING = FixedPoint(CLIP, rounding="nearest")
"""Every system sums the same vectors: multiples of 2^−16 in [−8, 8]."""

Vectors = Callable[[int], NDArray[np.float64]]
"""Makes the vector of a client."""


class RandomVectors(Mapping[int, NDArray[np.float64]]):
    """Vectors uniform in [−clip, clip], drawn at each look-up, the same each time."""

    def __init__(self, clients: int, length: int, clip: float, seed: int) -> None:
        self._clients, self._length, self._clip, self._seed = clients, length, clip, seed

    def __getitem__(self, u: int) -> NDArray[np.float64]:
        """Draw client u's vector."""
        if not 0 <= u < self._clients:
            raise KeyError(u)
        rng = np.random.default_rng([self._seed, u])
        return rng.uniform(-self._clip, self._clip, self._length)

    def __iter__(self) -> Iterator[int]:
        """Yield the ids."""
        return iter(range(self._clients))

    def __len__(self) -> int:
        """Return the number of clients."""
        return self._clients


def leaving(clients: int, fraction: float) -> frozenset[int]:
    """Draw ⌊fraction · clients⌋ clients that drop out, never client 0."""
    order = np.random.default_rng(clients).permutation(np.arange(1, clients))
    return frozenset(order[: int(fraction * clients)].tolist())


def check_sum(
    integers: NDArray[np.int64],
    survivors: Iterable[int],
    vector: Vectors,
    encoding: FixedPoint = ENCODING,
) -> None:
    """Compare a round's sum with that of the survivors' vectors in plain integers.

    Raises
    ------
    SecAggError
        It is not exact, which is a defect of this library.
    """
    expected = np.zeros(integers.size, dtype=np.int64)
    for u in survivors:
        expected += encoding.encode_integers(vector(u))[0]
    if not np.array_equal(expected, integers):
        raise SecAggError("the sum is not exact: please report this, with the command")


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
    """Seconds or bytes of `done` of `of` equal parts of the work.

    The parts are ciphertexts, or ciphertexts times clients.
    """

    amount: float
    done: int = 1
    of: int = 1

    @property
    def value(self) -> float:
        """Amount of all parts, scaled in proportion where only some were done."""
        return self.amount * self.of / self.done

    @property
    def measured(self) -> bool:
        """True if nothing was scaled."""
        return self.done == self.of

    @property
    def cell(self) -> Value:
        """The value, marked where it was scaled."""
        return Value(self.value, scaled=not self.measured)

    def document(self) -> dict[str, object]:
        """Return the value, and the sample that it was scaled from."""
        sample = None if self.measured else {"done": self.done, "of": self.of}
        return {"value": self.value, "measured": self.measured, "sample": sample}

    def __add__(self, other: Figure) -> Figure:
        """Return the sum, with the smaller of the two samples."""
        less = min(self, other, key=lambda figure: figure.done / figure.of)
        return Figure((self.value + other.value) * less.done / less.of, less.done, less.of)


@dataclass(frozen=True)
class System:
    """Properties of a system that are the same in every case.

    Attributes
    ----------
    name, label : str
        In the JSON document, and in tables.
    family : "ss" or "he"
        The name on the command line that selects it.
    messages : int
        Messages of a client; each but the first answers one it has waited for.
    dropouts, decrypts : str
        Effect of dropouts on the sum, and parties that can see single vectors.
    """

    name: str
    label: str
    family: Literal["ss", "he"]
    messages: int
    dropouts: str
    decrypts: str


@dataclass(frozen=True)
class Load:
    """Work of a party: seconds on one core, and the peak memory of its process in bytes.

    Memory is that beyond the library itself; None where only a sample of the work was done.
    """

    seconds: Figure
    memory: int | None

    def __add__(self, other: Load) -> Load:
        """Return the load of a party that does both, one after the other."""
        known = self.memory is not None and other.memory is not None
        memory = max(self.memory or 0, other.memory or 0) if known else None
        return Load(self.seconds + other.seconds, memory)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Measurements of a system in a case.

    Attributes
    ----------
    setting : str
        Parameters that the system chose for the case, in words.
    clients_run : int
        Clients that were run; where fewer than n, their messages were sent again.
    client, server, holder : Load or None
        One client, the server or aggregator, and the key holder; None where there is no such
        party.
    bytes_up, bytes_down : Figure
        Traffic of one client, without the sum that every client receives at last.
    holder_bytes_in, holder_bytes_out : Figure or None
        Traffic of the key holder.
    setup_seconds : float
        Time of a client once per key, before its first vector.
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
        """True if none of its figures was scaled."""
        loads = [load.seconds for load in (self.client, self.server, self.holder) if load]
        down, up = self.holder_bytes_in, self.holder_bytes_out
        figures = [*loads, self.bytes_up, self.bytes_down, down, up]
        return all(figure is None or figure.measured for figure in figures)

    def document(self) -> dict[str, object]:
        """Return the fields as plain values, the system by its name."""
        rest = {name: one for name, one in vars(self).items() if name not in ("system", "case")}
        return {"system": self.system.name, **vars(self.case), **rest}


def sample(whole: int, unit: int, seconds_per_unit: float, budget: float) -> int:
    """Return how many of all parts fit the budget in seconds: whole units, one at least."""
    units = max(1, int(budget / max(seconds_per_unit, 1e-9)))
    return min(whole, units * unit)
