"""``fedmf recommend``: the recommendations of a saved model to a user, with titles."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fedmf.cli.manners import errors_in_one_line, option, stderr
from fedmf.cli.models import Saved, load_model
from fedmf.cli.own import is_file
from fedmf.cli.ranker import FILE
from fedmf.cli.start import HISTORY, recorded_text
from fedmf.data import NAMES, Catalogue, load
from fedmf.data.checks import same_ids
from fedmf.data.columns import titles_alone
from fedmf.errors import ModelError
from secagg.cli.console import Json
from secagg.kit.table import Column, Table, as_text
from secagg.kit.table import as_json as to_json

REASONS = 2  # rated items that explain a recommendation

EXAMPLES = """
[bold]Examples[/bold]

fedmf train --out runs/demo  [dim]# write a model and its history[/dim]

fedmf recommend runs/demo --user 7

fedmf recommend runs/own --user ada  [dim]# a name, as in your file[/dim]

fedmf recommend runs/demo/model.fedmf --user 7 -k 3 --data simulated --json
"""


def recommend(
    model: Annotated[
        Path, typer.Argument(help="The folder of fedmf train --out, or a model file alone.")
    ],
    user: Annotated[str, option("The data set's own id of the user, such as ada.")],
    k: Annotated[int, option("The number of items.", True, "-k")] = 10,
    data: Annotated[
        str | None,
        option(
            f"The training data of the model: {', '.join(NAMES)}.",
            "from history.json beside the model",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recommend unrated items to a user, the best first.

    In a folder, ranking.fedmf orders the items, and model.fedmf predicts the ratings. A first
    line, on stderr, names both. Items of the test part may appear, as the models were not
    trained on the test ratings.
    """
    with errors_in_one_line("before the recommendations"):
        path = model / "model.fedmf" if model.is_dir() else model
        trained = _loaded(path)
        ranker = _ranker(model / FILE, trained) if model.is_dir() else None
        name = recorded_text(path, "data") if data is None else data
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
        number = _number(trained, user)
        items = _recommended(trained, ranker, catalogue, number, k)
        trainer = "implicit" if path.name == FILE else recorded_text(path, "model")
        about = _about(trained, trainer, second=ranker is not None)
        if not any(one.get("score", 1) for one in items):
            about += "; the user rated nothing in training: all scores are 0"
        console.print(about, soft_wrap=True)
        ranks = trained.ranks or ranker is not None
        document = {"data": name, "user": _id(trained, user), "ranks": ranks}
        typer.echo(to_json(document | {"items": items}) if as_json else _table(items))


def _about(trained: Saved, model: str | None, *, second: bool) -> str:
    """Return a line with the models that rank and predict."""
    if second:
        return f"ranked by {FILE} (implicit), ratings predicted by {model or 'model.fedmf'}"
    if trained.ranks:
        return f"ranked by {model or 'a model of implicit feedback'}"
    remedy = f"give a folder with {FILE}, or train --model implicit"
    if model == "dpfedmf":  # the exact sums of other models would undo its noise
        remedy = "train --model dpease, with an ε of its own"
    return (
        f"ranked by the predicted ratings of {model or 'the model'}, which mostly rank badly: "
        f"{remedy}"
    )


def _ranker(path: Path, trained: Saved) -> Saved | None:
    """Return the model that ranks beside a model of ratings, or None if there is none."""
    if trained.ranks or not path.exists():
        return None
    ranker = load_model(path)
    if not same_ids(ranker, trained):
        raise ModelError(
            f"{path} has other users or items than the model beside it: train both again"
        )
    return ranker


def _catalogue(path: Path, trained: Saved, name: str) -> Catalogue:
    """Return the catalogue of the training data; ModelError if `name` is other data."""
    ratings = load(name)
    if not same_ids(trained, ratings):
        raise ModelError(
            f"{path} was not trained on {name}, whose {ratings.n_users} users or "
            f"{ratings.n_items} items differ: give its training data with --data"
        )
    return ratings.catalogue


