"""Command line of the collection runs; see `benches.collection`."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from benches.collection.driver import run
from benches.collection.load import Load
from benches.collection.report import table
from secagg.kit.table import as_json, as_markdown
from secagg.kit.timing import machine


def main(argv: Sequence[str] | None = None) -> None:
    """Run collections and print their figures."""
    parser = argparse.ArgumentParser(prog="python -m benches.collection", description=__doc__)
    parser.add_argument("clients", type=int, nargs="+", help="reports of each run")
    for one in fields(Load):
        if one.name not in ("clients", "suite"):
            kind = int if one.type == "int" else float
            parser.add_argument(f"--{one.name}", type=kind, default=one.default)
    parser.add_argument("--suite", choices=("hybrid", "x25519"), default="hybrid")
    parser.add_argument("--faults", action="store_true", help="kills, duplicates and garbage")
    parser.add_argument("--folder", type=Path, help="folder for temporary files, on a disk")
    parser.add_argument("--cache", type=Path, help="folder that keeps the clients' public keys")
    parser.add_argument("--json", type=Path, help="file for the figures")
    chosen = vars(parser.parse_args(argv))
    target, folder, cache = (chosen.pop(name) for name in ("json", "folder", "cache"))
    sizes, faults = chosen.pop("clients"), chosen.pop("faults")
    if faults:
        chosen |= {"duplicates": 0.05, "garbage": 0.01, "serves": 2, "works": 2}
        chosen["kills"] = chosen["kills"] or 10
    for one in filter(None, (folder, cache)):
        one.mkdir(parents=True, exist_ok=True)
    rows = []
    for clients in sizes:
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as temporary:
            where = Path(temporary)
            where.chmod(0o711)  # the user of the database has a folder below
            rows.append(run(Load(clients=clients, **chosen), where, cache))
        if target:
            target.write_text(as_json({"machine": machine(), "rows": rows}), encoding="utf-8")
    print("  ".join(f"{name} {value}" for name, value in machine().items()))
    print(as_markdown(table(rows)))


if __name__ == "__main__":
    main()
