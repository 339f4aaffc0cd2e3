"""Command line of the costs: tables on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from benches.speed import releases
from benches.speed.releases import PRESENT
from benches.version4 import __doc__ as described
from benches.version4 import primitives
from benches.version4.primitives import Counts
from secagg import FixedPoint, RoundParams
from secagg.cli.output import progress
from secagg.errors import SecAggError
from secagg.kit.table import Column, Table, as_json, as_markdown, duration, volume
from secagg.kit.timing import machine

VERSION_3 = "19dbe36b"
"""Last commit of version 3 of the protocol."""
WANTED = 1.3
"""Largest ratio of what a part adds to the time of the part's primitives."""


@dataclass(frozen=True)
class Case:
    """Round to measure; see `worker.costs`."""

    clients: int
    neighbours: int | None
    threshold: int
    length: int
    dropped: int
    active: bool
    suite: str | None

    @property
    def params(self) -> RoundParams:
        """Parameters of the round in version 4."""
        return RoundParams(
            n_clients=self.clients,
            threshold=self.threshold,
            length=self.length,
            encoding=FixedPoint(8.0),
            neighbours=self.neighbours,
            session=b"costs" if self.active else b"",
            security="active" if self.active else "semi-honest",
            suite="hybrid" if self.suite == "hybrid" else "x25519",
        )


def cases(graph: tuple[int, int | None], length: int) -> list[Case]:
    """Return the rounds on a graph: version 3, then version 4 by variant and suite."""
    n, k = graph
    holders = n if k is None else k + 1
    found = []
    for active in (False, True) if k is None else (False,):
        # above two thirds, which both variants accept
        shape = (n, k, 2 * holders // 3 + 1, length, n // 10, active)
        found += [Case(*shape, suite) for suite in (None, "x25519", "hybrid")]
    return found


def run(case: Case) -> dict[str, float]:
    """Run a round in a process with the code of its version, and return the costs."""
    place = releases.folder(PRESENT if case.suite else VERSION_3)
    paths = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "benches.version4.worker"],
        cwd=place,
        env={**os.environ, **settings},
        input=json.dumps(asdict(case)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SecAggError(f"{case}: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, float] = json.loads(done.stdout)
    code = str(found.pop("code"))
    if not Path(code).is_relative_to(place):
        raise SecAggError(f"{case} ran the code of {code}: please report this")
    return found


def measure(chosen: Sequence[Case], repeats: int) -> dict[Case, dict[str, float]]:
    """Return the costs of rounds, the median of runs in turn."""
    runs: dict[Case, list[dict[str, float]]] = {case: [] for case in chosen}
    with progress("rounds", repeats * len(chosen)) as show:
        for turn in range(repeats):
            for at, case in enumerate(chosen):
                runs[case].append(run(case))
                show("rounds", turn * len(chosen) + at + 1, repeats * len(chosen))
    return {
        case: {name: median(one[name] for one in found) for name in found[0]}
        for case, found in runs.items()
    }


def costs_table(measured: Mapping[Case, Mapping[str, float]]) -> Table:
    """Return the costs of each round."""
    columns = [Column("round"), Column("version", left=True), Column("variant", left=True)]
    columns += [Column("a client", duration), Column("server", duration)]
    columns += [Column("sent", volume), Column("received", volume)]
    rows = [
        [
            f"n = {case.clients}, k = {case.neighbours or 'all'}",
            f"4, {case.suite}" if case.suite else "3",
            "active" if case.active else "semi-honest",
            *(found[name] for name in ("client", "server", "up", "down")),
        ]
        for case, found in measured.items()
    ]
    return Table(columns=columns, rows=rows)


def added_table(
    measured: Mapping[Case, Mapping[str, float]], known: Mapping[str, float]
) -> Table:
    """Return what suite hybrid and blame add, beside the time of their primitives."""
    by_place = {
        (case.clients, case.neighbours, case.active, case.suite): case for case in measured
    }
    rows: list[list[str | float]] = []
    for (n, k, active, suite), case in by_place.items():
        if suite is None:
            continue
        where = f"n = {n}, k = {k or 'all'}, "
        parts: list[tuple[str, list[Case], list[Case], tuple[Counts, Counts]]] = []
        if suite == "hybrid":
            other = [by_place[n, k, active, "x25519"]]
            counts = primitives.of_hybrid(case.params, case.dropped)
            parts.append(
                (f"hybrid, {'active' if active else 'semi-honest'}", other, [], counts)
            )
        if active:
            # signatures of keys and of the survivors were in version 3, too
            other = [by_place[n, k, False, suite], by_place[n, k, True, None]]
            counts = primitives.of_blame(case.params, case.dropped)
            parts.append((f"blame, {suite}", other, [by_place[n, k, False, None]], counts))
        for name, without, back, counts in parts:
            for party, own in zip(("client", "server"), counts, strict=True):
                added = measured[case][party] - sum(measured[one][party] for one in without)
                added += sum(measured[one][party] for one in back)
                needed = primitives.seconds(own, known)
                rows.append([f"{where}{name}", party, added, needed, added / needed])
    columns = [Column("part"), Column("party", left=True), Column("adds", duration)]
    columns += [Column("its primitives", duration), Column("ratio", "{:.2f}".format)]
    notes = [
        f"A part is to add at most {WANTED:g} times its primitives to a client.",
        "The server also moves the bytes, which no primitive counts.",
    ]
    return Table(columns=columns, rows=rows, notes=notes)


def prices_table(known: Mapping[str, float]) -> Table:
    """Return the seconds of each primitive."""
    columns = [Column("primitive"), Column("time", duration)]
    return Table(columns=columns, rows=[[name, price] for name, price in known.items()])


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benches.version4", description=described)
    parser.add_argument("--clients", type=int, default=100, help="n of the complete graph")
    parser.add_argument(
        "--sparse", type=int, default=200, help="n of the sparse graph, 0: none"
    )
    parser.add_argument("--neighbours", type=int, default=60, help="k of the sparse graph")
    parser.add_argument("--length", type=int, default=1000, help="elements of a vector")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without-version-3", action="store_true", help="no ratio of blame")
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    given = parser.parse_args(argv)
    graphs = [(given.clients, None)] + [(given.sparse, given.neighbours)] * bool(given.sparse)
    chosen = [case for graph in graphs for case in cases(graph, given.length)]
    if given.without_version_3:
        chosen = [case for case in chosen if case.suite]
    known = primitives.prices()
    measured = measure(chosen, given.repeats)
    if given.json:
        rows = [asdict(case) | found for case, found in measured.items()]
        print(as_json({"machine": machine(), "primitives": known, "rounds": rows}))
        return
    print("  ".join(f"{name} {value}" for name, value in machine().items()))
    tables = [costs_table(measured), prices_table(known)]
    if not given.without_version_3:
        tables.insert(1, added_table(measured, known))
    for table in tables:
        print(f"\n{as_markdown(table)}")


if __name__ == "__main__":
    main()
