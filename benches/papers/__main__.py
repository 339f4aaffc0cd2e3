"""Command line of the papers' tables: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

try:
    import typer
    from rich.console import Console

    from benches.papers import table as listed
    from benches.papers.runner import QUICK_SEEDS, interrupted_once
    from benches.papers.runner import reproduce as measure
    from benches.papers.show import LiveRuns, document, print_report, write
    from fedmf.cli.manners import errors_in_one_line, make_folder, stderr
    from secagg.cli.console import App, Version
    from secagg.errors import MissingExtra
    from secagg.kit.table import as_json
    from secagg.kit.timing import INTERRUPTED, undisturbed
except KeyboardInterrupt:
    raise SystemExit(130) from None

EXAMPLES = """
[bold]Examples[/bold]

FEDMF_DATA=~/movielens python -m benches.papers --table presets --seeds 3

python -m benches.papers --table all --jobs 4 --out runs/results

python -m benches.papers --table all --quick  [dim]# test that every row runs[/dim]

python -m benches.papers --table secure --json > secure.json  [dim]# for other programs[/dim]
"""


def reproduce(
    table: Annotated[
        list[str] | None,
        typer.Option(
            help=f"A table: {', '.join(listed.MODULES)}, or {listed.ALL}. Repeat it for more.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="The number of runs of each row.")] = 10,
    jobs: Annotated[
        int, typer.Option(help="The number of parallel runs, each a process of one thread.")
    ] = 1,
    out: Annotated[
        Path,
        typer.Option(
            help="The folder for results.json with the tables of this call, for every run, and "
            "for results/, the tables and pictures of docs/results. A run in it, of the same "
            "sources and data, is not repeated."
        ),
    ] = Path("runs/results"),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            metavar="",
            help=f"Only test that the rows run, with {QUICK_SEEDS} seeds and a tenth of the "
            "rounds, in the folder OUT/quick. The figures are no results.",
        ),
    ] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json", metavar="", help="Print one JSON document instead of the tables."
        ),
    ] = False,
    version: Version = False,
) -> None:
    """Measure the papers' tables, and further ones.

    Every finished run is kept at once. Ctrl-C loses only the runs in progress; the same command
    continues from there. Rows whose data set is missing are left out. The exit code is 1 if a
    row failed.
    """
    folder = out / "quick" if quick else out
    live = LiveRuns(stderr())
    with errors_in_one_line("before the first run; no run is lost"):
        try:
            with interrupted_once():
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
                f"interrupted: {live.kept} runs are kept in {folder}, {live.to_run} are "
                "missing; run the same command to continue",
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
