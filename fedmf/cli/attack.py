"""``fedmf attack``: what a curious server learns, with secure aggregation and without."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from fedmf import attacks
from fedmf.attacks import Outcome
from fedmf.cli.manners import errors_in_one_line, stderr
from fedmf.data import NAMES, Ratings, load
from fedmf.masks import RidgeMask

__all__ = ["EXAMPLES", "attack"]

EXAMPLES = """
[bold]Examples[/bold]

fedmf attack  [dim]# gradients of 300 simulated users, in the clear and under the masks[/dim]

fedmf attack --kind inversion --users 50  [dim]# undo the masks of 50 of them[/dim]

FEDMF_DATA=~/movielens fedmf attack --data ml-100k --kind all --json > attacks.json
"""

MIN_RATERS = 3
TOLERANCE, TOP = 0.5, 0.1  # half a step; a tenth of a user's items


class Kind(StrEnum):
    """The attacks of `fedmf.attacks`."""

    LEAKAGE = "leakage"
    ONE_ROUND = "one-round"
    INVERSION = "inversion"
    RECOVERY = "recovery"
    RANKING = "ranking"
    SINGLETONS = "singletons"
    ALL = "all"


def attack(
    data: Annotated[str, typer.Option(help=f"The data set: {', '.join(NAMES)}.")] = "simulated",
    kind: Annotated[
        Kind,
        typer.Option(
            help="leakage: ratings from the gradients of two rounds. one-round: from those of "
            "one. inversion: from the gradients of masked ratings. recovery, ranking: the "
            "FedMMF paper's own two, on masked ratings. singletons: from the exact sum, which "
            "is what secure aggregation gives, where an item has one rater, and the same where "
            f"items need {MIN_RATERS}; simulated data has too few such items to tell: take "
            "ml-100k."
        ),
    ] = Kind.LEAKAGE,
    users: Annotated[
        int | None,
        typer.Option(help="How many users are attacked.", show_default="all with a rating"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of users, training and masks.", min=0)] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document in place of the table.")
    ] = False,
) -> None:
    """Attack a training in the clear, and the same training under secure aggregation.

    A figure is the share of ratings that are found exactly; of recovery, that are found to
    half a rating; of ranking, of a user's tenth of highest rated items. Chance is what always
    guessing the most frequent rating gives, or guessing the items.
    """
    console = stderr()
    with errors_in_one_line("before the attacks were over"):
        ratings = load(data)
        attacked = attacks.chosen(ratings, users, seed)
        kinds = [one for one in Kind if kind in (one, Kind.ALL) and one != Kind.ALL]
        with console.status("attacking"):
            outcomes = [one for each in kinds for one in _run(each, ratings, attacked, seed)]
        if as_json:
            settings = {"data": data, "users": int(attacked.size), "seed": seed}
            found = [asdict(one) for one in outcomes]
            typer.echo(json.dumps({"settings": settings, "attacks": found}, indent=2))
        else:
            _print(outcomes)
        if Kind.SINGLETONS in kinds and data == "simulated":
            console.print(
                "singletons: hardly any simulated item has one rater, so these shares tell "
                "nothing; take --data ml-100k",
                style="yellow",
            )


def _run(
    kind: Kind, ratings: Ratings, users: NDArray[np.int64], seed: int
) -> Iterator[Outcome]:
    match kind:
        case Kind.LEAKAGE | Kind.ONE_ROUND:
            one_round = kind == Kind.ONE_ROUND
            yield attacks.leakage(ratings, users, one_round=one_round, seed=seed)
        case Kind.INVERSION:
            yield attacks.inversion(ratings, users, RidgeMask(), seed=seed)
        case Kind.SINGLETONS:
            for least in (1, MIN_RATERS):
                yield attacks.singletons(ratings, least, seed=seed)
        case _:
            ranked = kind == Kind.RANKING
            amount = TOP if ranked else TOLERANCE
            yield attacks.on_masked_ratings(
                ratings, users, ranked=ranked, amount=amount, seed=seed
            )


def _print(outcomes: list[Outcome]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("attack")
    for column in ("against plain", "against secure aggregation", "the sum", "chance", "of"):
        table.add_column(column, justify="right")
    for one in outcomes:
        table.add_row(
            one.attack,
            f"{one.plain:.2%}",
            f"{one.secure:.2%}",
            "" if one.summed is None else f"{one.summed:.2%}",
            f"{one.chance:.2%}",
            f"{one.ratings} ratings",
        )
    Console(highlight=False).print(table)
