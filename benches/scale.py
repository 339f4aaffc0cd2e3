"""Large rounds: ``python -m benches.scale`` prints the table of docs/scale.md.

The server runs in this process, one client in a process of its own and the rest of the clients
in a third, so that memory can be told apart. They take turns: times are each side's own. Every
round's sum is compared with plain integers, and every client's bytes with docs/parameters.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress

import secagg
from benches.ratio import machine
from secagg import graph
from secagg.costs import client_traffic
from secagg.rounds import NEXT
from secagg.trial import RandomVectors, peak_memory

DOC = Path(__file__).parent.parent / "docs" / "scale.md"
CLIP = 8.0
ENCODING = secagg.FixedPoint(CLIP, fractional_bits=10, rounding="nearest")
ALONE = 0
"""The client that has a process to itself; it stays to the end."""


@dataclass(frozen=True)
class Case:
    """One large round; `dropout` is the part that vanishes before its masked input."""

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
    def leaving(self) -> frozenset[int]:
        """Return who vanishes."""
        order = np.random.default_rng(self.clients).permutation(np.arange(1, self.clients))
        return frozenset(order[: int(self.dropout * self.clients)].tolist())


@dataclass(frozen=True)
class Measured:
    """Seconds and bytes; memory is a process's peak beyond what it held before the round."""

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


def serve_clients(connection: Connection, case: Case, ids: list[int]) -> None:
    """Be some of the clients: answer one message at a time, and at the end say what it took."""
    params = case.params
    vectors = RandomVectors(case.clients, case.length, CLIP, 0)
    clients = {u: secagg.Client(u, params) for u in ids}
    before, seconds = peak_memory(), 0.0
    while u_bytes := connection.recv_bytes():
        u, data = int.from_bytes(u_bytes, "little"), connection.recv_bytes()
        client = clients[u]
        vector = vectors[u] if client.phase == "masked_input" else None
        start = time.perf_counter()
        if client.phase == "advertise_keys":
            answer = client.advertise_keys()
        elif client.phase == "share_keys":
            answer = client.share_keys(data)
        elif vector is not None:
            answer = client.masked_input(data, vector)
        else:
            answer = client.unmask(data)
        seconds += time.perf_counter() - start
        del vector
        connection.send_bytes(answer)
    connection.send((seconds, peak_memory() - before))


class Round:
    """One large round under way."""

    def __init__(self, case: Case, progress: Progress) -> None:
        self.case, self.progress = case, progress
        self.up = dict.fromkeys(range(case.clients), 0)
        self.down = dict.fromkeys(range(case.clients), 0)
        self.seed = np.random.default_rng(1).bytes(graph.SEED_BYTES)
        self.u2: list[int] = []
        context = multiprocessing.get_context("spawn")  # a fork would share memory and hide it
        self.links: list[Connection] = []
        self.processes = []
        for ids in ([ALONE], [u for u in range(case.clients) if u != ALONE]):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=serve_clients, args=(theirs, case, ids), daemon=True
            )
            process.start()
            theirs.close()
            self.links.append(ours)
            self.processes.append(process)

    def ask(self, u: int, data: bytes) -> bytes:
        """Hand client u a message and return its answer."""
        link = self.links[u != ALONE]
        link.send_bytes(u.to_bytes(8, "little"))
        link.send_bytes(data)
        answer = link.recv_bytes()
        self.down[u] += len(data)
        self.up[u] += len(answer)
        return answer

    def run(self) -> Measured:
        """Run it, check it, and return what it took."""
        case, leaving = self.case, self.case.leaving
        entropy = iter([self.seed, os.urandom(32)])
        before, seconds = peak_memory(), 0.0
        server = secagg.Server(case.params, entropy=lambda _: next(entropy))
        inbox = dict.fromkeys(range(case.clients), b"")
        for phase in NEXT["semi-honest"]:
            if phase == "masked_input":
                self.u2 = sorted(inbox)
                inbox = {u: data for u, data in inbox.items() if u not in leaving}
            task = self.progress.add_task(f"{case.name}: {phase}", total=len(inbox))
            for u in sorted(inbox):
                answer = self.ask(u, inbox.pop(u))
                start = time.perf_counter()
                server.receive(u, answer)
                seconds += time.perf_counter() - start
                self.progress.advance(task)
            start = time.perf_counter()
            inbox = server.close_round()
            seconds += time.perf_counter() - start
        memory = peak_memory() - before
        result = server.result()
        self.check(result)
        took = []
        for link, process in zip(self.links, self.processes, strict=True):
            link.send_bytes(b"")
            took.append(link.recv())
            process.join()
        return Measured(
            case=case,
            client_seconds=sum(spent for spent, _ in took) / case.clients,
            server_seconds=seconds,
            client_memory=took[0][1],
            server_memory=memory,
            most_bytes_up=max(self.up.values()),
            most_bytes_down=max(self.down.values()),
            survivors=len(result.survivors),
        )

    def check(self, result: secagg.RoundResult) -> None:
        """Compare the sum with plain integers, and each client's bytes with the formula."""
        params, leaving = self.case.params, self.case.leaving
        assert set(result.survivors) == set(range(self.case.clients)) - leaving
        vectors = RandomVectors(self.case.clients, self.case.length, CLIP, 0)
        expected = np.zeros(self.case.length, dtype=np.int64)
        for u in result.survivors:
            expected += ENCODING.encode_integers(vectors[u])[0]
        assert np.array_equal(expected, result.integers), "the sum is not exact"
        drawn = graph.draw(self.u2, params.neighbours, self.seed)
        for u in range(self.case.clients):
            left = sum(v not in leaving for v in drawn.holders[u])
            traffic = list(client_traffic(params, client_id=u, u3=left).values())
            stayed = traffic[:2] if u in leaving else traffic
            assert self.up[u] == sum(phase.up for phase in stayed), u
            assert self.down[u] == sum(phase.down for phase in stayed), u


def table(rows: list[Measured]) -> Iterator[str]:
    """Yield the lines of the table in docs/scale.md."""
    head = "round|n|d|k, t|lost|a client|its memory|its bytes, most|server|its memory"
    yield "| " + " | ".join(head.split("|")) + " |"
    yield "|" + "---|" * 10
    for row in rows:
        case = row.case
        k = "all" if case.neighbours is None else case.neighbours
        yield (
            f"| {case.name} | {case.clients:,} | {case.length:,} | {k}, {case.threshold} "
            f"| {case.dropout:.0%} | {1000 * row.client_seconds:.3g} ms "
            f"| {row.client_memory / 1e6:.0f} MB "
            f"| {row.most_bytes_up:,} up, {row.most_bytes_down:,} down "
            f"| {row.server_seconds:.3g} s | {row.server_memory / 1e6:.0f} MB |"
        )


def main(argv: list[str] | None = None) -> int:
    """Run the rounds that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benches.scale", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(cases())}")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    given = parser.parse_args(argv)
    chosen = [case for name, case in cases().items() if name in (given.names or cases())]
    rows = []
    for case in chosen:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            rows.append(Round(case, progress).run())
    if given.json:
        print(json.dumps({"machine": machine(), "rows": [asdict(row) for row in rows]}))
    else:
        print("  ".join(f"{name} {value}" for name, value in machine().items()))
        print("\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
