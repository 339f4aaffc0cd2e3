"""``secagg bench``: sums by secret sharing against sums by homomorphic encryption."""

from __future__ import annotations

from typing import Annotated

import typer

from secagg.bench.report import comparison_document, prepare, print_comparison
from secagg.bench.run import BUDGET, CLIENTS, LENGTHS, compare, families, grid
from secagg.bench.table import as_json as to_json
from secagg.cli.console import Json, command, progress

EXAMPLES = """
[bold]Examples[/bold]

secagg bench --clients 100 --length 10000 --no-per-float  [dim]# one case: half a minute[/dim]

secagg bench --compare ss,he --out runs/compare  [dim]# all of them, and a picture[/dim]

secagg bench --clients 943 --length 33640 --json  [dim]# as many as MovieLens 100K has[/dim]
"""


def bench(
    halves: Annotated[
        str,
        typer.Option(
            "--compare",
            help="ss, secret sharing; he, Paillier, and with it phe and TenSEAL's CKKS "
            "where they are installed; or both.",
        ),
    ] = "ss,he",
    clients: Annotated[
        str, typer.Option(help="How many clients, separated by commas.")
    ] = CLIENTS,
    length: Annotated[str, typer.Option(help="How many elements, the same way.")] = LENGTHS,
    budget: Annotated[
        float,
        typer.Option(
            help="Seconds for each party of a case; what takes longer is measured on a sample "
            "and scaled, and marked ~. SS is always measured whole."
        ),
    ] = BUDGET,
    per_float: Annotated[
        bool,
        typer.Option(help="Measure Paillier per float, too, by keys of 2048 and 3072 bits."),
    ] = True,
    as_json: Json = False,
    out: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Where compare.json and compare.png go."),
    ] = None,
) -> None:
    """Measure sums by secret sharing against sums by homomorphic encryption.

    For every number of clients and every length: seconds, bytes and memory of a client, of the
    server and of whoever holds the key, each in a process of its own, on one core. Ctrl-C ends
    it early: the cases that are done are printed, and saved with --out.
    """
    with command():
        wanted, cases = families(halves), grid(clients, length)
        save = None if out is None else prepare(out)
        with progress("cases done", len(cases)) as show:
            found = compare(wanted, cases, show, budget=budget, per_float=per_float)
        if found.rows:
            try:
                if save is not None:
                    save(found)
            finally:  # a result that cannot be saved can still be read
                if as_json:
                    typer.echo(to_json(comparison_document(found)))
                else:
                    print_comparison(found)
        if not found.complete:
            raise KeyboardInterrupt
