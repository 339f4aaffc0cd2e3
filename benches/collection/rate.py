"""Rates of storing: ``python -m benches.collection.rate`` compares with a bare endpoint.

One ``secagg collect serve`` and `benches.collection.endpoint` get the same reports by turns,
from a process that reads the reports from a file, into the same empty tables. ``--copy``
measures what PostgreSQL takes of as many bytes by COPY, in a single transaction.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from benches.collection.driver import show
from benches.collection.generator import Maker, fetch
from benches.collection.load import Load
from benches.collection.loader import PARAMS, REPORTS
from benches.collection.parties import Parties, free_port
from benches.collection.programs import ROOT, Program
from secagg.kit.timing import machine


def compare(load: Load, folder: Path, repeats: int) -> dict[str, list[float]]:
    """Return the reports a second of both servers in all runs, without a first run of each."""
    rates: dict[str, list[float]] = {"secagg collect serve": [], "bare endpoint": []}
    with Parties(load, folder) as parties:
        parties.works.clear()
        parties.generators.clear()
        parties.start()
        params = fetch(parties.ports[0])
        (folder / PARAMS).write_bytes(params.to_bytes())
        with (folder / REPORTS).open("wb") as file:
            file.writelines(body for _, body in Maker(load, 0, params))
        ports = [parties.ports[0], free_port()]
        words = "-m", "benches.collection.endpoint", parties.database.url, ports[1]
        bare = Program("endpoint", [sys.executable, *words], folder, "ready")
        parties.callback(bare.kill)
        bare.start()
        bare.await_ready()
        for turn in range(1 + repeats):
            for port, found in zip(ports, rates.values(), strict=True):
                with parties.database.connect() as connection:
                    connection.execute("TRUNCATE secagg_clients, secagg_reports_0")
                    connection.execute("UPDATE secagg_batches SET reports = 0")
                    connection.execute("CHECKPOINT")
                rate = load.clients / _send(folder, port)
                show(f"port {port}: {rate:.0f} reports/s")
                if turn:
                    found.append(rate)
    return rates


def copy(load: Load, folder: Path, size: int) -> float:
    """Return the bytes a second of a COPY of as many rows of `size` bytes into a new table."""
    parties = Parties(load, folder)
    with parties:
        parties.callback(parties.database.stop)
        parties.database.start()
        content = np.random.default_rng(0).bytes(size)
        with parties.database.connect() as connection:
            connection.execute("CREATE TABLE raw (place BIGINT PRIMARY KEY, report BYTEA)")
            connection.execute("CHECKPOINT")
            began = time.monotonic()
            with (
                connection.cursor() as cursor,
                cursor.copy("COPY raw FROM STDIN (FORMAT BINARY)") as stream,
            ):
                stream.set_types(("bigint", "bytea"))
                for at in range(load.clients):
                    stream.write_row((at, content))
            return load.clients * size / (time.monotonic() - began)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print rates."""
    parser = argparse.ArgumentParser(prog="python -m benches.collection.rate")
    parser.add_argument("--clients", type=int, default=20_000)
    parser.add_argument("--length", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--copy", type=int, metavar="BYTES", help="bytes of a row to copy")
    parser.add_argument("--folder", type=Path, help="folder for temporary files, on a disk")
    given = parser.parse_args(argv)
    load = Load(clients=given.clients, length=given.length, generators=1)
    print("  ".join(f"{name} {value}" for name, value in machine().items()))
    with tempfile.TemporaryDirectory(dir=given.folder, ignore_cleanup_errors=True) as temporary:
        where = Path(temporary)
        where.chmod(0o711)  # the user of the database has a folder below
        if given.copy:
            print(f"COPY: {copy(load, where, given.copy) / 1e6:.1f} MB/s")
            return
        rates = compare(load, where, given.repeats)
    for name, found in rates.items():
        print(
            f"{name}: median {median(found):,.0f} reports/s of",
            *(f"{one:.0f}" for one in found),
        )
    ours, bare = map(median, rates.values())
    print(f"ratio: {ours / bare:.2f}")


def _send(folder: Path, port: int) -> float:
    """Return the seconds of a loader."""
    command = [sys.executable, "-m", "benches.collection.loader", str(folder), str(port)]
    out = subprocess.run(  # noqa: S603
        command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ).stdout
    return float(out)


if __name__ == "__main__":
    main()
