"""Print every ratio, or with ``--json`` write them for a program to read."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict

from benches import primitives, training, whole_round
from benches.ratio import Row, table
from secagg.bench.timing import machine

ROWS: list[Callable[[], Iterable[Row]]] = [*primitives.ROWS, *whole_round.ROWS, *training.ROWS]
"""What is measured, in the order of the table: each function yields rows."""


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks and print them."""
    parser = argparse.ArgumentParser(prog="python -m benches", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    as_json: bool = parser.parse_args(argv).json
    rows = [row for function in ROWS for row in function()]
    if as_json:
        measured = [{**asdict(row), "ratio": row.ratio} for row in rows]
        print(json.dumps({"machine": machine(), "rows": measured}, indent=2))
    else:
        print("  ".join(f"{name} {value}" for name, value in machine().items()))
        print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
