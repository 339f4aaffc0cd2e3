"""Print every ratio, or with ``--json`` write them for a program to read."""

from __future__ import annotations

import argparse
import sys

from benches import primitives, training, whole_round
from secagg.bench.table import Column, Table, as_json, as_text
from secagg.bench.timing import machine


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"


COLUMNS = (
    Column(""),
    Column("secagg", _milliseconds),
    Column("baseline", _milliseconds),
    Column("ratio", "{:.1f}×".format),
    Column("", left=True),
)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks and print them."""
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    as_document: bool = parser.parse_args(argv).json
    functions = [*primitives.ROWS, *whole_round.ROWS, *training.ROWS]
    rows = [row for function in functions for row in function()]
    if as_document:
        print(as_json({"machine": machine(), "rows": rows}))
    else:
        cells = [(r.name, r.seconds, r.baseline_seconds, r.ratio, r.baseline) for r in rows]
        print("  ".join(f"{name} {value}" for name, value in machine().items()))
        print(as_text(Table(columns=COLUMNS, rows=cells)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
