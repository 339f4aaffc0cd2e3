"""``fedmf data``: list, describe, fetch and verify the data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Column, Table

from fedmf.cli.manners import Columns, Duplicates, Scale, errors_in_one_line, option, stderr
from fedmf.cli.own import is_file, ratings_of
from fedmf.data import NAMES, SIZES, Ratings, source_of
from fedmf.data.fetch import check_content, check_files, fetch
from fedmf.data.sets.folders import folder_of, found_folder
from fedmf.data.sets.sources import Source
from fedmf.errors import DataError
from secagg.cli.console import App, Json
from secagg.kit.table import as_json as to_json

app = App(help="List, describe, fetch and verify the data sets.", no_args_is_help=True)

SIZE = ("users", "items", "ratings")
Name = Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.", show_default=False)]

LIST = """
[bold]Examples[/bold]

fedmf data list  [dim]# all data sets and their folders[/dim]

FEDMF_DATA=~/movielens fedmf data list --json
"""
DESCRIBE = """
[bold]Examples[/bold]

fedmf data describe simulated

fedmf data describe ml-100k --json  [dim]# for other programs[/dim]

fedmf data describe ratings.csv --columns user,item,rating --scale 1,5
"""
FETCH = """
[bold]Examples[/bold]

fedmf data fetch ml-100k  [dim]# into ~/.cache/fedmf, the cache of all commands[/dim]

FEDMF_CACHE=/big/disk fedmf data fetch ml-10m

fedmf data fetch ml-1m --url https://mirror.example.org/ml-1m.zip
"""
VERIFY = """
[bold]Examples[/bold]

fedmf data verify ml-100k  [dim]# compare checksums, then read every line[/dim]
"""


@app.command("list", epilog=LIST)
def list_(as_json: Json = False) -> None:
    """List the data sets with sizes and with folders on this machine."""
    with errors_in_one_line("before the list was complete"):
        rows = [_row(name) for name in NAMES]
        if as_json:
            typer.echo(to_json(rows))
            return
        sizes = [Column(head, justify="right") for head in SIZE]
        table = Table("name", *sizes, Column("where", overflow="fold"))
        for row in rows:
            source = row["source"]
            place = row["folder"] or (source and f"missing: {_remedy(str(source))}")
            shown = str(place or "built in")
            table.add_row(str(row["name"]), *(f"{row[one]:,}" for one in SIZE), escape(shown))
        _stdout().print(table)


@app.command("describe", epilog=DESCRIBE)
def describe_(
    name: Annotated[
        str,
        typer.Argument(
            help=f"One of {', '.join(NAMES)}, or a CSV or Parquet file.", show_default=False
        ),
    ],
    columns: Columns = None,
    scale: Scale = None,
    duplicates: Duplicates = None,
    as_json: Json = False,
) -> None:
    """Describe a data set or a file: size, ratings, and the raters of the items."""
    with errors_in_one_line("before the data set was read"):
        found = figures(ratings_of(name, columns, scale, duplicates)[0])
        public = name != "simulated" and not is_file(name)
        found["terms"] = _terms(source_of(name)) if public else None
        if as_json:
            typer.echo(to_json(found))
        else:
            _print_description(found)


@app.command("fetch", epilog=FETCH)
def fetch_(
    name: Name,
    url: Annotated[
        str | None, option("Another address of the same archive.", "GroupLens")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fetch a data set from GroupLens, validate the files, and put them into the cache."""
    console = stderr()
    with errors_in_one_line("before the data set was complete; nothing is kept"):
        source = _with_files(name, "needs no fetching")
        console.print(_terms(source), soft_wrap=True, style="yellow")
        folder = found_folder(source)
        if folder is None:
            folder = _fetch(source, url, console)
        else:
            console.print(f"{source.name} is already in {folder}: nothing is fetched")
        document = to_json({"name": source.name, "folder": str(folder)})
        typer.echo(document if as_json else f"{', '.join(source.sets)}: {folder}")


