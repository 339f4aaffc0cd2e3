"""Last lines of ``fedmf train``: a model of no use, an early end, and the way to go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedmf.cli.manners import command_line
from fedmf.cli.ranker import FILE
from fedmf.data import Ratings

BETTER = (
    "not saved: {out} keeps the start, which is better; --force replaces it, and another --out "
    "keeps both"
)


def doubts(result: Mapping[str, Any], train: Ratings, *, ranks: bool) -> Iterator[str]:
    """Yield reasons why a model may be of no use, such as an error not below the baseline's.

    Figures are compared in the digits that are shown.

    Parameters
    ----------
    result : measures, as in the "result" of `fedmf.cli.report.document`
    train : training part
    ranks : True if the model ranks items, and predicts no rating
    """
    if np.bincount(train.items, minlength=1).max() < 2:
        yield (
            f"no item of {train.name} has two raters in the training part, so no user's rating "
            "tells of another's: train on ratings that share items"
        )
    if ranks and "ranking" in result:
        own, other = (result[name]["precision"] for name in ("ranking", "popularity"))
        if round(own, 4) <= round(other, 4):
            yield (
                f"the precision {own:.4f} is not above {other:.4f} by popularity: recommend "
                "popular items, or train on more ratings or with other settings"
            )
    elif not ranks and "mean_rmse" in result:
        own, other = result.get("head_rmse", result["rmse"]), result["mean_rmse"]
        if own is not None and not round(own, 4) < round(other, 4):
            remedy = "train on more ratings, for more rounds or with other settings"
            if not round(other, 4):
                remedy = "of equal ratings train --model implicit"
            found = f"{own:.4f} is not below {other:.4f} of the mean rating"
            yield f"the test RMSE {found}: {remedy}"


def interrupted_line(rounds: int, out: Path | None, *, saved: bool) -> str:
    """Return a line about the finished rounds of a training that was interrupted.

    Parameters
    ----------
    rounds : int, number of finished rounds
    out : folder of the model, or None
    saved : True if the model is in `out`
    """
    if not rounds:
        return "interrupted: no round was finished, nothing is kept"
    why = " as --out is not given" if out is None else ""
    return (
        f"interrupted: the {rounds} rounds done are {'kept' if saved else 'not saved,' + why}"
    )


def going_on(out: Path, options: Mapping[str, object], *, starts: bool) -> str:
    """Return a line about the ranking.fedmf that an interrupted training lacks.

    Parameters
    ----------
    out : folder of the model
    options : options of the data, the sum and the rounds
    starts : True if the model takes --start
    """
    lacks = f"no {FILE}, by which fedmf recommend ranks"
    if not starts:
        return f"{lacks}: train again, to the end"
    command = command_line("fedmf train", {**options, "start": out, "out": out})
    return f"{lacks}; go on, and make it: {command}"
