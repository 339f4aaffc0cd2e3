"""Command line of the load run; see `benches.http_load`."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benches.http_load.driver import HELPERS, drive
from benches.http_load.load import Load
from benches.http_load.report import document, text
from secagg.protocol.suites import NAMES


def main(argv: Sequence[str] | None = None) -> None:
    """Run a load and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m benches.http_load", description=__doc__)
    parser.add_argument("--kind", choices=HELPERS, default="round")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--length", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--suite", choices=NAMES, default="x25519", help="suite of rounds")
    parser.add_argument("--drop-out", type=float, default=0.1)
    parser.add_argument("--garbage", type=float, default=0.01)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--silent-every", type=int, default=25)
    parser.add_argument("--deadline", type=float, default=30.0)
    parser.add_argument("--minutes", type=float, default=1e6, help="no round begins later")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--folder", type=Path, help="folder to keep; a temporary one if none")
    chosen = vars(parser.parse_args(argv))
    target, folder = chosen.pop("json"), chosen.pop("folder")
    until = time.time() + 60 * chosen.pop("minutes")
    load = Load(**chosen, until=until)
    with tempfile.TemporaryDirectory() as temporary:
        where = folder or Path(temporary)
        where.mkdir(parents=True, exist_ok=True)
        figures = document(load, asyncio.run(drive(load, where)))
    if target:
        target.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    print(text(figures))


if __name__ == "__main__":
    main()