def _id(trained: Saved, user: str) -> int | str:
    """Return the id that the text of --user means: an integer if the ids are integers."""
    number = trained.user_ids.dtype.kind == "i" and re.fullmatch("-?[0-9]{1,18}", user)
    return int(user) if number else user


def _number(trained: Saved, user: str) -> int:
    """Return the number of the user; raises ModelError if the user is unknown."""
    ids: list[Any] = trained.user_ids.tolist()
    wanted = _id(trained, user)
    if wanted in ids:
        return ids.index(wanted)
    known = f"ids from {min(ids)} to {max(ids)}"
    texts = [str(one) for one in ids]
    close = [one for one in texts if _same_number(one, user)]
    if not close and isinstance(ids[0], str):
        close = difflib.get_close_matches(user, texts, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ""
    raise ModelError(
        f"--user {user} is unknown: the model has {len(ids)} users, with {known}{guess}"
    )


def _same_number(one: str, other: str) -> bool:
    """Return True for texts such as 7 and 7.0, which pandas writes where a column has gaps."""
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def _loaded(path: Path) -> Saved:
    """Load the model; raises ModelError, also if the training's mask cannot be saved."""
    if not path.exists() and (recorded_text(path, "mask") or "").startswith("NNMask"):
        raise ModelError(
            f"{path} was not saved: {HISTORY} records the mask nn, which has no factor form; "
            "train with --mask ridge, fm or mean"
        )
    return load_model(path)


def _recommended(
    trained: Saved, ranker: Saved | None, known: Catalogue | None, user: int, k: int
) -> list[dict[str, Any]]:
    """Return the items with titles; the ids are the titles without a catalogue.

    A model that ranks gives a score and the rated items that add most to the score. A model of
    ratings gives a rating within the scale.
    """
    ids = trained.item_ids.tolist()
    if known is None:
        known = titles_alone(map(str, ids))
    best = trained if ranker is None else ranker
    items, scores = best.recommend(user, k)
    found: list[dict[str, Any]] = [
        {
            "rank": rank,
            "item": ids[item],
            "title": known.titles[item],
            "year": int(known.years[item]) or None,
            "genres": [known.genre_names[one] for one in np.flatnonzero(known.genres[item])],
        }
        for rank, item in enumerate(items.tolist(), start=1)
    ]
    if not trained.ranks:
        ratings = trained.predict(np.full(items.size, user), items)
        if trained.scale is not None:
            ratings = np.clip(ratings, *trained.scale)
        for one, rating in zip(found, ratings.tolist(), strict=True):
            one["prediction"] = rating
    if best.ranks:
        for one, item, score in zip(found, items.tolist(), scores.tolist(), strict=True):
            because = best.explain(user, item, REASONS)[0]
            one["score"] = score
            one["because"] = [known.titles[other] for other in because.tolist()]
    return found


def _table(items: list[dict[str, Any]]) -> str:
    known = items[0] if items else {}
    heads = {"prediction": "rating", "score": "score"}
    numbers = [name for name in heads if name in known]
    because = ["because you rated"] if "because" in known else []
    public = [name for name in ("year", "genres") if any(one[name] for one in items)]
    titles = ["", "title", *public, *(heads[name] for name in numbers), *because]
    left = {"title", "genres", *because}
    rows = [
        (
            str(one["rank"]).rjust(len(str(len(items)))),
            one["title"],
            *(_public(one[name]) for name in public),
            *(f"{one[name]:{'.2f' if name == 'prediction' else '.4f'}}" for name in numbers),
            *("; ".join(one["because"]) for _ in because),
        )
        for one in items
    ]
    return as_text(
        Table(columns=[Column(head, left=head in left) for head in titles], rows=rows)
    )


def _public(known: int | list[str] | None) -> str:
    """Return the year or the genres of an item as text."""
    return ", ".join(known) if isinstance(known, list) else str(known or "")
