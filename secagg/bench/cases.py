"""Data of a benchmark: cases, systems, measured figures and rows of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from secagg._check import check_integer
from secagg.encoding import FixedPoint
from secagg.errors import SecAggError
from secagg.kit.table import Value
from secagg.protocol import RoundParams
from secagg.protocol.suites import SuiteName

CLIP = 8.0
ENCODING = FixedPoint(CLIP, rounding="nearest")  # multiples of 2^−16 in [−8, 8]

F64 = NDArray[np.float64]
Vectors = Callable[[int], F64]  # makes the vector of a client


class RandomVectors(Mapping[int, F64]):
    """Mapping of client id to a random vector in [−clip, clip], drawn anew at each look-up."""

    def __init__(self, clients: int, length: int, clip: float, seed: int) -> None:
        self._clients, self._length, self._clip, self._seed = clients, length, clip, seed

    def __getitem__(self, u: int) -> F64:
        if not 0 <= u < self._clients:
            raise KeyError(u)
        rng = np.random.default_rng([self._seed, u])
        return rng.uniform(-self._clip, self._clip, self._length)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._clients))

    def __len__(self) -> int:
        return self._clients


def leaving(clients: int, fraction: float) -> frozenset[int]:
    """Return ⌊fraction · clients⌋ random clients that drop out, never client 0."""
    # client 0 is measured alone, so it must stay to the end
    order = np.random.default_rng(clients).permutation(np.arange(1, clients))
    return frozenset(order[: int(fraction * clients)].tolist())


def round_params(
    clients: int,
    threshold: int,
    neighbours: int | None,
    length: int,
    encoding: FixedPoint = ENCODING,
    modulus_bits: int | None = None,
    suite: SuiteName | None = None,
) -> RoundParams:
    """Return the parameters of a round. By default the modulus fits the sum and is ≥ 2^32."""
    return RoundParams(
        n_clients=clients,
        threshold=threshold,
        length=length,
        encoding=encoding,
        modulus_bits=modulus_bits,
        neighbours=neighbours,
        suite=suite,
    )


def check_sum(
    integers: NDArray[np.int64],
    survivors: Iterable[int],
    vector: Vectors,
    encoding: FixedPoint = ENCODING,
    *,
    noise: int = 0,
) -> None:
    """Raise SecAggError unless `integers` are the exact sum of survivors' encoded vectors.

    `noise` bounds the absolute value of noise in an element of the sum.
    """
    expected = sum(encoding.encode_integers(vector(u))[0] for u in survivors)
    if np.abs(integers - expected).max() > noise:
        wrong = "beyond its noise" if noise else "not exact"
        raise SecAggError(f"the sum is {wrong}: please report this, with the command")


@dataclass(frozen=True)
class Case:
    """Size of a sum: n vectors of d elements; ParameterError is raised out of range."""

    clients: int  # n, 3 to 100,000
    length: int  # d, 1 to 10^8

    def __post_init__(self) -> None:
        check_integer("clients", self.clients, 3, 100_000)
        check_integer("length", self.length, 1, 100_000_000)

    def vector(self, client: int, length: int | None = None) -> F64:
        """Return a client's vector of `length` elements (default d), exact in fixed point."""
        short = self.length if length is None else length
        drawn = RandomVectors(self.clients, short, CLIP, 0)[client]
        # multiples of the encoding's step, so that no rounding hides an error of the sum
        exact: F64 = np.rint(drawn * ENCODING.scale) / ENCODING.scale
        return exact


@dataclass(frozen=True)
class Figure:
    """Seconds or bytes, measured for `done` of `of` equal parts, such as ciphertexts."""

    amount: float
    done: int = 1
    of: int = 1

    @property
    def value(self) -> float:
        """Amount for all parts, scaled up in proportion if only a sample was measured."""
        return self.amount * self.of / self.done

    @property
    def measured(self) -> bool:
        """True if all parts were measured."""
        return self.done == self.of

    @property
    def cell(self) -> Value:
        """The value for a table, marked if scaled."""
        return Value(self.value, scaled=not self.measured)

    def document(self) -> dict[str, object]:
        """Return the value for JSON, with the sample if the value was scaled."""
        sample = None if self.measured else {"done": self.done, "of": self.of}
        return {"value": self.value, "measured": self.measured, "sample": sample}

    def __add__(self, other: Figure) -> Figure:
        """Return the sum, with the smaller of the two samples."""
        less = min(self, other, key=lambda figure: figure.done / figure.of)
        return Figure((self.value + other.value) * less.done / less.of, less.done, less.of)


@dataclass(frozen=True)
class System:
    """Description of a system, equal in every case."""

    name: str  # in the JSON document
    label: str  # in tables
    family: Literal["ss", "he", "one-shot"]  # its part of ``secagg bench --compare``
    messages: int  # of a client; each but the first answers the server
    dropouts: str  # their effect on the sum
    decrypts: str  # the parties that can read single vectors


@dataclass(frozen=True)
class Load:
    """Processor time and memory of a party on one core."""

    seconds: Figure
    memory: int | None  # peak bytes of its process beyond the library; None after a sample

    def __add__(self, other: Load) -> Load:
        """Return the load of a party that does the work of both, one after the other."""
        # one part of the work after the other, so the peaks do not add up
        known = self.memory is not None and other.memory is not None
        memory = max(self.memory or 0, other.memory or 0) if known else None
        return Load(self.seconds + other.seconds, memory)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Measurements of a system in a case; `holder` is the key holder, None if there is none.

    The bytes of a client do not include the result that the client receives at the end.
    """

    system: System
    case: Case
    setting: str  # parameters that the system chose for the case, in words
    clients_run: int  # if fewer than n, their messages were sent again
    client: Load
    server: Load
    holder: Load | None = None
    bytes_up: Figure
    bytes_down: Figure
    holder_bytes_in: Figure | None = None
    holder_bytes_out: Figure | None = None
    setup_seconds: float = 0.0  # of a client once per key, before its first vector
    error: float = 0.0  # the largest of an element of the sum

    @property
    def central(self) -> Load:
        """Work of the server and the key holder together."""
        return self.server if self.holder is None else self.server + self.holder

    @property
    def measured(self) -> bool:
        """True if no figure of the row was scaled."""
        figures = [load.seconds for load in (self.client, self.server, self.holder) if load]
        sent = (self.bytes_up, self.bytes_down, self.holder_bytes_in, self.holder_bytes_out)
        return all(one.measured for one in (*figures, *sent) if one is not None)

    def document(self) -> dict[str, object]:
        """Return the fields for JSON, with the system's name and the case's size."""
        rest = {name: one for name, one in vars(self).items() if name not in ("system", "case")}
        return {"system": self.system.name, **vars(self.case), **rest}
