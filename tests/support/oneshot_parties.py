"""Parties of a one-shot sum: clients, an accumulator, and helpers with journals in a folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from raised import rejects as rejects
from secagg import Integers, Registry
from secagg.oneshot import (
    Accumulator,
    Helper,
    HelperJournal,
    OneShotParams,
    OneShotPolicy,
    OneShotResult,
    report,
)
from secagg.testing import InsecureReplayedEntropy, OneShotRound, make_identity
from secagg.testing.rounds import plain_encoding

LENIENT = OneShotPolicy(min_threshold=1, min_clients=2, corrupt=0)
"""Policy of parties in tests of something else."""


class Parties:
    """Helpers of one session, with the vectors and reports of its clients.

    Journals that are in the folder are opened.

    Attributes
    ----------
    params : OneShotParams
    journals, helpers : lists, in the helpers' order
    vectors, weights : dict of id to vector, weight or None
    """

    def __init__(
        self, folder: Path, helpers: int = 2, threshold: int = 2, **changes: object
    ) -> None:
        suite = changes.setdefault("suite", "x25519")
        sources = [InsecureReplayedEntropy((str(folder), j)) for j in range(helpers)]
        paths = [folder / f"helper {j}" for j in range(1, helpers + 1)]
        self.journals = [
            HelperJournal.open(path)
            if path.exists()
            else HelperJournal.create(path, suite, entropy=source)  # type: ignore[arg-type]
            for path, source in zip(paths, sources, strict=True)
        ]
        self._secrets = [source.drawn for source in sources]
        self.lost: list[HelperJournal] = []
        self.params = self.make_params(threshold=threshold, **changes)
        self.helpers: list[Helper] = []
        self.vectors: dict[int, np.ndarray] = {}
        self.weights: dict[int, int | None] = {}
        self.restart()

    def make_params(self, **changes: object) -> OneShotParams:
        """Return parameters for these helpers' keys."""
        return one_shot_params(self.journals, **changes)

    def close(self) -> None:
        for journal in (*self.journals, *self.lost):
            journal.close()

    def restart(self, params: OneShotParams | None = None) -> None:
        """Make the helpers anew, with the journals that are there."""
        params = params or self.params
        self.helpers = [
            Helper(params, journal, registry=registry_for(params), policy=LENIENT)
            for journal in self.journals
        ]

    def restarted(self, at: int) -> Helper:
        """Return a helper whose journal lost its lists, after it checked the same boxes."""
        drawn = iter(self._secrets[at])
        path, suite = self.journals[at].path.with_name(f"lost {at}"), self.params.suite
        journal = HelperJournal.create(path, suite, entropy=lambda _size: next(drawn))
        self.lost.append(journal)
        registry = registry_for(self.params)
        helper = Helper(self.params, journal, registry=registry, policy=LENIENT)
        helper._checked.merge(self.helpers[at]._checked)
        return helper

    def report(
        self, client: int, *, params: OneShotParams | None = None, seed: object = 0
    ) -> bytes:
        """Return a report of a client, whose vector depends on its id and on `seed`."""
        params = params or self.params
        entropy = InsecureReplayedEntropy((client, seed))
        largest = min(params.encoding.max_encoded, 1 << 50)
        rng = np.random.default_rng(list(repr((client, seed)).encode()))
        vector = rng.integers(0, largest, params.length, endpoint=True)
        if not isinstance(params.encoding, Integers):
            vector = vector / params.encoding.scale  # type: ignore[attr-defined]
            vector *= rng.choice([-1, 1], params.length)
        most = params.max_weight
        weight = None if most is None else int(rng.integers(0, most + 1))
        self.vectors[client], self.weights[client] = vector, weight
        identity = make_identity(client) if params.active else None
        given = vector, params, client, weight
        return report(*given, identity=identity, policy=LENIENT, entropy=entropy)

    def spoilt(self, client: int, helper: int, **changes: object) -> bytes:
        """Return a report of a client, whose box for a helper does not open."""
        content = bytearray(self.report(client, **changes))  # type: ignore[arg-type]
        content[self.params.layout.box(helper).stop - 1] ^= 1
        return bytes(content)

    def accumulator(self, clients: Iterable[int], **changes: object) -> Accumulator:
        """Return an accumulator with a report of each client."""
        made = Accumulator(self.params, registry=registry_for(self.params), **changes)  # type: ignore[arg-type]
        for u in clients:
            assert made.add(self.report(u))
        return made

    def checked(self, clients: Iterable[int]) -> Accumulator:
        """Return an accumulator of these clients, whose boxes all helpers have checked."""
        made = self.accumulator(clients)
        self.check(made)
        return made

    def restored(self, data: bytes) -> Accumulator:
        """Return the accumulator of these bytes."""
        registry = registry_for(self.params)
        return Accumulator.from_bytes(data, self.params, registry=registry)

    def check(self, accumulator: Accumulator, who: Sequence[int] | None = None) -> set[int]:
        """Send boxes to all helpers, or to some, and return the ids that they reject."""
        numbers = range(1, len(self.helpers) + 1) if who is None else who
        return {
            u
            for j in numbers
            for chunk in accumulator.boxes(j)
            for u in self.helpers[j - 1].check(chunk)
        }

    def answers(self, accumulator: Accumulator) -> tuple[bytes, list[bytes]]:
        """Check, reserve and open at all helpers; return the last request and all answers."""
        assert not self.check(accumulator)
        request = accumulator.request()
        if self.params.quorum:
            request = accumulator.request(h.reserve(request) for h in self.helpers)
        return request, [h.open(request) for h in self.helpers]

    def open(self, accumulator: Accumulator, who: Sequence[int] | None = None) -> OneShotResult:
        """Reserve and open at all helpers, or at some, and return the result."""
        numbers = range(1, len(self.helpers) + 1) if who is None else who
        return open_sum(accumulator, [self.helpers[j - 1] for j in numbers])

    def expected(self, clients: Iterable[int]) -> list[int]:
        """Return the exact sum of the encoded vectors of some clients."""
        plain = [plain_encoding(self.params, self.vectors[u], self.weights[u]) for u in clients]
        return [sum(column) for column in zip(*plain, strict=True)][: self.params.length]


