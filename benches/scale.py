"""Large rounds: ``python -m benches.scale`` prints the table of docs/scale.md.

The server runs in a process of its own, one client in a second and the rest of the clients in
a third, so that memory can be told apart. They take turns: times are each side's own. Every
round's sum is compared with plain integers, and every client's bytes with docs/parameters.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import secagg
from secagg import graph
from secagg.bench import ss
from secagg.bench.cases import RandomVectors, check_sum, leaving
from secagg.bench.table import Column, Table, as_json, as_markdown
from secagg.bench.timing import machine
from secagg.cli.console import progress
from secagg.protocol.traffic import client_traffic

DOC = Path(__file__).parent.parent / "docs" / "scale.md"
CLIP = 8.0
ENCODING = secagg.FixedPoint(CLIP, fractional_bits=10, rounding="nearest")


@dataclass(frozen=True)
class Case:
    """One large round; `dropout` is the fraction that drops out before its masked input."""

    name: str
    clients: int
    length: int
    neighbours: int | None
    threshold: int
    dropout: float

    @property
    def params(self) -> secagg.RoundParams:
        """Return the parameters of the round."""
        return secagg.RoundParams(
            n_clients=self.clients,
            threshold=self.threshold,
            length=self.length,
            encoding=ENCODING,
            neighbours=self.neighbours,
        )

    @property
    def vectors(self) -> RandomVectors:
        """Return the clients' vectors."""
        return RandomVectors(self.clients, self.length, CLIP, 0)

    @property
    def leaving(self) -> frozenset[int]:
        """Return the ids that drop out."""
        return leaving(self.clients, self.dropout)


@dataclass(frozen=True)
class Measured:
    """Seconds and bytes; memory is a process's peak beyond the library itself."""

    case: Case
    client_seconds: float
    server_seconds: float
    client_memory: int
    server_memory: int
    most_bytes_up: int
    most_bytes_down: int
    survivors: int


def cases() -> dict[str, Case]:
    """Name the rounds of the table."""
    found = graph.recommend(10_000, corrupt=0.05, dropout=0.05)
    return {
        "complete": Case("complete graph", 1000, 100_000, None, 667, 0.3),
        "graph": Case(
            "recommended graph", 10_000, 10_000, found.neighbours, found.threshold, 0.05
        ),
        "long": Case("long vectors", 100, 10_000_000, None, 67, 0.1),
    }


class Drawn:
    """Entropy of which the first draw is given: the server's, for the graph."""

    def __init__(self, first: bytes) -> None:
        self._first = [first]

    def __call__(self, size: int, /) -> bytes:
        """Return it, and from then on the system's."""
        return self._first.pop() if self._first else os.urandom(size)


def run(case: Case, show: ss.Progress) -> Measured:
    """Run a round, check it, and return its costs."""
    seed = np.random.default_rng(1).bytes(graph.SEED_BYTES)
    costs = ss.run_round(case.params, case.vectors.__getitem__, case.leaving, show, Drawn(seed))
    check(case, costs, seed)
    return Measured(
        case=case,
        client_seconds=sum(costs.client_seconds.values()) / case.clients,
        server_seconds=costs.server_seconds,
        client_memory=costs.client_memory,
        server_memory=costs.server_memory,
        most_bytes_up=max(costs.bytes_up.values()),
        most_bytes_down=max(costs.bytes_down.values()),
        survivors=len(costs.result.survivors),
    )


def check(case: Case, costs: ss.Costs, seed: bytes) -> None:
    """Compare the sum with plain integers, and each client's bytes with the formula."""
    params, gone = case.params, case.leaving
    assert set(costs.result.survivors) == set(range(case.clients)) - gone
    check_sum(costs.result.integers, costs.result.survivors, case.vectors.__getitem__, ENCODING)
    drawn = graph.draw(costs.u2, params.neighbours, seed)
    for u in range(case.clients):
        left = sum(v not in gone for v in drawn.holders[u])
        traffic = list(client_traffic(params, client_id=u, u3=left).values())
        stayed = traffic[:2] if u in gone else traffic
        assert costs.bytes_up[u] == sum(phase.up for phase in stayed), u
        assert costs.bytes_down[u] == sum(phase.down for phase in stayed), u


COLUMNS = (
    *map(Column, ("round", "n", "d", "k, t", "lost")),
    Column("a client", lambda seconds: f"{1000 * seconds:.3g} ms"),
    Column("its memory", lambda size: f"{size / 1e6:.0f} MB"),
    Column("its bytes, most"),
    Column("server", lambda seconds: f"{seconds:.3g} s"),
    Column("its memory", lambda size: f"{size / 1e6:.0f} MB"),
)


def table(rows: Iterable[Measured]) -> Table:
    """Return the table of docs/scale.md."""
    lines = []
    for row in rows:
        case = row.case
        k = "all" if case.neighbours is None else case.neighbours
        shape = (case.name, case.clients, case.length, f"{k}, {case.threshold}")
        traffic = f"{row.most_bytes_up:,} up, {row.most_bytes_down:,} down"
        client = (row.client_seconds, row.client_memory, traffic)
        server = (row.server_seconds, row.server_memory)
        lines.append((*shape, f"{case.dropout:.0%}", *client, *server))
    return Table(columns=COLUMNS, rows=lines)


def main(argv: list[str] | None = None) -> int:
    """Run the rounds that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benches.scale", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(cases())}")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    given = parser.parse_args(argv)
    rows = []
    for name, case in cases().items():
        if name in (given.names or cases()):
            with progress("clients", case.clients) as show:
                rows.append(run(case, show))
    if given.json:
        print(as_json({"machine": machine(), "rows": rows}))
    else:
        print("  ".join(f"{name} {value}" for name, value in machine().items()))
        print(as_markdown(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
