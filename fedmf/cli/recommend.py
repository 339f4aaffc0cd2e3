"""``fedmf recommend``: what a saved model recommends to a user, with titles."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedmf.cli.manners import errors_in_one_line
from fedmf.data import NAMES, Ratings, load
from fedmf.errors import DataError, ModelError, SettingError
from fedmf.models import Factors

__all__ = ["EXAMPLES", "recommend"]

HISTORY = "history.json"

EXAMPLES = """
[bold]Examples[/bold]

fedmf train --out runs/demo  [dim]# a model, and beside it the data set's name[/dim]

fedmf recommend runs/demo --user 7

fedmf recommend runs/demo/model.fedmf --user 7 -k 3 --data simulated --json
"""


@dataclass(frozen=True)
class Recommended:
    """An item as it is shown; `year` is None where it is unknown."""

    rank: int
    item: int
    title: str
    year: int | None
    genres: tuple[str, ...]
    prediction: float


def recommend(
    model: Annotated[
        Path, typer.Argument(help="A model.fedmf, or the folder of fedmf train --out.")
    ],
    user: Annotated[int, typer.Option(help="Whom: the data set's own id of the user.")],
    k: Annotated[int, typer.Option("-k", help="How many.")] = 10,
    data: Annotated[
        str | None,
        typer.Option(
            help=f"What the model was trained on: {', '.join(NAMES)}.",
            show_default="as history.json beside the model says",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document in place of the table.")
    ] = False,
) -> None:
    """Recommend to a user what they have not rated in training, the best first.

    Predictions are in the unit of the ratings and not clipped to their scale. What was held
    out of the training may come up, as the model has not seen it.
    """
    with errors_in_one_line("before anything was recommended"):
        path = model / "model.fedmf" if model.is_dir() else model
        factors = _loaded(path)
        name = _trained_on(path) if data is None else data
        ratings = load(name)
        _check_same(path, factors, ratings)
        found = _recommended(factors, ratings, user, k)
        if as_json:
            items = [asdict(one) for one in found]
            typer.echo(json.dumps({"data": name, "user": user, "items": items}, indent=2))
        else:
            _print(found)


def _loaded(path: Path) -> Factors:
    """Return the model; one that is not there may have been trained and not written."""
    if not path.exists() and (mask := _mask(path)) is not None and mask.startswith("NNMask"):
        raise ModelError(
            f"there is no {path}: {HISTORY} says that it was trained with the mask nn, and "
            "such a model cannot be written as factors; train with --mask ridge, fm or mean"
        )
    return Factors.load(path)


def _mask(path: Path) -> str | None:
    """Return the mask that history.json beside the model names, None if it names none."""
    try:
        mask = json.loads(path.with_name(HISTORY).read_bytes())["settings"]["mask"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return mask if isinstance(mask, str) else None


def _trained_on(path: Path) -> str:
    """Return the data set that history.json beside the model names."""
    history = path.with_name(HISTORY)
    try:
        name = json.loads(history.read_bytes())["settings"]["data"]
    except OSError as error:
        raise SettingError(
            f"name what the model was trained on, such as --data simulated: {history} "
            f"cannot be read ({error.strerror})"
        ) from None
    except (ValueError, KeyError, TypeError):
        name = None
    if not isinstance(name, str):
        raise DataError(f"{history} does not name a data set; say it by --data")
    return name


def _check_same(path: Path, factors: Factors, ratings: Ratings) -> None:
    """Refuse titles and ids that are not those of the model."""
    if not (
        np.array_equal(factors.user_ids, ratings.user_ids)
        and np.array_equal(factors.item_ids, ratings.item_ids)
    ):
        raise ModelError(
            f"{path} was trained on other data: its {factors.n_users} users and "
            f"{factors.n_items} items are not the {ratings.n_users} users and "
            f"{ratings.n_items} items of {ratings.name}; name by --data what it was trained on"
        )


def _recommended(factors: Factors, ratings: Ratings, user: int, k: int) -> list[Recommended]:
    rows = np.flatnonzero(ratings.user_ids == user)
    if rows.size == 0:
        ids = ratings.user_ids
        raise ModelError(
            f"--user {user} is not among the {ids.size} users of {ratings.name}, whose ids are "
            f"from {ids.min()} to {ids.max()}"
        )
    items, predictions = factors.recommend(int(rows[0]), k)
    catalogue = ratings.catalogue
    return [
        Recommended(
            rank=rank,
            item=int(ratings.item_ids[item]),
            title=catalogue.titles[item],
            year=int(catalogue.years[item]) or None,
            genres=tuple(
                genre
                for genre, of_it in zip(
                    catalogue.genre_names, catalogue.genres[item], strict=True
                )
                if of_it
            ),
            prediction=float(prediction),
        )
        for rank, (item, prediction) in enumerate(zip(items, predictions, strict=True), start=1)
    ]


def _print(found: list[Recommended]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("title")
    table.add_column("year", justify="right")
    table.add_column("genres")
    table.add_column("rating", justify="right")
    for one in found:
        table.add_row(
            str(one.rank),
            Text(one.title),  # as it is: brackets are no markup
            "" if one.year is None else str(one.year),
            Text(", ".join(one.genres)),
            f"{one.prediction:.2f}",
        )
    Console(highlight=False).print(table)
