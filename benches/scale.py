"""Large rounds: ``python -m benches.scale`` prints the tables of docs/scale.md.

The server, one client, and all other clients run in a process each, so memory can be measured
apart. They take turns, so times are each side's own. Every round's sum is compared with plain
integers, and every client's bytes with docs/parameters.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benches import one_shot_scale, recommender_scale
from secagg import RoundParams, graph
from secagg.bench import ss
from secagg.bench.cases import CLIP, RandomVectors, check_sum, leaving, round_params
from secagg.cli.output import progress
from secagg.encoding import FixedPoint
from secagg.kit.table import Column, Table, as_json, as_markdown
from secagg.kit.timing import INTERRUPTED, interruptible, machine
from secagg.protocol import ClientPolicy
from secagg.protocol.suites import SuiteName
from secagg.protocol.traffic import client_traffic

DOC = Path(__file__).parent.parent / "docs" / "scale.md"
ENCODING = FixedPoint(CLIP, fractional_bits=10, rounding="nearest")
POLICY = ClientPolicy(corrupt=0.05, dropout=0.05)  # smaller fractions than the default's


@dataclass(frozen=True)
class Case:
    """Settings of a large round; a fraction `dropout` drops out before the masked input."""

    name: str
    clients: int
    length: int
    neighbours: int | None
    threshold: int
    dropout: float
    suite: SuiteName = "x25519"

    @property
    def params(self) -> RoundParams:
        """Parameters of the round."""
        k, t = self.neighbours, self.threshold
        return round_params(self.clients, t, k, self.length, ENCODING, suite=self.suite)


def cases() -> dict[str, Case]:
    """Return the rounds of the table by name."""
    k, t = graph.recommend(10_000, POLICY.corrupt, POLICY.dropout)
    return {
        "complete": Case("complete graph", 1000, 100_000, None, 667, 0.3),
        "graph": Case("recommended graph", 10_000, 10_000, k, t, 0.05),
        "long": Case("long vectors", 100, 10_000_000, None, 67, 0.1),
        "hybrid": Case("long vectors, hybrid", 100, 10_000_000, None, 67, 0.1, "hybrid"),
    }


def run(case: Case, show: ss.Progress) -> dict[str, Any]:
    """Run and check a round; return its times, bytes, and peak memory of each process."""
    vectors = RandomVectors(case.clients, case.length, CLIP, 0).__getitem__
    gone = leaving(case.clients, case.dropout)
    entropy = np.random.default_rng(1).bytes  # its first draw is the seed of the graph
    costs = ss.run_round(case.params, vectors, gone, show, entropy, POLICY)
    check_sum(costs.result.integers, costs.result.survivors, vectors, ENCODING)
    check_bytes(case, costs)
    return {
        "case": case,
        "client_seconds": sum(costs.client_seconds.values()) / case.clients,
        "server_seconds": costs.server_seconds,
        "client_memory": costs.client_memory,
        "server_memory": costs.server_memory,
        "most_bytes_up": max(costs.bytes_up.values()),
        "most_bytes_down": max(costs.bytes_down.values()),
        "survivors": len(costs.result.survivors),
    }


def check_bytes(case: Case, costs: ss.Costs) -> None:
    """Assert that survivors and each client's bytes are as docs/parameters.md predicts."""
    params, gone = case.params, leaving(case.clients, case.dropout)
    assert set(costs.result.survivors) == set(range(case.clients)) - gone
    seed = np.random.default_rng(1).bytes(graph.SEED_BYTES)
    drawn = graph.draw(costs.u2, params.neighbours, seed)
    for u in range(case.clients):
        left = sum(v not in gone for v in drawn.holders[u])
        traffic = list(client_traffic(params, client_id=u, u3=left).values())
        stayed = traffic[:2] if u in gone else traffic
        assert costs.bytes_up[u] == sum(phase.up for phase in stayed), u
        assert costs.bytes_down[u] == sum(phase.down for phase in stayed), u


COLUMNS = (
    *map(Column, ("round", "n", "d", "k, t", "dropout")),
    Column("a client", lambda seconds: f"{1000 * seconds:.3g} ms"),
    Column("its memory", lambda size: f"{size / 1e6:.0f} MB"),
    Column("its bytes, most"),
    Column("server", lambda seconds: f"{seconds:.3g} s"),
    Column("its memory", lambda size: f"{size / 1e6:.0f} MB"),
)


def table(rows: Iterable[dict[str, Any]]) -> Table:
    """Return the table of docs/scale.md."""
    lines = []
    for row in rows:
        case = row["case"]
        k = "all" if case.neighbours is None else case.neighbours
        shape = (case.name, case.clients, case.length, f"{k}, {case.threshold}")
        traffic = f"{row['most_bytes_up']:,} up, {row['most_bytes_down']:,} down"
        client = (row["client_seconds"], row["client_memory"], traffic)
        server = (row["server_seconds"], row["server_memory"])
        lines.append((*shape, f"{case.dropout:.0%}", *client, *server))
    return Table(columns=COLUMNS, rows=lines)


def main(argv: list[str] | None = None) -> int:
    """Run the named rounds, or all rounds of `cases`, and print their figures."""
    parser = argparse.ArgumentParser(prog="python -m benches.scale", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        help=f"names of rounds: {', '.join(cases())}, or {one_shot_scale.NAME} or "
        f"{recommender_scale.NAME}, which run long; all but these two by default",
    )
    parser.add_argument("--users", type=int, default=100_000, help="of recommenders")
    parser.add_argument("--items", type=int, default=20_000, help="of recommenders")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args(argv)
    rows, sums, trained = [], [], []
    try:
        with interruptible():
            for name, case in cases().items():
                if name in (given.names or cases()):
                    with progress("clients", case.clients) as show:
                        rows.append(run(case, show))
            if one_shot_scale.NAME in given.names:
                for large in one_shot_scale.cases():
                    with progress("clients", large.clients) as show:
                        sums.append(one_shot_scale.run(large, show))
            if recommender_scale.NAME in given.names:
                for model in recommender_scale.cases(given.users, given.items):
                    with progress("users", given.users) as show:
                        trained.append(recommender_scale.run(model, show))
        code = 0
    except KeyboardInterrupt:
        print("interrupted: the rounds so far", file=sys.stderr)
        code = INTERRUPTED
    if given.json:
        print(
            as_json(
                {"machine": machine(), "rows": rows, "one_shot": sums, "recommenders": trained}
            )
        )
        return code
    print("  ".join(f"{name} {value}" for name, value in machine().items()))
    for part in (
        table(rows),
        one_shot_scale.table(sums),
        recommender_scale.table(trained),
    ):
        if part.rows:
            print(as_markdown(part))
    return code


if __name__ == "__main__":
    sys.exit(main())
