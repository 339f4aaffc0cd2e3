"""Strict reading of text tables: whatever is not as expected is named with file and line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedmf.errors import DataError

__all__ = [
    "NUMBER",
    "Field",
    "RatingTable",
    "damaged",
    "read_bytes",
    "read_lines",
    "read_numbers",
    "read_rating_table",
    "refuse_repeated",
]

# One column of a table of numbers: its name, for messages, and the pattern of what it may hold.
Field = tuple[str, bytes]
NUMBER = rb"[0-9]{1,9}"

FIELDS: tuple[Field, ...] = (
    ("user id", NUMBER),
    ("item id", NUMBER),
    ("rating", rb"[0-9]{1,2}(?:\.[0-9]{1,2})?"),
    ("time", rb"[0-9]{1,12}"),
)

# A tab is a separator in some files, and artists' names hold characters that are not printable.
CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")


@dataclass(frozen=True, eq=False)
class RatingTable:
    """The four columns of a file of ratings, in the file's order, each of shape (n_ratings,).

    `users`, `items` and `times` are int64 as written, 0 <= id < 10**9; `values` is float64.
    """

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    values: NDArray[np.float64]
    times: NDArray[np.int64]


def damaged(path: Path, line: int, what: str) -> DataError:
    """Return the error for one line of a file, counted from 1."""
    return DataError(f"{path.name}, line {line}: {what}; unpack the data set again ({path})")


def read_bytes(path: Path) -> bytes:
    """Return a file's content.

    Raises
    ------
    DataError
        If the file is missing, unreadable, empty, or ends in the middle of a line.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"the file {path.name} is missing from {path.parent}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if not content:
        raise DataError(f"{path} is empty")
    if not content.endswith(b"\n"):
        last = content.count(b"\n") + 1
        raise damaged(path, last, "the last line is cut short, it has no line end")
    return content


def read_lines(path: Path, encoding: str) -> list[str]:
    """Return a text file's lines without their ends (LF or CRLF).

    Raises
    ------
    DataError
        As `read_bytes`, and if a line is not printable text in this encoding.
    """
    lines = []
    for number, raw in enumerate(read_bytes(path).split(b"\n")[:-1], start=1):
        try:
            line = raw.removesuffix(b"\r").decode(encoding)
        except UnicodeDecodeError as error:
            what = f"byte {error.object[error.start]:#04x} is not {encoding} text"
            raise damaged(path, number, what) from None
        if CONTROL.search(line):
            raise damaged(path, number, f"{line[:60]!r} holds bytes that are no text")
        lines.append(line)
    return lines


def read_rating_table(
    path: Path, *, separator: str, header: str, scale: tuple[float, float], step: float
) -> RatingTable:
    """Read a file of lines "user, item, rating, time".

    Parameters
    ----------
    separator
        What stands between two fields.
    header
        The first line, or "" if the file has none.
    scale, step
        A rating is one of low, low + step, ..., high.

    Raises
    ------
    DataError
        As `read_bytes`, and if a line has other fields than these four numbers, a rating is
        not on the scale, or a user rates an item twice.
    """
    first, numbers = read_numbers(path, FIELDS, separator=separator, header=header)
    users, items, times = (numbers[:, column].astype(np.int64) for column in (0, 1, 3))
    table = RatingTable(users, items, numbers[:, 2].copy(), times)
    low, high = scale
    off = (table.values < low) | (table.values > high) | (table.values % step != 0)
    if off.any():
        worst = int(np.argmax(off))
        what = f"rating {table.values[worst]:g} is not in {low:g} to {high:g} by {step:g}"
        raise damaged(path, first + worst, what)
    refuse_repeated(path, first, users, items, "rates item")
    return table


def read_numbers(
    path: Path, fields: tuple[Field, ...], *, separator: str, header: str
) -> tuple[int, NDArray[np.float64]]:
    """Read a file of which each line holds these numbers and nothing else.

    Parameters
    ----------
    fields
        The columns; every number must be one that float64 holds exactly.
    separator, header
        As for `read_rating_table`.

    Returns
    -------
    first
        The line that the table begins with: 1, or 2 after a header.
    numbers
        float64, shape (n_lines, len(fields)).

    Raises
    ------
    DataError
        As `read_bytes`, and if a line is not as `fields` say.
    """
    content = read_bytes(path)
    first = 1
    if header:
        top, _, content = content.partition(b"\n")
        if top.rstrip(b"\r") != header.encode():
            raise damaged(path, 1, f"expected the header {header!r}, found {_shown(top)}")
        if not content:
            raise DataError(f"{path} holds a header and no line below it")
        first = 2

    # One pass of one pattern over the whole file finds the first line that is not sound.
    mark = separator.encode()
    line = re.escape(mark).join(form for _, form in fields)
    damage = re.search(rb"^(?!\Z)(?!" + line + rb"\r?$)", content, re.MULTILINE)
    if damage:
        start = damage.start()
        number = first + content.count(b"\n", 0, start)
        bad = content[start : content.index(b"\n", start)].removesuffix(b"\r")
        raise damaged(path, number, _complaint(bad, fields, separator))
    numbers = np.fromstring(content.replace(mark, b" "), sep=" ")
    return first, numbers.reshape(-1, len(fields))


def refuse_repeated(
    path: Path, first: int, users: NDArray[np.int64], items: NDArray[np.int64], verb: str
) -> None:
    """Refuse a table in which a pair of user and item, ids below 10**9, stands twice.

    Raises
    ------
    DataError
        Naming the first line that repeats an earlier one, as "user 1 <verb> 2 a second time".
    """
    pair = users * 10**9 + items
    order = np.argsort(pair, kind="stable")
    again = order[1:][pair[order[1:]] == pair[order[:-1]]]
    if again.size:
        worst = int(again.min())
        what = f"user {users[worst]} {verb} {items[worst]} a second time"
        raise damaged(path, first + worst, what)


def _shown(raw: bytes) -> str:
    """Return bytes from a file in a form fit for a message."""
    return repr(raw[:60].decode("ascii", "backslashreplace"))


def _complaint(line: bytes, fields: tuple[Field, ...], separator: str) -> str:
    """Say what is wrong with a line that is not these numbers."""
    found = line.split(separator.encode())
    if len(found) != len(fields):
        names = separator.join(name for name, _ in fields)
        return f"expected {len(fields)} fields {names!r}, found {len(found)} in {_shown(line)}"
    for (name, form), text in zip(fields, found, strict=True):
        if not re.fullmatch(form, text):
            return f"the {name} {_shown(text)} is not a number as expected"
    raise AssertionError(line)  # the pattern refused it, so one of the above holds