def one_shot_params(journals: Iterable[HelperJournal], **changes: object) -> OneShotParams:
    """Return parameters for the keys of helpers."""
    settings: dict[str, object] = {
        "n_clients": 10,
        "length": 4,
        "encoding": Integers(100),
        "helpers": tuple(journal.public for journal in journals),
        "threshold": 2,
        "min_clients": 3,
        "security": "active",
        "suite": "x25519",
        "session": b"session 1",
    }
    return OneShotParams(**(settings | changes))  # type: ignore[arg-type]


def run_one_shot(round: OneShotRound) -> OneShotResult:
    """Run a round of `secagg.testing`, with the helpers that are present."""
    accumulator = round.accumulator()
    with ram_folder() as folder, round.helpers(folder) as helpers:
        for helper in helpers:
            for chunk in accumulator.boxes(helper.number):
                assert helper.check(chunk) == ()
        return open_sum(accumulator, helpers)


def open_sum(accumulator: Accumulator, helpers: Sequence[Helper]) -> OneShotResult:
    """Return the result of reports that these helpers have checked."""
    request = accumulator.request()
    if accumulator.params.quorum:
        request = accumulator.request(helper.reserve(request) for helper in helpers)
    return accumulator.result(helper.open(request) for helper in helpers)


@contextmanager
def ram_folder() -> Iterator[Path]:
    """Yield a new folder, in memory where that is possible."""
    shared = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        yield Path(folder)


@contextmanager
def parties(*arguments: int, **changes: object) -> Iterator[Parties]:
    """Yield parties with journals in memory where there is such a folder."""
    with ram_folder() as folder:
        made = Parties(folder, *arguments, **changes)
        try:
            yield made
        finally:
            made.close()


def registry_for(params: OneShotParams) -> Registry | None:
    """Return a registry of the clients 0 to 29 in the active variant."""
    if not params.active:
        return None
    return Registry({u: make_identity(u).public for u in range(30)})
