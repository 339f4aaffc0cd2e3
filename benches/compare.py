"""SS against HE: ``python -m benches.compare`` measures all of it anew for docs/ss-or-he.md.

It takes about seven minutes, writes the tables into the page and the picture beside it, and
prints the table of the README. The prose of the page quotes the tables: read it again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from secagg.compare.picture import draw
from secagg.compare.rows import Case, Row
from secagg.compare.run import CLIENTS, LENGTHS, Comparison, compare, families, grid
from secagg.compare.save import prepare
from secagg.compare.table import FLOAT_HEADS, HEADS, cells, float_cells, notes, settings

DOC = Path(__file__).parent.parent / "docs" / "ss-or-he.md"
PICTURE = DOC.with_suffix(".png")
OUT = Path("runs/compare")
BUDGET = 5.0
MOVIELENS = Case(943, 33_640)
"""Its users, and 20 factors for each of 1,682 films."""
SHOWN = (Case(100, 1000), Case(100, 100_000), Case(500, 100_000), MOVIELENS)


def tables(comparison: Comparison) -> dict[str, str]:
    """Return what goes between the marks of the page."""
    parts = {
        "per float": markdown(FLOAT_HEADS, map(float_cells, comparison.per_float)),
        "machine": "\n".join(notes(comparison)),
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
    rows = [heads, ["---"] * len(heads), *lines]
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


def main() -> int:
    """Measure, and write the page."""
    save = prepare(OUT)
    cases = [*grid(CLIENTS, LENGTHS), MOVIELENS]
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("")

        def show(what: str, done: int, of: int) -> None:
            progress.update(task, description=what, completed=done, total=of)

        comparison = compare(families("ss,he"), cases, show, budget=BUDGET)
    save(comparison)
    parts = tables(comparison)
    DOC.write_text(written(DOC.read_text(encoding="utf-8"), parts), encoding="utf-8")
    draw(comparison.rows, PICTURE)
    print(parts[f"{MOVIELENS.clients} x {MOVIELENS.length}"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
