"""Strict reading of text tables: whatever is not as expected is named with file and line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedmf.errors import DataError

__all__ = ["RatingTable", "damaged", "read_bytes", "read_lines", "read_rating_table"]

FIELDS = (
    ("user id", rb"[0-9]{1,9}"),
    ("item id", rb"[0-9]{1,9}"),
    ("rating", rb"[0-9]{1,2}(?:\.[0-9]{1,2})?"),
    ("time", rb"[0-9]{1,12}"),
)


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
        if not line.isprintable():
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
    content = read_bytes(path)
    first = 1
    if header:
        top, _, content = content.partition(b"\n")
        if top.rstrip(b"\r") != header.encode():
            raise damaged(path, 1, f"expected the header {header!r}, found {_shown(top)}")
        if not content:
            raise DataError(f"{path} holds no rating")
        first = 2

    # One pass of one pattern over the whole file finds the first line that is not sound.
    mark = separator.encode()
    line = re.escape(mark).join(form for _, form in FIELDS)
    damage = re.search(rb"^(?!\Z)(?!" + line + rb"\r?$)", content, re.MULTILINE)
    if damage:
        start = damage.start()
        number = first + content.count(b"\n", 0, start)
        bad = content[start : content.index(b"\n", start)].removesuffix(b"\r")
        raise damaged(path, number, _complaint(bad, separator))

    # The float64 of an integer below 10**12 is exact.
    numbers = np.fromstring(content.replace(mark, b" "), sep=" ").reshape(-1, 4)
    users, items, times = (numbers[:, column].astype(np.int64) for column in (0, 1, 3))
    table = RatingTable(users, items, numbers[:, 2].copy(), times)
    low, high = scale
    off = (table.values < low) | (table.values > high) | (table.values % step != 0)
    if off.any():
        worst = int(np.argmax(off))
        what = f"rating {table.values[worst]:g} is not in {low:g} to {high:g} by {step:g}"
        raise damaged(path, first + worst, what)
    pair = table.users * 10**9 + table.items
    order = np.argsort(pair, kind="stable")
    again = order[1:][pair[order[1:]] == pair[order[:-1]]]
    if again.size:
        worst = int(again.min())
        what = f"user {users[worst]} rates item {items[worst]} a second time"
        raise damaged(path, first + worst, what)
    return table


def _shown(raw: bytes) -> str:
    """Return bytes from a file in a form fit for a message."""
    return repr(raw[:60].decode("ascii", "backslashreplace"))


def _complaint(line: bytes, separator: str) -> str:
    """Say what is wrong with a line that is not four numbers."""
    fields = line.split(separator.encode())
    if len(fields) != len(FIELDS):
        names = separator.join(name for name, _ in FIELDS)
        return f"expected 4 fields {names!r}, found {len(fields)} in {_shown(line)}"
    for (name, form), field in zip(FIELDS, fields, strict=True):
        if not re.fullmatch(form, field):
            return f"the {name} {_shown(field)} is not a number as expected"
    raise AssertionError(line)  # the pattern refused it, so one of the above holds
