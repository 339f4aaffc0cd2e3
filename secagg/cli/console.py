"""Options, progress, errors and output that the commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from secagg.bench.table import as_json
from secagg.bench.timing import INTERRUPTED, interrupted_once
from secagg.encoding import FixedPoint
from secagg.errors import SecAggError
from secagg.protocol import RoundParams

Document = dict[str, object]

Clients = Annotated[int, typer.Option(help="n, the clients that take part.")]
Corrupt = Annotated[
    float, typer.Option(help="The largest fraction of them that colludes with the server.")
]
Dropout = Annotated[float, typer.Option(help="The largest fraction that vanishes.")]
Length = Annotated[int, typer.Option(help="d, the elements of a vector.")]
Clip = Annotated[float, typer.Option(help="The largest absolute value of an element.")]
ModulusBits = Annotated[
    int | None,
    typer.Option(
        help="b of the modulus 2^b, and the bits an element takes on the wire.",
        show_default="32, or what the sum needs",
    ),
]
Sigma = Annotated[
    int, typer.Option(help="A client is exposed with probability 2^-sigma at most.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document in place of the table.")
]


@contextmanager
def command() -> Iterator[None]:
    """End the command on an error or Ctrl-C with one line and its exit code.

    The codes are 2 for an error of this library, 1 for one of the machine, and 130 for Ctrl-C.
    """
    try:
        with interrupted_once():
            yield
    except SecAggError as error:
        typer.echo(f"secagg: {error}", err=True)
        raise typer.Exit(2) from None
    except BrokenPipeError:
        raise  # the reader of the output has seen enough; click ends quietly
    except (OSError, MemoryError) as error:
        what = "out of memory" if isinstance(error, MemoryError) else "cannot go on"
        typer.echo(f"secagg: {what}: {error}".removesuffix(": "), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("secagg: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def progress(unit: str, total: int) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows on a terminal the present work, and how far it is.

    Parameters
    ----------
    unit : str
        Counted things, such as "clients".
    total : int
        Their number, until the function gives another.
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
    params: RoundParams, document: Document, facts: list[tuple[str, str]], *, json: bool
) -> None:
    """Print a round's parameters and costs, as a JSON document or as names with their values.

    Parameters
    ----------
    params : RoundParams
    document : dict
        Besides the parameters; has the bytes and seconds of a client and of the server.
    facts : list of name and text
        Printed before the modulus and the costs.
    json : bool
    """
    if json:
        shape: Document = {
            "clients": params.n_clients,
            "neighbours": params.neighbours,
            "threshold": params.threshold,
            "length": params.length,
            "modulus_bits": params.ring.bits,
        }
        typer.echo(as_json(shape | document))
        return
    amounts = {name: one for name, one in document.items() if isinstance(one, int | float)}
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for name, text in facts:
        table.add_row(name, text)
    table.add_row("modulus", str(params.ring))
    table.add_row("a client sends", size_text(amounts["bytes_up"]))
    table.add_row("a client receives", size_text(amounts["bytes_down"]))
    table.add_row("a client's time", time_text(amounts["client_seconds"]))
    table.add_row("the server's time", time_text(amounts["server_seconds"]))
    if "peak_memory" in amounts:
        table.add_row("peak memory", f"{size_text(amounts['peak_memory'])}, all in one process")
    Console(highlight=False).print(table)


def neighbours_text(params: RoundParams) -> str:
    """Return the number of a client's neighbours."""
    return "all others" if params.neighbours is None else str(params.neighbours)


def size_text(size: float) -> str:
    """Return bytes with one decimal."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def time_text(seconds: float) -> str:
    """Return seconds, or milliseconds below one, with one decimal."""
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def round_params(
    clients: int,
    threshold: int,
    neighbours: int | None,
    length: int,
    clip: float,
    modulus_bits: int | None,
) -> RoundParams:
    """Return the parameters of a round whose modulus, if it is None, suffices for the sum."""
    encoding = FixedPoint(clip, rounding="nearest")
    needed = (2 * clients * encoding.max_encoded).bit_length()
    return RoundParams(
        n_clients=clients,
        threshold=threshold,
        length=length,
        encoding=encoding,
        modulus_bits=max(32, needed) if modulus_bits is None else modulus_bits,
        neighbours=neighbours,
    )
