"""The one place where fedmf hands the users' vectors over to be summed.

Whoever trains passes an `Aggregation`: `PlainSum` adds the clients' integers in the clear,
`SecAggSum` runs the secure-aggregation protocol on them. Both encode alike and leave out the
same users, so that the same training gives the same integers, bit for bit; `Aggregate.digest`
is there to compare them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

import secagg
from fedmf.errors import FedMFError, SettingError
from fedmf.vectors import Aggregate, Table, Vectors

__all__ = [
    "PHASES",
    "Aggregate",
    "Aggregation",
    "Phase",
    "PlainSum",
    "RoundAborted",
    "SecAggSum",
]

Phase = Literal["advertise_keys", "share_keys", "masked_input", "unmasking"]
PHASES: tuple[Phase, ...] = ("advertise_keys", "share_keys", "masked_input", "unmasking")

Encoding = secagg.FixedPoint | secagg.Integers
Progress = Callable[[str, int, int], None]

COMPLETE_UP_TO = 100  # clients: there everyone being everyone's neighbour is still cheap
NEIGHBOURS = 60


class RoundAborted(FedMFError):
    """Too few users were left for a sum: nothing was revealed, and nothing can be learnt."""


class Aggregation(Protocol):
    """Sums or counts what the users of a cohort hold; each table is looked up once at most.

    `dropouts` maps users' ids to the phase before whose message they vanish, and `session`
    names the round.
    """

    def sum(
        self,
        vectors: Vectors,
        *,
        dropouts: Mapping[int, Phase],
        session: bytes,
    ) -> Aggregate:
        """Sum tables of floats, as fixed-point integers; raises RoundAborted."""
        ...

    def count(
        self,
        vectors: Vectors,
        *,
        dropouts: Mapping[int, Phase],
        session: bytes,
    ) -> Aggregate:
        """Add up tables of zeros and ones; raises RoundAborted."""
        ...


@dataclass(frozen=True, kw_only=True)
class _IntegerSum(ABC):
    """What both aggregations share: how the tables become integers."""

    clip: float = 16.0
    fractional_bits: int = 16

    def __post_init__(self) -> None:
        _ = self.encoding  # an impossible one is refused at once

    def sum(
        self,
        vectors: Vectors,
        *,
        dropouts: Mapping[int, Phase],
        session: bytes = b"",
    ) -> Aggregate:
        """Sum tables of floats, as fixed-point integers; see `Aggregation`."""
        return self._add(vectors, dropouts, session, self.encoding)

    def count(
        self,
        vectors: Vectors,
        *,
        dropouts: Mapping[int, Phase],
        session: bytes = b"",
    ) -> Aggregate:
        """Add up tables of zeros and ones; see `Aggregation`."""
        return self._add(vectors, dropouts, session, secagg.Integers(1))

    @property
    def encoding(self) -> secagg.FixedPoint:
        """The encoding of floats; it rounds to nearest, hence repeatably."""
        with _refusals():
            return secagg.FixedPoint(self.clip, self.fractional_bits, rounding="nearest")

    @abstractmethod
    def _add(
        self,
        vectors: Vectors,
        dropouts: Mapping[int, Phase],
        session: bytes,
        encoding: Encoding,
    ) -> Aggregate: ...


@dataclass(frozen=True, kw_only=True)
class PlainSum(_IntegerSum):
    """The sum in the clear: no privacy, but the integers that `SecAggSum` gives.

    It counts what the vectors themselves weigh on the wire, has no threshold, and is aborted
    only when nobody is left.

    Parameters
    ----------
    clip, fractional_bits
        The fixed-point encoding: floats in [−clip, clip] as multiples of 2^−fractional_bits.

    Raises
    ------
    SettingError
        If the encoding is impossible.
    """

    def _add(
        self,
        vectors: Vectors,
        dropouts: Mapping[int, Phase],
        session: bytes,
        encoding: Encoding,
    ) -> Aggregate:
        survivors = tuple(
            user for user in sorted(vectors) if dropouts.get(user) in (None, "unmasking")
        )
        if not survivors:
            raise RoundAborted(f"none of the {len(vectors)} users of the cohort is left")
        total = np.zeros(vectors.shape, dtype=np.int64)
        clipped, server_seconds, start = 0, 0.0, perf_counter()
        for user in survivors:
            rows = vectors[user]
            with _refusals():
                integers, beyond = _integers(encoding, rows.values.reshape(-1))
            clipped += beyond
            arrived = perf_counter()
            total[rows.indices] += integers.reshape(rows.values.shape)
            server_seconds += perf_counter() - arrived
        client_seconds = perf_counter() - start - server_seconds
        flat = total.reshape(-1)
        return Aggregate(
            sum=_decoded(encoding, flat),
            integers=flat,
            survivors=survivors,
            clipped=clipped,
            client_seconds=client_seconds,
            server_seconds=server_seconds,
            bytes_up=flat.size * _modulus_bits(len(vectors), encoding) / 8,
            bytes_down=0.0,
        )


@dataclass(frozen=True, kw_only=True)
class SecAggSum(_IntegerSum):
    """The sum by secure aggregation, each user a client of the protocol: only it is learnt.

    Parameters
    ----------
    neighbours
        With how many others each user exchanges keys and shares: an even number (Bell et al.
        2020), None for all of them (Bonawitz et al. 2017), or "auto" for all of them in
        cohorts up to 100 and 60 in larger ones.
    threshold
        How many of the n (or neighbours + 1) holders of a user's shares it takes to
        reconstruct them; None for two thirds, rounded up. A higher one withstands more
        colluding users, a lower one more dropouts. Of n it must be more than half; of
        neighbours, enough for one user in twenty to collude and one to vanish
        (`secagg.ClientPolicy`).
    progress
        Called now and then with the phase, and how many clients of how many are through it.
    clip, fractional_bits
        The fixed-point encoding, as of `PlainSum`.

    Raises
    ------
    SettingError
        If a value is out of range; what depends on the cohort is refused when it is summed.
    """

    neighbours: int | Literal["auto"] | None = "auto"
    threshold: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.neighbours, str) and self.neighbours != "auto":
            raise SettingError(
                f"neighbours = {self.neighbours!r} must be an even number, None for all, or "
                "'auto'"
            )

    def params(
        self, n_clients: int, length: int, encoding: Encoding, session: bytes
    ) -> secagg.RoundParams:
        """Return the parameters of a round among `n_clients` users.

        Raises
        ------
        SettingError
            If the settings do not fit the cohort.
        """
        neighbours = self.neighbours
        if neighbours == "auto":
            neighbours = None if n_clients <= COMPLETE_UP_TO else NEIGHBOURS
        holders = n_clients if neighbours is None else neighbours + 1
        threshold = self.threshold
        if threshold is None:
            threshold = math.ceil(2 * holders / 3)
        with _refusals():
            return secagg.RoundParams(
                n_clients=n_clients,
                threshold=threshold,
                length=length,
                encoding=encoding,
                modulus_bits=_modulus_bits(n_clients, encoding),
                neighbours=neighbours,
                session=session,
            )

    def _add(
        self,
        vectors: Vectors,
        dropouts: Mapping[int, Phase],
        session: bytes,
        encoding: Encoding,
    ) -> Aggregate:
        params = self.params(len(vectors), math.prod(vectors.shape), encoding, session)
        try:
            with _refusals():
                result = secagg.simulate_round(
                    vectors.dense(), params, dropouts=dropouts, progress=self.progress
                )
        except secagg.TooFewSurvivors as error:
            raise RoundAborted(str(error)) from error
        survivors = tuple(sorted(result.survivors))
        n_clients = len(vectors)
        return Aggregate(
            sum=np.asarray(result.sum, dtype=np.float64),
            integers=result.integers,
            survivors=survivors,
            clipped=result.clipped,
            client_seconds=result.client_seconds,
            server_seconds=result.server_seconds,
            bytes_up=sum(result.bytes_up.values()) / n_clients,
            bytes_down=sum(result.bytes_down.values()) / n_clients,
        )


@contextmanager
def _refusals() -> Iterator[None]:
    """Let the refusals of secagg be told as refusals of fedmf."""
    try:
        yield
    except secagg.ParameterError as error:
        raise SettingError(str(error)) from error


def _integers(encoding: Encoding, vector: Table) -> tuple[NDArray[np.int64], int]:
    """Return the integers that a client sends, and how many of them were clipped."""
    if isinstance(encoding, secagg.FixedPoint):
        return encoding.encode_integers(vector)
    return vector.astype(np.int64), 0


def _decoded(encoding: Encoding, integers: NDArray[np.int64]) -> NDArray[np.float64]:
    if isinstance(encoding, secagg.FixedPoint):
        return encoding.decode_integers(integers)
    return integers.astype(np.float64)


def _modulus_bits(n_clients: int, encoding: Encoding) -> int:
    """Return the b of Z_{2^b}: 32, whose lanes need no packing, or more if the sum needs it."""
    largest = n_clients * encoding.max_encoded
    return max(32, (2 * largest if encoding.signed else largest).bit_length())
