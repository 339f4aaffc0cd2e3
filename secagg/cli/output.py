"""Progress and results on the terminal, as all commands print them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from secagg.cli.console import Document
from secagg.kit.table import as_json, duration, volume
from secagg.protocol import RoundParams


@contextmanager
def progress(unit: str, total: int) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function ``show(work, done, total)`` that shows a progress bar on a terminal.

    `unit` names the counted things, such as "clients". `total` is the number of things until
    the first call.
    """
    console = Console(stderr=True, highlight=False)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f}/{task.total:.0f} " + unit),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("".ljust(14), total=total)

        def show(what: str, done: int, of: int) -> None:
            name = what.replace("_", " ").ljust(14)
            bar.update(task, description=name, completed=done, total=of)

        yield show


def echo(
    params: RoundParams,
    document: Document,
    facts: list[tuple[str, str]],
    further: Sequence[tuple[str, str]] = (),
    *,
    json: bool,
) -> None:
    """Print a round's parameters and costs, as a JSON document or as a table of two columns.

    `document` has at least "bytes_up", "bytes_down", "client_seconds" and "server_seconds".
    `facts` are rows of the table before these figures, `further` after these figures.
    """
    shape: Document = {
        "clients": params.n_clients,
        "neighbours": params.neighbours,
        "threshold": params.threshold,
        "length": params.length,
        "modulus_bits": params.ring.bits,
    }
    k = "all others" if params.neighbours is None else str(params.neighbours)
    rows = [
        ("neighbours k", k),
        *facts,
        ("modulus", str(params.ring)),
        ("a client sends", volume(document["bytes_up"])),
        ("a client receives", volume(document["bytes_down"])),
        ("a client's time", duration(document["client_seconds"])),
        ("the server's time", duration(document["server_seconds"])),
        *further,
    ]
    show(shape | document, rows, json=json)


def show(document: Document, rows: list[tuple[str, str]], *, json: bool) -> None:
    """Print a JSON document, or a table of two columns with the peak memory if measured."""
    if json:
        typer.echo(as_json(document))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    for row in rows:
        table.add_row(*row)
    if "peak_memory" in document:
        table.add_row("peak memory", f"{volume(document['peak_memory'])}, all in one process")
    Console(highlight=False).print(table)
