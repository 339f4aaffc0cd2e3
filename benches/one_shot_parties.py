"""Parties of a large one-shot sum, a process each, connected by sockets that block when full.

The aggregator adds reports in leaves of 2,000. The boxes of a leaf go to both helpers, and the
leaf is merged when both verdicts are there. One client in 1,000 sends a broken box.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from multiprocessing.connection import Client, Connection, Listener, wait
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secagg import FixedPoint, Identity, Registry
from secagg.oneshot import (
    Accumulator,
    Helper,
    HelperJournal,
    OneShotParams,
    OneShotPolicy,
    report,
)
from secagg.oneshot.messages import Kind

HELPERS, GENERATORS = 2, 2
LEAF, BATCH = 2000, 200  # reports in a leaf, and in a message of a generator
CLIP = 1.0
ENCODING = FixedPoint(CLIP, fractional_bits=10, rounding="nearest")  # a million fit 2^32
_IDS = 0x9E3779B97F4A7C15  # odd, so all ids differ; spread over 64 bits as those of names are
_BROKEN = 1000  # of so many clients one has a broken box

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


class Sum(NamedTuple):
    """Sum of some clients' vectors as integers, and the ids of these clients, ascending."""

    integers: I64
    ids: U64


def client_ids(which: int, clients: int) -> U64:
    """Return the ids of a generator's clients, in order."""
    return np.arange(which, clients, GENERATORS, dtype=np.uint64) * np.uint64(_IDS)


def registry_of(params: OneShotParams, keys: Sequence[bytes]) -> Registry | None:
    """Return the registry of the keys that the generators enrolled; None if nobody signs."""
    if not params.active:
        return None
    found: dict[int, bytes] = {}
    for which, joined in enumerate(keys):
        ids = client_ids(which, params.n_clients).tolist()
        for at, u in enumerate(ids):
            found[u] = joined[32 * at : 32 * (at + 1)]
    return Registry(found)


class Generator:
    """Every second client, with seeded random vectors and their sum in plain integers."""

    def __init__(self, folder: Path, params: OneShotParams, which: int) -> None:
        self._params, self._which = params, which
        self._link = Client(_address(folder), "AF_UNIX")

    def enrol(self) -> bytes:
        """Return the public keys of all clients, joined."""
        ids = client_ids(self._which, self._params.n_clients).tolist()
        return b"".join(_identity(u).public for u in ids)

    def send(self) -> tuple[Sum, float]:
        """Send all reports; return the plain sum of the valid ones, and the clients' seconds.

        These are the processor time of `report` alone, without vectors, keys and the sum.
        """
        rng = np.random.default_rng([0, self._which])
        largest = ENCODING.max_encoded
        ids = client_ids(self._which, self._params.n_clients)
        total, seconds = np.zeros(self._params.length, np.int64), 0.0
        places = np.arange(self._which, self._params.n_clients, GENERATORS)
        valid = places % _BROKEN != _BROKEN - 1
        with self._link:  # closed after an error too, so that the aggregator does not wait
            for first in range(0, ids.size, BATCH):
                batch = slice(first, first + BATCH)
                shape = len(ids[batch]), self._params.length
                integers = rng.integers(-largest, largest, shape, np.int16, endpoint=True)
                total += integers[valid[batch]].sum(axis=0, dtype=np.int64)
                vectors = integers / ENCODING.scale
                signers = [
                    _identity(u) if self._params.active else None for u in ids[batch].tolist()
                ]
                start = time.process_time()
                made = [
                    report(vector, self._params, u, identity=identity)
                    for vector, u, identity in zip(
                        vectors, ids[batch].tolist(), signers, strict=True
                    )
                ]
                seconds += time.process_time() - start
                for at in np.flatnonzero(~valid[batch]).tolist():
                    helper = 1 + int(places[batch][at]) // _BROKEN % HELPERS
                    made[at] = self._broken(made[at], helper)
                self._link.send_bytes(b"".join(made))
        return Sum(total, np.sort(ids[valid])), seconds

    def _broken(self, sent: bytes, helper: int) -> bytes:
        """Return a report with one bit of a helper's box changed."""
        at = self._params.layout.box(helper).start
        return sent[:at] + bytes([sent[at] ^ 1]) + sent[at + 1 :]


