"""SS against HE: measures all that docs/ss-or-he.md shows, and lays out its tables.

It takes some minutes on a machine where nothing else is running. The prose of the page says
what the tables say: read it again after ``--write``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from secagg.bench.cases import Case, Figure, Row
from secagg.bench.report import case_table, notes, per_float_table, saving
from secagg.bench.run import BUDGET, CLIENTS, LENGTHS, Comparison, compare, families, grid
from secagg.bench.table import Column, Table, as_markdown, times, write_atomically
from secagg.bench.timing import INTERRUPTED, interrupted_once
from secagg.cli.console import progress

DOC = Path(__file__).parent.parent / "docs" / "ss-or-he.md"
PICTURE = DOC.with_suffix(".png")
DOCUMENT = DOC.with_suffix(".json")
EXAMPLES = """
examples:
  python -m benches.compare            measure, and print the tables as Markdown
  python -m benches.compare --write    and put them into docs/ss-or-he.md, with all cases in
                                       docs/ss-or-he.json and the picture beside it
"""
MOVIELENS = Case(943, 33_640)
"""Its users, and 20 factors for each of 1,682 films."""
SHOWN = (Case(100, 1000), Case(100, 100_000), Case(500, 100_000), MOVIELENS)


def _client(row: Row) -> Figure:
    return row.client.seconds


def _server(row: Row) -> Figure:
    return row.server.seconds


def _holder(row: Row) -> Figure | None:
    return None if row.holder is None else row.holder.seconds


def _central(row: Row) -> Figure:
    return _server(row) if row.holder is None else _server(row) + row.holder.seconds


def _traffic(row: Row) -> Figure:
    return row.bytes_up + row.bytes_down


@dataclass(frozen=True)
class Ratio:
    """An amount of one system over the same of another."""

    text: str
    above: str
    below: str
    amount: Callable[[Row], Figure | None]


RATIOS = (
    Ratio("client's time: HE ÷ SS", "he", "ss", _client),
    Ratio("client's bytes, up and down: HE ÷ SS", "he", "ss", _traffic),
    Ratio("HE's server and key holder ÷ SS's server", "he", "ss", _central),
    Ratio("client's time: shared key ÷ HE", "he-shared", "he", _client),
    Ratio("two trustees ÷ key holder", "he-threshold", "he", _holder),
    Ratio("client's time: phe, packed ÷ HE", "phe-packed", "he", _client),
    Ratio("key holder's: phe, packed ÷ HE", "phe-packed", "he", _holder),
    Ratio("server's: phe, packed ÷ HE", "phe-packed", "he", _server),
    Ratio("client's time: phe, per float ÷ packed", "phe-float", "phe-packed", _client),
    Ratio("key holder's: phe, per float ÷ packed", "phe-float", "phe-packed", _holder),
    Ratio("server's: phe, per float ÷ packed", "phe-float", "phe-packed", _server),
)


def ratio_table(rows: Sequence[Row]) -> Table:
    """Return a line for each ratio, with the least and the most at each length, and their n."""
    lengths = sorted({row.case.length for row in rows})
    columns = [Column(""), *(Column(f"d = {length:,}") for length in lengths)]
    lines = [[one.text, *(_ends(one, rows, length) for length in lengths)] for one in RATIOS]
    return Table(columns=columns, rows=lines)


def _ends(ratio: Ratio, rows: Iterable[Row], length: int) -> str | None:
    amounts = {
        (row.system.name, row.case.clients): ratio.amount(row)
        for row in rows
        if row.case.length == length
    }
    found = []
    for (name, n), above in amounts.items():
        below = amounts.get((ratio.below, n))
        if name == ratio.above and above is not None and below is not None:
            mark = "" if above.measured and below.measured else "~"
            found.append((above.value / below.value, n, mark))
    ends = sorted({min(found), max(found)}) if found else []
    return " to ".join(f"{mark}{times(value)} (n = {n})" for value, n, mark in ends) or None


def tables(comparison: Comparison) -> dict[str, str]:
    """Return the text between the marks of the page."""
    parts = {
        "per float": as_markdown(per_float_table(comparison.per_float)),
        "ratios": as_markdown(ratio_table(comparison.rows)),
        "notes": "\n".join(f"- {note}" for note in notes(comparison)),
    }
    for case in SHOWN:
        rows = [row for row in comparison.rows if row.case == case]
        parts[f"{case.clients} x {case.length}"] = as_markdown(case_table(case, rows))
    return parts


def written(page: str, parts: dict[str, str]) -> str:
    """Return the page with its tables replaced."""
    for name, text in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, begun, rest = page.partition(begin)
        _, ended, after = rest.partition(end)
        assert begun, f"{DOC.name} has no place for {name}"
        assert ended, f"{DOC.name} has no end of {name}"
        page = f"{before}{begin}{text}\n{end}{after}"
    return page


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and write the page if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.compare",
        description="Measure secret sharing against homomorphic encryption for the docs.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--write", action="store_true", help="rewrite docs/ss-or-he.md, .json and .png"
    )
    write = parser.parse_args(arguments).write
    save = saving(DOCUMENT, PICTURE) if write else None
    cases = [*grid(CLIENTS, LENGTHS), MOVIELENS]
    with interrupted_once():
        with progress("cases done", len(cases)) as show:
            comparison = compare(families("ss,he"), cases, show, budget=BUDGET)
        if not comparison.complete:
            print("interrupted: nothing is written", file=sys.stderr)
            return INTERRUPTED
        parts = tables(comparison)
        for name, text in parts.items():
            print(f"## {name}\n\n{text}\n")
        if save is not None:
            save(comparison)
            write_atomically(DOC, written(DOC.read_text(encoding="utf-8"), parts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
