"""SS against HE: measures all that docs/ss-or-he.md shows, and lays out its tables.

It takes some minutes on a machine where nothing else is running. The prose of the page says
what the tables say: read it again after ``--write``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benches import compare_ratios as ratios
from secagg.bench.rows import Case, Row
from secagg.bench.run import BUDGET, CLIENTS, LENGTHS, Comparison, compare, families, grid
from secagg.bench.save import saving
from secagg.bench.table import FLOAT_HEADS, HEADS, cells, float_cells, notes, settings

DOC = Path(__file__).parent.parent / "docs" / "ss-or-he.md"
PICTURE = DOC.with_suffix(".png")
DOCUMENT = DOC.with_suffix(".json")
EXAMPLES = """
examples:
  python -m benches.compare            measure, and print the tables as Markdown
  python -m benches.compare --write    and put them into docs/ss-or-he.md, with all cases in
                                       docs/ss-or-he.json and the picture beside it
"""
INTERRUPTED = 130
MOVIELENS = Case(943, 33_640)
"""Its users, and 20 factors for each of 1,682 films."""
SHOWN = (Case(100, 1000), Case(100, 100_000), Case(500, 100_000), MOVIELENS)


def tables(comparison: Comparison) -> dict[str, str]:
    """Return what goes between the marks of the page."""
    parts = {
        "per float": markdown(FLOAT_HEADS, map(float_cells, comparison.per_float)),
        "ratios": markdown(ratios.heads(comparison.rows), ratios.lines(comparison.rows)),
        "notes": "\n".join(f"- {note}" for note in notes(comparison)),
    }
    for case in SHOWN:
        rows = [row for row in comparison.rows if row.case == case]
        parts[f"{case.clients} x {case.length}"] = whole_sum(rows)
    return parts


def whole_sum(rows: Sequence[Row]) -> str:
    """Return the table of a case."""
    return markdown(HEADS, map(cells, rows)) + f"\n\n{settings(rows)}"


def markdown(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Lay out a table."""
    rows = [[head.replace("\n", " ") for head in heads], ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


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
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("")

        def show(what: str, done: int, of: int) -> None:
            progress.update(task, description=what, completed=done, total=of)

        comparison = compare(families("ss,he"), cases, show, budget=BUDGET)
    if not comparison.complete:
        print("interrupted: nothing is written", file=sys.stderr)
        return INTERRUPTED
    parts = tables(comparison)
    for name, text in parts.items():
        print(f"## {name}\n\n{text}\n")
    if save is not None:
        save(comparison)
        DOC.write_text(written(DOC.read_text(encoding="utf-8"), parts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
