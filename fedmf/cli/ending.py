"""Last lines of ``fedmf train``: the rounds that an early end kept, and the way to go on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fedmf.cli.manners import command_line
from fedmf.cli.ranker import FILE

BETTER = (
    "not saved: {out} keeps the start, which is better; --force replaces it, and another --out "
    "keeps both"
)


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