class Aggregator:
    """Aggregator that adds reports in leaves."""

    def __init__(self, folder: Path, params: OneShotParams) -> None:
        self._params, self._store = params, folder / "accumulator"
        self._listener = Listener(_address(folder), "AF_UNIX", GENERATORS + HELPERS)
        self._registry: Registry | None
        self._total: Accumulator
        self._waiting: tuple[Accumulator, int] | None = None  # leaf at the helpers, its chunks

    def begin(self, keys: Sequence[bytes]) -> None:
        """Take the registry, and the parties' connections in the order in which they came."""
        self._registry = registry_of(self._params, keys)
        self._total = Accumulator(self._params, registry=self._registry)
        links = [self._listener.accept() for _ in range(GENERATORS + HELPERS)]
        self._sources: list[Connection] = links[:GENERATORS]
        self._helpers: list[Connection] = links[GENERATORS:]

    def add_leaf(self) -> int:
        """Add a leaf, send its boxes and settle the leaf before; return how many it has."""
        leaf, size = (
            Accumulator(self._params, registry=self._registry),
            self._params.layout.report,
        )
        while len(leaf) < LEAF and self._sources:
            for link in wait(self._sources):
                assert isinstance(link, Connection)
                try:
                    data = link.recv_bytes()
                except EOFError:
                    self._sources.remove(link)
                    continue
                for at in range(0, len(data), size):
                    leaf.add(data[at : at + size])
        chunks = 0
        for pair in zip(*(leaf.boxes(j + 1) for j in range(HELPERS)), strict=True):
            chunks += 1
            for link, chunk in zip(self._helpers, pair, strict=True):
                link.send_bytes(chunk)
        self._settle()
        self._waiting = leaf, chunks
        return len(leaf)

    def finish(self) -> Sum:
        """Settle the last leaf, let both helpers open, and return the sum.

        The accumulator is stored before the request is sent, as its documentation demands.
        """
        self._settle()
        request = self._total.request()
        with self._store.open("wb") as file:
            file.write(self._total.to_bytes())
            file.flush()
            os.fsync(file.fileno())
        for link in self._helpers:
            link.send_bytes(request)
        found = self._total.result(link.recv_bytes() for link in self._helpers)
        return Sum(found.integers, np.array(found.survivors, np.uint64))

    def _settle(self) -> None:
        """Merge the leaf that the helpers have checked, without the clients they rejected."""
        if self._waiting is None:
            return
        (leaf, chunks), self._waiting = self._waiting, None
        verdicts = [link.recv_bytes() for link in self._helpers for _ in range(chunks)]
        leaf.drop(np.frombuffer(b"".join(verdicts), np.uint64).tolist())
        leaf.settle()
        self._total.merge(leaf)


class Opener:
    """Helper with a new journal in a file."""

    def __init__(self, folder: Path, number: int) -> None:
        self._journal = HelperJournal.create(folder / f"helper {number}", "x25519")
        self._folder = folder
        self._link: Connection
        self._helper: Helper

    def begin(self) -> tuple[bytes, bytes]:
        """Return the helper's public keys."""
        return self._journal.public

    def connect(self) -> None:
        """Connect to the aggregator."""
        self._link = Client(_address(self._folder), "AF_UNIX")

    def load(self, params: OneShotParams, keys: Sequence[bytes]) -> None:
        """Take the parameters and the registry."""
        policy = OneShotPolicy(max_clients=params.n_clients)  # a million
        self._helper = Helper(
            params, self._journal, registry=registry_of(params, keys), policy=policy
        )

    def serve(self) -> None:
        """Check chunks of boxes, and open the list that follows them."""
        with self._link:
            while (data := self._link.recv_bytes())[1] == Kind.BOXES:
                rejected = np.array(self._helper.check(data), np.uint64)
                self._link.send_bytes(rejected.tobytes())
            self._link.send_bytes(self._helper.open(data))


def _identity(client_id: int) -> Identity:
    return Identity(hashlib.sha256(client_id.to_bytes(8, "little")).digest())


def _address(folder: Path) -> str:
    return str(folder / "aggregator")
