"""`Table`, three or four columns of a file or frame, and the search for column names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.data.coded import Coded
from fedmf.errors import DataError

SHOWN = 20  # names and characters of a header in a message
LENGTH = 40


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of users, items, ratings and times, one row per rating.

    Parameters
    ----------
    name : name of the table, for messages
    users, items : ids of each row
    values : float64, shape (n_rows,): ratings, finite
    times : int64, shape (n_rows,): seconds, or None without a column of times
    nanos : int32 or int64, shape (n_rows,): nanoseconds after `times`, or None if all are 0
    place : function from the position of a row, from 0, to the place, such as "line 7"
    """

    name: str
    users: Coded
    items: Coded
    values: NDArray[np.float64]
    times: NDArray[np.int64] | None
    nanos: NDArray[np.int32] | NDArray[np.int64] | None
    place: Callable[[int], str]


def positions(
    name: str, heads: Sequence[object], columns: Sequence[object], remedy: str = ""
) -> list[int]:
    """Return the position of each column; raises DataError for a missing or double column.

    A column has an equal name, or else a name with the same text.

    Parameters
    ----------
    name : name of the table, for messages
    heads : names in the table
    columns : names to find
    remedy : remedy for a table with names that look like a rating
    """
    texts = [str(head) for head in heads]
    found = []
    for column in columns:
        places = _equal(heads, column) or _equal(texts, str(column))
        if len(places) > 1:
            numbers = ", ".join(str(place + 1) for place in places)
            raise DataError(
                f"{name} has {len(places)} columns of the name {short(column)}, at the "
                f"positions {numbers}: rename all but one"
            )
        if not places:
            shown = ", ".join(short(head) for head in heads[:SHOWN])
            more = f" and {len(heads) - SHOWN} more" if len(heads) > SHOWN else ""
            raise DataError(
                f"{name} has no column {short(column)}: set columns to names of its header, "
                f"{shown}{more}{_guess(heads, str(column), remedy)}"
            )
        found += places
    return found


def _equal(heads: Sequence[object], column: object) -> list[int]:
    return [
        place
        for place, head in enumerate(heads)
        if isinstance(head, str) == isinstance(column, str) and head == column
    ]


def short(entry: object) -> str:
    """Return the entry for a message; a long entry is cut off."""
    shown = repr(entry)
    return shown if len(shown) <= LENGTH else f"{shown[:LENGTH]}…"


def _guess(heads: Sequence[object], column: str, remedy: str) -> str:
    """Return a hint at the end of the message, or nothing."""
    names = [head for head in heads if isinstance(head, str)]
    if remedy and any(map(is_number, names)):
        return f"; {remedy}"
    folded = {name.casefold(): name for name in reversed(names)}
    close = difflib.get_close_matches(column.casefold(), folded, n=1, cutoff=0.5)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


def is_number(entry: object) -> bool:
    """Return True for a number, also as a text, but not for a truth value."""
    try:
        float(entry)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        return False
    return not isinstance(entry, bool | np.bool_)
