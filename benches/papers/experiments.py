"""Command that compares FedMF under encryption with the same training in the clear."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Annotated

import typer

from benches.papers.runner import interrupted_once
from benches.papers.subset import most_rated
from benches.papers.under_encryption import (
    Comparison,
    fedmf_under_encryption,
    items_under_encryption,
)
from fedmf.cli.manners import errors_in_one_line
from fedmf.data import NAMES, load
from fedmf.data.splits import random_split
from secagg.cli.console import App, Json
from secagg.cli.output import progress
from secagg.kit.table import as_json
from secagg.paillier import generate_keypair

EXAMPLES = """
[bold]Examples[/bold]

export FEDMF_DATA=~/movielens  [dim]# with the folder ml-latest-small[/dim]

python -m benches.papers.experiments fedmf

python -m benches.papers.experiments fedmf --data ml-100k --no-phe --json > fedmf.json

python -m benches.papers.experiments basu --refresh-every 30

python -m benches.papers.experiments basu --data simulated --bits 2048
"""

Data = Annotated[
    str,
    typer.Option(
        help=f"The data set: {', '.join(NAMES)}. All but simulated are read from the folder "
        "that the environment variable FEDMF_DATA names."
    ),
]
Items = Annotated[int, typer.Option(help="The number of items, the most rated ones.")]
Users = Annotated[
    int, typer.Option(help="The number of users, those with most ratings of them.")
]
Rounds = Annotated[int, typer.Option(help="The number of iterations.")]
Seed = Annotated[int, typer.Option(help="The seed of the split and the start.")]
Bits = Annotated[int, typer.Option(help="The length of the key in bits.")]

app = App(
    epilog=EXAMPLES,
    help="Train FedMF under Paillier encryption and compare it with training in the clear.",
)


@app.command()
def fedmf(
    data: Data = "ml-latest-small",
    items: Items = 40,
    users: Users = 50,
    rounds: Rounds = 36,
    seed: Seed = 0,
    bits: Bits = 3072,
    json: Json = False,
    no_phe: Annotated[bool, typer.Option("--no-phe", metavar="", help="Skip phe.")] = False,
) -> None:
    """Train FedMF with sums under a key holder's key, and with phe for comparison."""
    measure = partial(fedmf_under_encryption, rounds=rounds, seed=seed, with_phe=not no_phe)
    _run(measure, data, items, users, seed, bits, json=json)


@app.command()
def basu(
    data: Data = "ml-latest-small",
    items: Items = 40,
    users: Users = 50,
    rounds: Rounds = 30,
    seed: Seed = 0,
    bits: Bits = 3072,
    json: Json = False,
    refresh_every: Annotated[
        int, typer.Option(help="The number of iterations before the matrix is encrypted again.")
    ] = 10,
) -> None:
    """Train FedMF with an encrypted item matrix; the users share the key."""
    measure = partial(
        items_under_encryption, rounds=rounds, seed=seed, refresh_every=refresh_every
    )
    _run(measure, data, items, users, seed, bits, json=json)


def _run(
    measure: Callable[..., Comparison],
    data: str,
    items: int,
    users: int,
    seed: int,
    bits: int,
    *,
    json: bool,
) -> None:
    with errors_in_one_line("before the end; nothing is kept"), interrupted_once():
        split = random_split(most_rated(load(data), items, users), seed=seed)
        quiet = json and not sys.stdout.isatty()
        with nullcontext() if quiet else progress("done", 1) as show:

            def stage(what: str, done: int, of: int) -> None:
                if show is not None:
                    if done == 0:
                        print(what, file=sys.stderr)
                    show(what, done, of)

            stage(f"making a key of {bits} bits", 0, 1)
            found = measure(split, generate_keypair(bits), progress=stage)
        typer.echo(as_json(found) if json else found.table())


def main() -> None:
    """Run the command line."""
    app(prog_name="python -m benches.papers.experiments")


if __name__ == "__main__":
    main()
