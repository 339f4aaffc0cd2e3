"""Command line of the papers' tables: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benches.papers import table as listed
from benches.papers.runner import QUICK_SEEDS, ending_all
from benches.papers.runner import reproduce as measure
from benches.papers.show import LiveRuns, document, print_report, write
from fedmf.cli.manners import errors_in_one_line, make_folder, stderr
from secagg.bench.table import as_json
from secagg.bench.timing import INTERRUPTED, undisturbed
from secagg.cli.console import App
from secagg.errors import MissingExtra

EXAMPLES = """
[bold]Examples[/bold]

FEDMF_DATA=~/movielens python -m benches.papers --table presets --seeds 3

python -m benches.papers --table all --jobs 4 --out runs/results

python -m benches.papers --table all --quick  [dim]# does every row work? no results[/dim]

python -m benches.papers --table secure --json > secure.json  [dim]# for other programs[/dim]
"""


def reproduce(
    table: Annotated[
        list[str] | None,
        typer.Option(
            help=f"A table: {', '.join(listed.MODULES)}, or {listed.ALL}. May be repeated.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each row.")] = 10,
    jobs: Annotated[
        int, typer.Option(help="Runs at the same time, each a process of one thread.")
    ] = 1,
    out: Annotated[
        Path,
        typer.Option(
            help="A folder for results.md, results.json, the pictures (SVG), and every single "
            "run: one that is kept there, of the same sources and data, is not run again. "
            "results.md and results.json are of the tables asked for now: ask for all to have "
            "all of them."
        ),
    ] = Path("runs/results"),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            metavar="",
            help=f"Only try the rows: {QUICK_SEEDS} seeds, a tenth of the rounds, kept apart "
            "in OUT/quick. Its figures are no result.",
        ),
    ] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json", metavar="", help="Print one JSON document in place of the tables."
        ),
    ] = False,
) -> None:
    """Measure the papers' tables again, and those that go beyond them.

    Every finished run is kept at once: Ctrl-C loses only those under way, and the same command
    goes on from there. Rows whose data are not at hand are left out. The exit code is 1 if a
    row failed.
    """
    folder = out / "quick" if quick else out
    live = LiveRuns(stderr())
    with errors_in_one_line("before the first run; nothing is lost"):
        try:
            with ending_all():
                make_folder(folder)
                with live.bar:
                    report = measure(
                        table or (), folder / "store", live, seeds=seeds, jobs=jobs, quick=quick
                    )
                try:
                    with undisturbed():
                        write(report, folder)
                except MissingExtra as error:
                    live.print(str(error), "yellow")
                if json:
                    typer.echo(as_json(document(report)))
                else:
                    wide = None if sys.stdout.isatty() else 160  # columns of a file
                    print_report(Console(highlight=False, width=wide), report)
                live.print(f"saved in {folder}")
        except KeyboardInterrupt:
            if not live.begun:
                raise
            live.print(
                f"interrupted: {live.kept} runs are kept in {folder}, {live.to_run} are not "
                "made yet; the same command goes on from there",
                "yellow",
            )
            raise typer.Exit(INTERRUPTED) from None
        if any(row.error for one in report.tables for row in one.rows):
            raise typer.Exit(1)


app = App()
app.command(epilog=EXAMPLES)(reproduce)


def main() -> None:
    """Run the command line."""
    app(prog_name="python -m benches.papers")


if __name__ == "__main__":
    main()
