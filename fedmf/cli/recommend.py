"""``fedmf recommend``: the recommendations of a saved model to a user, with titles."""

from __future__ import annotations

import difflib
import json
import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fedmf.cli.manners import errors_in_one_line, stderr
from fedmf.cli.models import Saved, load_model
from fedmf.cli.own import is_file
from fedmf.data import NAMES, Catalogue, load
from fedmf.data.checks import same_ids
from fedmf.data.columns import titles_alone
from fedmf.errors import ModelError
from secagg.bench.table import Column, Table, as_text
from secagg.bench.table import as_json as to_json
from secagg.cli.console import Json

HISTORY = "history.json"

EXAMPLES = """
[bold]Examples[/bold]

fedmf train --out runs/demo  [dim]# write a model and its history[/dim]

fedmf recommend runs/demo --user 7

fedmf recommend runs/own --user ada  [dim]# a name, as in your file[/dim]

fedmf recommend runs/demo/model.fedmf --user 7 -k 3 --data simulated --json
"""


def recommend(
    model: Annotated[
        Path, typer.Argument(help="The file model.fedmf, or the folder of fedmf train --out.")
    ],
    user: Annotated[str, typer.Option(help="The data set's own id of the user, such as ada.")],
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

    A first line, on stderr, says whether the model ranks items or predicts ratings. Items of
    the test part may appear, as the model was not trained on their ratings.
    """
    with errors_in_one_line("before the recommendations"):
        path = model / "model.fedmf" if model.is_dir() else model
        trained = _loaded(path)
        name = _recorded(path, "data") if data is None else data
        console = stderr()
        catalogue = None
        if name is None:
            console.print(
                f"{path.with_name(HISTORY)} is missing or has no data set: ids are shown for "
                "titles; --data gives the titles",
                soft_wrap=True,
            )
        elif not is_file(name):
            catalogue = _catalogue(path, trained, name)
        items = _recommended(trained, catalogue, _number(trained, user), k)
        console.print(_about(trained, _recorded(path, "model")), soft_wrap=True)
        document = {"data": name, "user": _id(trained, user), "ranks": trained.ranks}
        typer.echo(
            to_json(document | {"items": items})
            if as_json
            else _table(items, ranks=trained.ranks)
        )


def _about(trained: Saved, model: str | None) -> str:
    if trained.ranks:
        return f"ranked by {model or 'a model of implicit feedback'}"
    return "predicted ratings; models trained for ratings rank badly, --model implicit ranks"


def _catalogue(path: Path, trained: Saved, name: str) -> Catalogue:
    """Return the catalogue of the training data; ModelError if the data are others."""
    ratings = load(name)
    if not same_ids(trained, ratings):
        raise ModelError(
            f"{path} was not trained on {name}, whose {ratings.n_users} users or "
            f"{ratings.n_items} items differ: give its training data with --data"
        )
    return ratings.catalogue


def _id(trained: Saved, user: str) -> int | str:
    """Return the id that the text of --user means, an integer if the ids are."""
    number = trained.user_ids.dtype.kind == "i" and re.fullmatch("-?[0-9]{1,18}", user)
    return int(user) if number else user


def _number(trained: Saved, user: str) -> int:
    """Return the number of the user; raises ModelError if the user is unknown."""
    ids: list[Any] = trained.user_ids.tolist()
    wanted = _id(trained, user)
    if wanted in ids:
        return ids.index(wanted)
    known = f"ids from {min(ids)} to {max(ids)}"
    close = difflib.get_close_matches(user, map(str, ids), n=1)
    guess = f"; did you mean {close[0]!r}?" if close and isinstance(ids[0], str) else ""
    raise ModelError(
        f"--user {user} is unknown: the model has {len(ids)} users, with {known}{guess}"
    )


def _loaded(path: Path) -> Saved:
    """Load the model; raises ModelError, also for a training whose mask cannot be saved."""
    if not path.exists() and (_recorded(path, "mask") or "").startswith("NNMask"):
        raise ModelError(
            f"{path} was not saved: {HISTORY} records the mask nn, which has no factor form; "
            "train with --mask ridge, fm or mean"
        )
    return load_model(path)


def _recorded(path: Path, name: str) -> str | None:
    """Return a setting from history.json beside the model, or None if it is not there."""
    try:
        found = json.loads(path.with_name(HISTORY).read_bytes())["settings"][name]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _recommended(
    trained: Saved, known: Catalogue | None, user: int, k: int
) -> list[dict[str, Any]]:
    """Return the items with their titles; the ids are the titles without a catalogue."""
    ids = trained.item_ids.tolist()
    if known is None:
        known = titles_alone(map(str, ids))
    return [
        {
            "rank": rank,
            "item": ids[item],
            "title": known.titles[item],
            "year": int(known.years[item]) or None,
            "genres": [known.genre_names[one] for one in np.flatnonzero(known.genres[item])],
            "prediction": float(prediction),
        }
        for rank, (item, prediction) in enumerate(
            zip(*trained.recommend(user, k), strict=True), start=1
        )
    ]


def _table(items: list[dict[str, Any]], *, ranks: bool) -> str:
    heads = ("", "title", "year", "genres", "score" if ranks else "rating")
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
