"""``fedmf attack``: attacks of a curious server, with secure aggregation and without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

import numpy as np
import typer
from numpy.typing import NDArray

from fedmf import attacks
from fedmf.attacks import Outcome
from fedmf.cli.manners import Data, errors_in_one_line, stderr
from fedmf.data import Ratings, load
from fedmf.masks import RidgeMask
from secagg.cli.console import Json
from secagg.kit.table import Column, Table, as_text
from secagg.kit.table import as_json as to_json

EXAMPLES = """
[bold]Examples[/bold]

fedmf attack  [dim]# attack the gradients of 300 simulated users[/dim]

fedmf attack --kind inversion --users 50  [dim]# undo the masks of 50 users[/dim]

FEDMF_DATA=~/movielens fedmf attack --data ml-100k --kind all --json > attacks.json
"""

MIN_RATERS = 3
# half a step of the ratings; a tenth of a user's items
TOLERANCE, TOP = 0.5, 0.1
HEADS = ("against plain", "against secure aggregation", "the sum", "chance")


Kind = Literal["leakage", "one-round", "inversion", "recovery", "ranking", "singletons", "all"]
"""Names of the attacks of `fedmf.attacks`, for the option --kind."""


def attack(
    data: Data = "simulated",
    kind: Annotated[
        Kind,
        typer.Option(
            help="The attack. leakage: ratings from the gradients of two rounds. one-round: "
            "from the gradients of one round. inversion: from the gradients of masked ratings. "
            "recovery, ranking: the FedMMF paper's own attacks on masked ratings. singletons: "
            "from the exact sum at items with one rater, and again with min_raters "
            f"{MIN_RATERS}; use ml-100k, as simulated data has too few such items."
        ),
    ] = "leakage",
    users: Annotated[
        int | None,
        typer.Option(
            help="The number of attacked users.", min=1, show_default="all with ratings"
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="The seed of users, training and masks.", min=0)
    ] = 0,
    as_json: Json = False,
) -> None:
    """Attack a training in the clear, and the same training under secure aggregation.

    A figure is the share of ratings found exactly; for recovery, the share found to half a
    rating. For ranking, a figure is the share found of the tenth that a user rated highest.
    Chance is the same share for guesses: always the most frequent rating, or items at random.
    """
    console = stderr()
    with errors_in_one_line("before the end of the attacks"):
        ratings = load(data)
        attacked = attacks.chosen(ratings, users, seed)
        kinds = get_args(Kind)[:-1] if kind == "all" else [kind]
        with console.status("attacking"):
            outcomes = [one for each in kinds for one in _run(each, ratings, attacked, seed)]
        settings = {"data": data, "users": int(attacked.size), "seed": seed}
        document = {"settings": settings, "attacks": outcomes}
        typer.echo(to_json(document) if as_json else _table(outcomes))
        if "singletons" in kinds and data == "simulated":
            console.print(
                "singletons: hardly any simulated item has one rater, so these shares mean "
                "nothing; use --data ml-100k",
                style="yellow",
            )


def _run(
    kind: Kind, ratings: Ratings, users: NDArray[np.int64], seed: int
) -> Iterator[Outcome]:
    match kind:
        case "leakage" | "one-round":
            one_round = kind == "one-round"
            yield attacks.leakage(ratings, users, one_round=one_round, seed=seed)
        case "inversion":
            yield attacks.inversion(ratings, users, RidgeMask(), seed=seed)
        case "singletons":
            for least in (1, MIN_RATERS):
                yield attacks.singletons(ratings, least, seed=seed)
        case _:
            ranked = kind == "ranking"
            amount = TOP if ranked else TOLERANCE
            yield attacks.on_masked_ratings(
                ratings, users, ranked=ranked, amount=amount, seed=seed
            )


def _table(outcomes: list[Outcome]) -> str:
    shares = [Column(head, "{:.2%}".format) for head in HEADS]
    rows = [
        (one.attack, one.plain, one.secure, one.summed, one.chance, f"{one.ratings} ratings")
        for one in outcomes
    ]
    return as_text(Table(columns=(Column("attack"), *shares, Column("of")), rows=rows))
