"""``fedmf recommend``: the recommendations of a saved model to a user, with titles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fedmf.cli.manners import errors_in_one_line
from fedmf.data import NAMES, Ratings, load
from fedmf.data.checks import same_ids
from fedmf.errors import DataError, ModelError
from fedmf.models import Factors
from secagg.bench.table import Column, Table, as_text
from secagg.bench.table import as_json as to_json
from secagg.cli.console import Json

HISTORY = "history.json"

EXAMPLES = """
[bold]Examples[/bold]

fedmf train --out runs/demo  [dim]# write a model and its history[/dim]

fedmf recommend runs/demo --user 7

fedmf recommend runs/demo/model.fedmf --user 7 -k 3 --data simulated --json
"""


def recommend(
    model: Annotated[
        Path, typer.Argument(help="The file model.fedmf, or the folder of fedmf train --out.")
    ],
    user: Annotated[int, typer.Option(help="The data set's own id of the user.")],
    k: Annotated[int, typer.Option("-k", help="The number of items.")] = 10,
    data: Annotated[
        str | None,
        typer.Option(
            help=f"The training data of the model: {', '.join(NAMES)}.",
            show_default="from history.json beside the model",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recommend unrated items to a user, the best first.

    Predictions are in the unit of the ratings and not clipped to their scale. Items of the test
    part may appear, as the model was not trained on their ratings.
    """
    with errors_in_one_line("before the recommendations"):
        path = model / "model.fedmf" if model.is_dir() else model
        factors = _loaded(path)
        name = _recorded(path, "data") if data is None else data
        if name is None:
            raise DataError(
                f"{path.with_name(HISTORY)} is missing or has no data set: give the "
                "training data of the model with --data, such as --data simulated"
            )
        ratings = load(name)
        if not same_ids(factors, ratings):
            raise ModelError(
                f"{path} was not trained on {name}, whose {ratings.n_users} users or "
                f"{ratings.n_items} items differ: give its training data with --data"
            )
        items = _recommended(factors, ratings, user, k)
        document = {"data": name, "user": user, "items": items}
        typer.echo(to_json(document) if as_json else _table(items))


def _loaded(path: Path) -> Factors:
    """Load the model; raises ModelError, also for a training whose mask cannot be saved."""
    if not path.exists() and (_recorded(path, "mask") or "").startswith("NNMask"):
        raise ModelError(
            f"{path} was not saved: {HISTORY} records the mask nn, which has no factor form; "
            "train with --mask ridge, fm or mean"
        )
    return Factors.load(path)


def _recorded(path: Path, name: str) -> str | None:
    """Return a setting from history.json beside the model, or None if it is not there."""
    try:
        found = json.loads(path.with_name(HISTORY).read_bytes())["settings"][name]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _recommended(factors: Factors, ratings: Ratings, user: int, k: int) -> list[dict[str, Any]]:
    rows = np.flatnonzero(ratings.user_ids == user)
    if rows.size == 0:
        ids = ratings.user_ids
        raise ModelError(
            f"--user {user} is unknown: {ratings.name} has {ids.size} users, with ids from "
            f"{ids.min()} to {ids.max()}"
        )
    known = ratings.catalogue
    return [
        {
            "rank": rank,
            "item": int(ratings.item_ids[item]),
            "title": known.titles[item],
            "year": int(known.years[item]) or None,
            "genres": [known.genre_names[one] for one in np.flatnonzero(known.genres[item])],
            "prediction": float(prediction),
        }
        for rank, (item, prediction) in enumerate(
            zip(*factors.recommend(int(rows[0]), k), strict=True), start=1
        )
    ]


def _table(items: list[dict[str, Any]]) -> str:
    heads = ("", "title", "year", "genres", "rating")
    columns = [Column(head, left=head in ("title", "genres")) for head in heads]
    rows = [
        (
            str(one["rank"]).rjust(len(str(len(items)))),
            one["title"],
            str(one["year"] or ""),
            ", ".join(one["genres"]),
            f"{one['prediction']:.2f}",
        )
        for one in items
    ]
    return as_text(Table(columns=columns, rows=rows))