@app.command("verify", epilog=VERIFY)
def verify_(name: Name, as_json: Json = False) -> None:
    """Verify a data set: compare each file with a known checksum, then read the content.

    Ends with 2 if a file is missing or differs from the file behind fedmf's figures.
    """
    with errors_in_one_line("before the end of the files"):
        source = _with_files(name, "has no file to verify")
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
                    f"{file} in {folder} is {state.value}: move the folder elsewhere, then: "
                    f"{_remedy(name)}"
                )
        ratings = check_content(source, folder)
        numbers = (ratings.n_users, ratings.n_items, ratings.n_ratings)
        size = dict(zip(SIZE, numbers, strict=True))
        states = {file: state.value for file, state in files.items()}
        document = {"name": source.name, "folder": str(folder), "files": states, **size}
        counts = ", ".join(f"{number:,} {what}" for what, number in size.items())
        typer.echo(to_json(document) if as_json else f"{folder} is valid: {counts}")


def _with_files(name: str, why: str) -> Source:
    if name == "simulated":
        raise DataError(f"'simulated' is built in and {why}: name another data set")
    return source_of(name)


def _fetch(source: Source, url: str | None, console: Console) -> Path:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TransferSpeedColumn(), console=console) as bar:
        task = bar.add_task(source.name, total=None)

        def advance(so_far: int, total: int | None) -> None:
            shown = f"checking {source.name}" if so_far == total else source.name
            bar.update(task, completed=so_far, total=total, description=shown)

        return fetch(source, address=url, progress=advance)


def _stdout() -> Console:
    return Console(highlight=False)


def _terms(source: Source) -> str:
    return f"{source.terms} In full: {source.page}"


def _remedy(name: str) -> str:
    source = source_of(name)
    return f"fedmf data fetch {name}" if source.archive else f"no download; see {source.page}"


def _row(name: str) -> dict[str, object]:
    source = None if name == "simulated" else source_of(name)
    folder = source and found_folder(source)
    return {
        "name": name,
        **dict(zip(SIZE, SIZES[name], strict=True)),
        "source": source and source.name,
        "folder": folder and str(folder),
    }


def figures(ratings: Ratings) -> dict[str, Any]:
    """Return the figures of a data set with at least one rating, as in ``--json``.

    ``per_user`` and ``per_item`` are the least, the median and the greatest number of ratings.
    ``singletons`` is the number of items with one rater: no secure sum hides the rater's
    gradient of such an item.
    """
    of_users = np.diff(ratings.indptr)
    of_items = np.bincount(ratings.items, minlength=ratings.n_items)
    values, counts = np.unique(ratings.values, return_counts=True)
    catalogue = ratings.catalogue
    return {
        "name": ratings.name,
        "users": ratings.n_users,
        "items": ratings.n_items,
        "ratings": ratings.n_ratings,
        "density": ratings.n_ratings / (ratings.n_users * ratings.n_items),
        "mean": float(ratings.values.mean()),
        "histogram": dict(zip(values.tolist(), counts.tolist(), strict=True)),
        "per_user": (int(of_users.min()), float(np.median(of_users)), int(of_users.max())),
        "per_item": (int(of_items.min()), float(np.median(of_items)), int(of_items.max())),
        "singletons": int((of_items == 1).sum()),
        "unrated": int((of_items == 0).sum()),
        "without_year": int((catalogue.years == 0).sum()),
        "without_genre": int((~catalogue.genres.any(axis=1)).sum()),
        "genres": catalogue.genre_names,
    }


def _print_description(found: dict[str, Any]) -> None:
    console = _stdout()
    table = Table("", Column(overflow="fold"), title=found["name"], show_header=False)
    for what in SIZE:
        table.add_row(what, f"{found[what]:,}")
    table.add_row("density", f"{found['density']:.3%}")
    table.add_row("mean rating", f"{found['mean']:.4f}")
    for what, key in (("ratings per user", "per_user"), ("raters per item", "per_item")):
        least, middle, most = found[key]
        table.add_row(what, f"{least:,} to {most:,}, median {middle:,g}")
    table.add_row("items with one rater", f"{found['singletons']:,}")
    table.add_row("items without a rater", f"{found['unrated']:,}")
    table.add_row("items without a year", f"{found['without_year']:,}")
    table.add_row("items without a genre", f"{found['without_genre']:,}")
    table.add_row("genres", ", ".join(found["genres"]) or "none")
    console.print(table)
    most_frequent = max(found["histogram"].values())
    for value, count in found["histogram"].items():
        bar = "█" * max(1, round(40 * count / most_frequent))
        console.print(f"{value:5g} {bar} {count:,} ({count / found['ratings']:.1%})")
    if found["terms"] is not None:
        typer.echo(f"\n{found['terms']}")
