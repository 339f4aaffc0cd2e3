"""``fedmf search``: score settings of a model inside the training ratings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from fedmf.aggregate import PlainSum
from fedmf.cli import choices
from fedmf.cli.choices import SplitName
from fedmf.cli.manners import (
    Columns,
    Duplicates,
    Scale,
    Table,
    command_line,
    errors_in_one_line,
    option,
    stderr,
)
from fedmf.cli.models import KINDS, Kind, ModelName, Order, features_of, suited
from fedmf.cli.own import TABLE, ratings_of
from fedmf.errors import SettingError
from fedmf.fcf import views
from fedmf.search import Candidate, SearchResult
from fedmf.search import search as search_grid
from secagg.cli.console import Json
from secagg.kit.table import Column, as_text
from secagg.kit.table import Table as Rows
from secagg.kit.timing import INTERRUPTED

EXAMPLES = """
[bold]Examples[/bold]

fedmf search --model fedmf --grid k=8,16 --grid reg=.05,.1  [dim]# a tenth for validation[/dim]

fedmf search --data ratings.csv --scale 1,5 --model fedals --grid reg=.1,.2 --folds 5

fedmf search --model implicit --grid k=16,32 --measure precision --json > search.json
"""

NAMES = ("k", "reg", "rate", "min_raters")
ALIASES = {"factors": "k"}  # the option of fedmf train has both names


def search(
    context: typer.Context,
    data: Table = "simulated",
    columns: Columns = None,
    scale: Scale = None,
    duplicates: Duplicates = None,
    model: Annotated[ModelName, option("The model, as in fedmf train.")] = "fedbpmf",
    grid: Annotated[
        list[str] | None,
        option(
            "A setting and its values, such as reg=.05,.1; once for each setting: "
            f"{', '.join(NAMES)}, rounds.",
            False,
        ),
    ] = None,
    folds: Annotated[int | None, option("The number of folds.", "one validation part")] = None,
    validation: Annotated[
        float, option("The share of the validation part, without --folds.")
    ] = 0.1,
    measure: Annotated[
        str | None,
        option(
            "rmse, mae, or a measure of the first 10 items, such as precision or map.",
            "rmse; map for models that rank",
        ),
    ] = None,
    split: Annotated[
        SplitName, option("The test part, which is left out; see fedmf train.")
    ] = "random",
    seed: Annotated[int, option("The seed of the split, the folds and the trainings.")] = 0,
    as_json: Json = False,
) -> None:
    """Score every combination of settings, without the test ratings of fedmf train.

    Each candidate is a whole training per fold. Sums are in the clear, as they have the same
    integers as secure sums. In a deployment the server would see the sums of every training.
    Ctrl-C ends the search early and shows the finished candidates.
    """
    console = stderr()
    with errors_in_one_line("before the first candidate was finished"):
        kind = KINDS[model]
        chosen = _grid(kind, model, grid or [])
        learner = _learner(kind, model, seed)
        names = {name: _setting(learner, name) for name in chosen}
        table = {name: context.params[name] for name in TABLE}
        ratings, source = ratings_of(**table)
        suited(learner, ratings.n_items, None)
        train = choices.split(ratings, split, seed).train

        def report(one: Candidate, done: int, of: int) -> None:
            shown = ", ".join(
                f"{name} {one.settings[setting]}" for name, setting in names.items()
            )
            score = f"failed: {one.error}" if one.scores is None else str(one.scores)
            line = f"{done:3} of {of}  {shown}  {score}  {one.seconds:.1f} s"
            console.print(line, style="red" if one.scores is None else None, soft_wrap=True)

        with console.status("training"):
            found = search_grid(
                learner,
                {names[name]: values for name, values in chosen.items()},
                views(train) if kind.ranks else train,
                validation=validation,
                folds=folds,
                seed=seed,
                measure=measure or ("map" if kind.ranks else "rmse"),
                first=min(10, train.n_items),
                fit_params=features_of(learner, train),
                progress=report,
            )
        settings = {**source, "model": model, "split": split, "seed": seed}
        settings |= {"folds": folds, "validation": None if folds else validation}
        typer.echo(
            json.dumps({"settings": settings, **_named(found, names)}, indent=2)
            if as_json
            else _table(found, names)
        )
        best = {name: found.settings[setting] for name, setting in names.items()}
        given = {
            **table,
            "data": data if data != "simulated" else None,
            "split": split if split != "random" else None,
            "seed": seed or None,
        }
        advice = command_line("fedmf train", {**given, "model": model, **best})
        console.print(f"train it: {advice}", soft_wrap=True)
        if found.interrupted:
            console.print("interrupted: the finished candidates are shown", style="yellow")
            raise typer.Exit(INTERRUPTED)


def _grid(kind: Kind, model: str, given: Sequence[str]) -> dict[str, list[int | float]]:
    """Return the values of each setting of --grid; raises SettingError."""
    if "epsilon" in kind.takes:
        raise SettingError(
            f"--model {model} adds noise, and each training of a search would spend its budget "
            "again: choose the settings in Python, on public ratings, with public=True"
        )
    known = [*(name for name in NAMES if name in kind.takes), "rounds"]
    found: dict[str, list[int | float]] = {}
    for text in given:
        name, _, values = text.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        name = ALIASES.get(name, name)
        if name not in known or name in found:
            raise SettingError(
                f"--grid {text}: give each setting of --model {model} once: {', '.join(known)}"
            )
        try:
            found[name] = [_number(one) for one in values.split(",")]
        except ValueError:
            raise SettingError(
                f"--grid {text} must be a setting and numbers, such as --grid reg=.05,.1"
            ) from None
    if not found:
        raise SettingError(f"--grid is missing: give values of {', '.join(known)}")
    return found


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _learner(kind: Kind, model: str, seed: int) -> Any:
    """Return the estimator of a model with the usual settings and a sum in the clear."""
    summing = PlainSum().set_params(**kind.sums)
    order = Order(
        masked=choices.masked(model, None),
        common={"aggregation": summing, "seed": seed, "cohort": None, "dropout": 0.0},
        rounds=kind.rounds,
    )
    return order.learner(kind.build(order))


def _setting(learner: Any, name: str) -> str:
    """Return the name of a setting in ``get_params``, the least nested one."""
    found = [one for one in learner.get_params() if one.rpartition("__")[2] == name]
    return str(min(found, key=lambda one: one.count("__")))


def _named(found: SearchResult[Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the result as a dictionary, with the names of --grid."""
    result: dict[str, Any] = found.as_dict()
    for one in (result, *result["candidates"]):
        key = "best" if one is result else "settings"
        one[key] = {name: one[key][setting] for name, setting in names.items()}
    return result


def _table(found: SearchResult[Any], names: Mapping[str, str]) -> str:
    heads = (*names, found.measure, "± standard error", "seconds", "")
    rows = []
    for one in found.candidates:
        mean = error = "failed"
        if one.scores is not None:
            mean, spread = f"{one.scores.mean:.4f}", one.scores.standard_error
            error = "" if spread is None else f"{spread:.4f}"
        values = [str(one.settings[setting]) for setting in names.values()]
        mark = "best" if one is found.best else ""
        rows.append((*values, mean, error, f"{one.seconds:.1f}", mark))
    return as_text(Rows(columns=[Column(head) for head in heads], rows=rows))
