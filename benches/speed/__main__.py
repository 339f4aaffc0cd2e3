"""Command line of the ratios and fits: tables on stdout, progress and errors on stderr."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benches.speed import __doc__ as described
from benches.speed.rows import ROWS, Row
from benches.speed.runner import known_tiers, measure
from benches.speed.scaling import SERIES, grow
from benches.speed.show import GROWTH, Run, as_text, shown
from secagg import _fast
from secagg._files import replace_file
from secagg.cli.output import progress
from secagg.errors import SecAggError
from secagg.kit.table import as_json
from secagg.kit.timing import INTERRUPTED, interruptible, undisturbed

DOCS = Path(__file__).parents[2] / "docs" / "speed"
SCALING = "scaling"
GROWN = 3  # most repetitions of a series
_EXAMPLES = f"""\
examples:
  python -m benches.speed                         # all rows and series
  python -m benches.speed --row masks --row {SCALING}
  python -m benches.speed --tier all --out runs/speed
  python -m benches.speed --quick                 # a trial that everything runs: no result
  python -m benches.speed --tier all --write      # docs/speed, on an idle machine

rows: {", ".join(row.name for row in ROWS)}, {SCALING}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; after Ctrl-C, print what was measured. A failed row gives code 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.speed",
        description=described,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [*(row.name for row in ROWS), SCALING]
    parser.add_argument(
        "--row",
        action="append",
        metavar="NAME",
        choices=names,
        help="only this row; repeatable",
    )
    parser.add_argument("--tier", help="tiers, separated by commas, or all: the fastest")
    parser.add_argument("--repeats", type=int, default=5, help="repetitions, ≥ 1: 5")
    parser.add_argument("--quick", action="store_true", help="a trial on small sizes")
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    parser.add_argument("--out", type=Path, help="folder for speed.json, tables and picture")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/speed")
    given = parser.parse_args(argv)
    if given.repeats < 1:
        parser.error(f"--repeats is {given.repeats}; take 1 or more")
    if given.write and (given.quick or given.row):
        parser.error("--write takes a whole run, without --quick and --row")
    try:
        tiers = known_tiers(given.tier, _fast.TIERS)
    except SecAggError as error:
        parser.error(str(error))
    repeats = 1 if given.quick else given.repeats
    run = Run(given.quick, repeats, os.getloadavg()[0])
    try:
        with interruptible():
            _measure(run, given.row or names, tiers)
        run.complete = True
    except KeyboardInterrupt:
        print("interrupted: the rows so far", file=sys.stderr)
    with undisturbed():
        text = as_json(run)
        if given.out is not None:
            _save(run, given.out)
            replace_file(given.out / "speed.json", f"{text}\n")
        if given.write and run.complete and not run.failed:
            _save(run, DOCS)
        print(text if given.json else as_text(run))
    return (1 if run.failed else 0) if run.complete else INTERRUPTED


def _measure(run: Run, names: Sequence[str], tiers: Sequence[str]) -> None:
    """Add the rows with these names to a run, in each tier, then the series in the first."""
    rows = [row for row in ROWS if row.name in names]
    series = SERIES if SCALING in names else ()
    total, done = len(rows) * len(tiers) + len(series), 0
    with progress("rows and series", total) as bar:

        def show(what: str) -> None:
            bar(what, done, total)

        for tier in tiers:
            for row in rows if tier == tiers[0] else map(_again, rows):
                try:
                    run.rows.append(measure(row, tier, run.repeats, show, quick=run.quick))
                except SecAggError as error:
                    run.failed[f"{row.name}, {tier}"] = str(error)
                done += 1
        for one in series:
            try:
                run.grown.append(
                    grow(one, tiers[0], min(run.repeats, GROWN), show, quick=run.quick)
                )
            except SecAggError as error:
                run.failed[f"{one.title} over {one.axis}"] = str(error)
            done += 1


def _again(row: Row) -> Row:
    """Return a row for a lower tier, without rivals that take minutes: Flower has no tiers."""
    return replace(row, rivals=tuple(one for one in row.rivals if one.runs != 1))


def _save(run: Run, folder: Path) -> None:
    """Write the tables of a run, and the picture of the series if there are any."""
    folder.mkdir(parents=True, exist_ok=True)
    text = ""
    if run.grown:
        from benches.speed.picture import draw  # needs matplotlib, the figures do not
        from secagg.kit.picture import svg

        figure = draw(run.grown)
        text = str(figure.get_label())
        replace_file(folder / f"{GROWTH}.svg", svg(figure))
    for key, table in shown(run, f"{GROWTH}.svg", text).items():
        replace_file(folder / f"{key}.json", f"{as_json(table)}\n")


if __name__ == "__main__":
    sys.exit(main())
