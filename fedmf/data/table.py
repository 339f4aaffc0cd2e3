"""`Table` of ratings, `Named` for errors with column and row, and the search for columns."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.data.coded import Coded
from fedmf.data.times import Nanos
from fedmf.errors import DataError

SHOWN = 20  # names and characters of a header in a message
LENGTH = 40
DECIMAL_COMMA = re.compile(r"\s*[0-9]+,[0-9]+\s*")


@dataclass(frozen=True, eq=False)
class Named:
    """Names of columns and places of rows, and the errors that have both.

    Parameters
    ----------
    name : name of the table, for messages
    titles : names of the columns of users, items, ratings and, optionally, times
    place : function from the position of a row, from 0, to the place, such as "line 7"
    """

    name: str
    titles: Sequence[object]
    place: Callable[[int], str]

    def wrong(self, row: int, column: int, fault: str) -> DataError:
        """Return the error for an entry; `column` is the position in `titles`."""
        return DataError(f"{self.name}, {self.place(row)}: {self.titles[column]} {fault}")

    def empty(self, row: int, column: int) -> DataError:
        """Return the error for an empty entry."""
        return self.wrong(row, column, "is empty: fill it in or remove the row")

    def no_number(self, row: int, entry: object) -> DataError:
        """Return the error for a rating that is no number, or is empty."""
        text = str(entry).rstrip()
        if not text:
            return self.empty(row, 2)
        remedy = "correct it"
        if DECIMAL_COMMA.fullmatch(text):
            remedy = "write decimal points"
        elif text.casefold() in ("true", "false"):
            remedy = "write 1 and 0"
        fault = f"{short(entry)} is not a number such as 4 or 3.5: {remedy}"
        return self.wrong(row, 2, fault)

    def no_time(self, row: int, entry: object) -> DataError:
        """Return the error for an entry that is no time, or is empty."""
        if not str(entry).rstrip():
            return self.empty(row, 3)
        fault = "is neither a number of seconds nor a date such as 2024-05-31: correct it"
        return self.wrong(row, 3, f"{short(entry)} {fault}")


@dataclass(frozen=True, eq=False)
class Table(Named):
    """Columns of users, items, ratings and times, one row per rating.

    Parameters
    ----------
    users, items : ids of each row
    values : float64, shape (n_rows,): ratings
    times : int64, shape (n_rows,): seconds, or None without a column of times
    nanos : int32 or int64, shape (n_rows,): nanoseconds after `times`, or None if all are 0
    """

    users: Coded
    items: Coded
    values: NDArray[np.float64]
    times: NDArray[np.int64] | None
    nanos: Nanos | None


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
