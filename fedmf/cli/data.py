"""``fedmf data``: which data sets there are, what is in them, and how to get them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from fedmf.cli.manners import errors_in_one_line, stderr
from fedmf.data import NAMES, SIZES, load, source_of
from fedmf.data.description import Description, describe
from fedmf.data.fetch import check_content, check_files, fetch
from fedmf.data.sets.folders import folder_of, found_folder
from fedmf.data.sets.sources import SOURCES, Source
from fedmf.errors import DataError

__all__ = ["app"]

app = typer.Typer(
    help="List, describe, fetch and verify the data sets.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Name = Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.", show_default=False)]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document in place of the table.")
]

LIST = """
[bold]Examples[/bold]

fedmf data list  [dim]# what there is, and where it lies on this machine[/dim]

FEDMF_DATA=~/movielens fedmf data list --json
"""
DESCRIBE = """
[bold]Examples[/bold]

fedmf data describe simulated

fedmf data describe ml-100k --json  [dim]# for other programs[/dim]
"""
FETCH = """
[bold]Examples[/bold]

fedmf data fetch ml-100k  [dim]# into ~/.cache/fedmf, where every command finds it[/dim]

FEDMF_CACHE=/big/disk fedmf data fetch ml-10m

fedmf data fetch ml-1m --url https://mirror.example.org/ml-1m.zip
"""
VERIFY = """
[bold]Examples[/bold]

fedmf data verify ml-100k  [dim]# every file's checksum, then every line read[/dim]
"""


@app.command("list", epilog=LIST)
def list_(as_json: AsJson = False) -> None:
    """List the data sets: their sizes, and where they lie on this machine."""
    with errors_in_one_line("before the list was complete"):
        rows = [_row(name) for name in NAMES]
        if as_json:
            typer.echo(json.dumps(rows, indent=2))
            return
        table = Table("name", "users", "items", "ratings", "where")
        for column in table.columns[1:4]:
            column.justify = "right"
        table.columns[4].overflow = "fold"
        for row in rows:
            sizes = (f"{row[key]:,}" for key in ("users", "items", "ratings"))
            place = row["folder"] or f"not here: fedmf data fetch {row['source']}"
            shown = "built in" if row["source"] is None else str(place)
            table.add_row(str(row["name"]), *sizes, escape(shown))
        _stdout().print(table)


@app.command("describe", epilog=DESCRIBE)
def describe_(name: Name, as_json: AsJson = False) -> None:
    """Describe a data set: its size, its ratings, how few raters an item may have."""
    with errors_in_one_line("before the data set was read"):
        figures = describe(load(name))
        terms = None if name == "simulated" else _terms(source_of(name))
        if as_json:
            typer.echo(json.dumps(asdict(figures) | {"terms": terms}, indent=2))
            return
        _print_description(figures, terms)


@app.command("fetch", epilog=FETCH)
def fetch_(
    name: Name,
    url: Annotated[
        str | None,
        typer.Option(
            "--url", help="Where else the same archive lies.", show_default="GroupLens"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a data set from GroupLens into the cache, whole and checked, or not at all."""
    console = stderr()
    with errors_in_one_line("before all was there; nothing is kept"):
        if name == "simulated":
            raise DataError("'simulated' is built in: there is nothing to fetch")
        source = source_of(name)
        console.print(_terms(source), markup=False, soft_wrap=True, style="yellow")
        folder = found_folder(source)
        if folder is None:
            folder = _fetch(source, url, console)
        else:
            console.print(f"{source.name} is here already: nothing is fetched", markup=False)
        if as_json:
            typer.echo(json.dumps({"name": source.name, "folder": str(folder)}, indent=2))
        else:
            typer.echo(f"{', '.join(source.sets)}: {folder}")


@app.command("verify", epilog=VERIFY)
def verify_(name: Name, as_json: AsJson = False) -> None:
    """Verify a data set: each file against its known checksum, then all that it holds.

    Ends with 2 if a file is missing, or another than the one that fedmf's figures rest on.
    """
    with errors_in_one_line("before all was read"):
        if name == "simulated":
            raise DataError("'simulated' is built in: there is nothing to verify")
        source = source_of(name)
        folder = folder_of(source)
        files = check_files(source, folder)
        if not as_json:
            table = Table("file", "checksum")
            for file, state in files.items():
                table.add_row(file, state.value, style="" if state.good else "red")
            _stdout().print(table)
        for file, state in files.items():
            if not state.good:
                raise DataError(
                    f"{file} in {folder} is {state.value}: remove {folder} and run "
                    f"'fedmf data fetch {source.name}'"
                )
        ratings = check_content(source, folder)
        size = {
            "users": ratings.n_users,
            "items": ratings.n_items,
            "ratings": ratings.n_ratings,
        }
        if as_json:
            states: dict[str, object] = {file: state.value for file, state in files.items()}
            where = {"name": source.name, "folder": str(folder)}
            typer.echo(json.dumps(where | {"files": states} | size, indent=2))
        else:
            held = ", ".join(f"{number:,} {what}" for what, number in size.items())
            typer.echo(f"{folder} is sound: {held}")


def _fetch(source: Source, url: str | None, console: Console) -> Path:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TransferSpeedColumn(), console=console) as bar:
        task = bar.add_task(source.name, total=None)

        def advance(so_far: int, total: int | None) -> None:
            done = so_far == total
            bar.update(
                task,
                completed=so_far,
                total=total,
                description=f"checking {source.name}" if done else source.name,
            )

        return fetch(source, address=url, progress=advance)


def _stdout() -> Console:
    return Console(highlight=False)


def _terms(source: Source) -> str:
    return f"{source.terms} In full: {source.page}"


def _row(name: str) -> dict[str, object]:
    source = next((one for one in SOURCES.values() if name in one.sets), None)
    folder = None if source is None else found_folder(source)
    users, items, ratings = SIZES[name]
    return {
        "name": name,
        "users": users,
        "items": items,
        "ratings": ratings,
        "source": None if source is None else source.name,
        "folder": None if folder is None else str(folder),
    }


def _print_description(figures: Description, terms: str | None) -> None:
    console = _stdout()
    table = Table(title=figures.name, show_header=False)
    table.add_column("what")
    table.add_column("how many", overflow="fold")
    for what in ("users", "items", "ratings"):
        table.add_row(what, f"{getattr(figures, what):,}")
    table.add_row("density", f"{figures.density:.3%}")
    table.add_row("mean rating", f"{figures.mean:.4f}")
    for what, (least, middle, most) in (
        ("ratings per user", figures.per_user),
        ("raters per item", figures.per_item),
    ):
        table.add_row(what, f"{least:,} to {most:,}, median {middle:,g}")
    table.add_row("items with one rater", f"{figures.singletons:,}")
    table.add_row("items nobody rated", f"{figures.unrated:,}")
    table.add_row("items without a year", f"{figures.without_year:,}")
    table.add_row("items without a genre", f"{figures.without_genre:,}")
    table.add_row("genres", ", ".join(figures.genres) or "none")
    console.print(table)
    most_frequent = max(figures.histogram.values())
    for value, count in figures.histogram.items():
        bar = "█" * max(1, round(40 * count / most_frequent))
        console.print(f"{value:5g} {bar} {count:,} ({count / figures.ratings:.1%})")
    if terms is not None:
        console.print(f"\n{terms}", markup=False, soft_wrap=True)
