"""Command ``secagg bench``: costs of secret sharing and of homomorphic encryption."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secagg.bench.report import comparison_document, print_comparison, saving
from secagg.bench.run import BUDGET, CLIENTS, FAMILIES, LENGTHS, compare, families, grid
from secagg.cli.console import Json, command, examples
from secagg.cli.output import progress
from secagg.errors import ParameterError
from secagg.kit.table import as_json as to_json
from secagg.kit.timing import interruptible, undisturbed

EXAMPLES = examples(
    "secagg bench --clients 100 --length 10000 --no-per-float  "
    "[dim]# one case: half a minute[/dim]",
    "secagg bench --compare ss,he,one-shot --out runs/compare  "
    "[dim]# all cases, and a picture[/dim]",
    "secagg bench --clients 943 --length 33640 --json  [dim]# the size of MovieLens 100K[/dim]",
)


def bench(
    halves: Annotated[
        str,
        typer.Option(
            "--compare",
            help="Some of ss (secret sharing), he (Paillier, also phe and TenSEAL's CKKS if "
            "installed) and one-shot (one message, helpers).",
        ),
    ] = ",".join(FAMILIES),
    clients: Annotated[
        str, typer.Option(help="Numbers of clients, separated by commas.")
    ] = CLIENTS,
    length: Annotated[str, typer.Option(help="Vector lengths, separated by commas.")] = LENGTHS,
    budget: Annotated[
        float,
        typer.Option(
            help="Seconds for each party of a case. Longer work is measured on a sample, "
            "scaled and marked ~. SS and one-shot sums are always measured in full."
        ),
    ] = BUDGET,
    per_float: Annotated[
        bool,
        typer.Option(
            metavar="",
            help="Also measure Paillier per float, with keys of 2048 and 3072 bits, and phe "
            "with a ciphertext for each float.",
        ),
    ] = True,
    as_json: Json = False,
    out: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Save compare.json and compare.svg in a folder."),
    ] = None,
) -> None:
    """Measure sums by secret sharing, by homomorphic encryption and with helpers.

    Report seconds, bytes and memory of a client, the server and the key holder or helpers for
    every number of clients and every length. Each party runs in a separate process on one
    core. After Ctrl-C the finished cases are printed, and saved with --out.
    """
    with command(), interruptible():
        wanted, cases = families(halves), grid(clients, length)
        if out == "":
            raise ParameterError("--out is empty: name a folder, or leave it out")
        # before the measurements, so that a wrong folder costs no minutes
        save = saving(Path(out) / "compare.json", Path(out) / "compare.svg") if out else None
        with progress("cases done", len(cases)) as show:
            found = compare(wanted, cases, show, budget=budget, per_float=per_float)
        with undisturbed():
            if found.rows:
                try:
                    if save is not None:
                        save(found)
                finally:
                    # a result that cannot be saved can still be read
                    if as_json:
                        typer.echo(to_json(comparison_document(found)))
                    else:
                        print_comparison(found)
        # a script must not take the finished cases for all cases
        if not found.complete:
            raise KeyboardInterrupt
