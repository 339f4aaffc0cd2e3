"""Settings of a run, and all that its processes compute from them: keys, ids and vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from secagg import Identity
from secagg.oneshot import OneShotParams
from secagg.protocol.suites import SuiteName

CLIP = 8.0
HELPERS = 2
_IDS = 0x9E3779B97F4A7C15  # odd, so all ids differ; spread over 64 bits as those of names are

I32 = NDArray[np.int32]
U64 = NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Load:
    """Settings of a run.

    Attributes
    ----------
    clients, length, bits : int
        Number of reports, elements of a vector, and bits of an element modulo R.
    generators, serves, works : int
        Numbers of processes.
    connections : int
        Connections of a generator to each ``secagg collect serve``, all in use at once.
    pace : float
        Most reports that a generator makes in a second.
    duplicates, garbage : float
        Fractions of the reports that are sent twice, and that garbage precedes.
    kills : int
        Kills of each kind of process.
    lease : float
        Seconds of a worker's lease.
    suite : "hybrid" or "x25519"
    seed : int
    """

    clients: int
    length: int = 1000
    bits: int = 40
    generators: int = 2
    serves: int = 1
    works: int = 1
    connections: int = 64
    pace: float = 1e9
    duplicates: float = 0.0
    garbage: float = 0.0
    kills: int = 0
    lease: float = 600.0
    suite: SuiteName = "hybrid"
    seed: int = 0

    @staticmethod
    def read(folder: Path) -> Load:
        """Return the settings that `write` wrote into a folder."""
        return msgspec.json.decode((folder / "load.json").read_bytes(), type=Load)

    def write(self, folder: Path) -> None:
        """Write the settings for the other processes."""
        (folder / "load.json").write_bytes(msgspec.json.encode(self))

    @cached_property
    def ids(self) -> U64:
        """Ids of all clients."""
        return np.arange(1, self.clients + 1, dtype=np.uint64) * np.uint64(_IDS)

    @property
    def lot(self) -> int:
        """Clients whose vectors are made at once."""
        return max(1, min(100, 2_000_000 // self.length))

    def lots(self, generator: int) -> Iterator[tuple[int, list[int]]]:
        """Yield the place of the first client, and the ids, of each lot of a generator."""
        for first in range(generator * self.lot, self.clients, self.generators * self.lot):
            yield first, self.ids[first : first + self.lot].tolist()

    def integers(self, first: int, count: int, params: OneShotParams) -> I32:
        """Return the encoded vectors of some clients, which are at these places of `ids`."""
        rng = np.random.default_rng([self.seed, first])
        largest = params.encoding.max_encoded
        shape = count, self.length
        return rng.integers(-largest, largest, shape, np.int32, endpoint=True)


def identity_of(client: int) -> Identity:
    """Return the signing key of a client."""
    return Identity(hashlib.sha256(client.to_bytes(8, "little")).digest())


def write_registry(path: Path, ids: U64) -> None:
    """Write the public keys of clients, a line each."""
    with path.open("w", encoding="ascii") as file:
        file.write("{\n")
        for at, u in enumerate(ids.tolist()):
            file.write(f'{"," if at else ""} "{u}": "{identity_of(u).public.hex()}"\n')
        file.write("}\n")
