"""Strict readers of text tables; their errors name the file and the first damaged line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedmf.errors import DataError

# Column of a table of numbers: the name, for messages, and the pattern of the entries.
Field = tuple[str, bytes]
NUMBER = rb"[0-9]{1,9}"

FIELDS: tuple[Field, ...] = (
    ("user id", NUMBER),
    ("item id", NUMBER),
    ("rating", rb"[0-9]{1,2}(?:\.[0-9]{1,2})?"),
    ("time", rb"[0-9]{1,12}"),
)

# Some files are separated by tabs, and artists' names have characters that are not printable.
CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")


@dataclass(frozen=True, eq=False)
class RatingTable:
    """The columns of a file of ratings, in the file's order, each of shape (n_ratings,).

    `users`, `items` and `times` are int64, as in the file, 0 ≤ id < 10**9. `values` is float64.
    `times` is None for a file without times.
    """

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    values: NDArray[np.float64]
    times: NDArray[np.int64] | None


def damaged(path: Path, line: int, what: str) -> DataError:
    """Return the DataError for a line of a file, numbered from 1; `what` is the fault."""
    return DataError(f"{path.name}, line {line}: {what}; unpack the data set again ({path})")


def read_bytes(path: Path) -> bytes:
    """Return a file's content; raises DataError for a missing, empty or cut file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(
            f"the file {path.name} is missing from {path.parent}: unpack the data set again"
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if not content:
        raise DataError(f"{path} is empty: unpack the data set again")
    if not content.endswith(b"\n"):
        last = content.count(b"\n") + 1
        raise damaged(path, last, "the last line is cut short: it has no line end")
    return content


def read_lines(path: Path, encoding: str) -> list[str]:
    """Return a text file's lines without line ends (LF or CRLF).

    Raises
    ------
    DataError
        See `read_bytes`. Also if a line is not printable text in this encoding.
    """
    lines = []
    for number, raw in enumerate(read_bytes(path).split(b"\n")[:-1], start=1):
        try:
            line = raw.removesuffix(b"\r").decode(encoding)
        except UnicodeDecodeError as error:
            what = f"byte {error.object[error.start]:#04x} is not {encoding} text"
            raise damaged(path, number, what) from None
        if CONTROL.search(line):
            raise damaged(path, number, f"{line[:60]!r} has bytes that are no text")
        lines.append(line)
    return lines


def read_fields(
    path: Path,
    encoding: str,
    separator: str,
    count: int,
    *,
    header: str = "",
    free: int | None = None,
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of each line of a text table.

    Parameters
    ----------
    separator : text between two fields; fields between commas may be quoted, as in CSV
    count : int, number of fields in a line
    header : first line, which is not yielded, or "" if the file has none
    free : position of a field that may contain the separator; None if there is none

    Raises
    ------
    DataError
        See `read_lines`. Also if the header, or the number of fields in a line, is wrong.
    """
    for line, text in enumerate(read_lines(path, encoding), start=1):
        if header and line == 1:
            if text != header:
                what = f"expected the header {header!r}, found {text[:60]!r}"
                raise damaged(path, 1, what)
            continue
        try:
            quoted = separator == ","
            fields = next(csv.reader([text], strict=True)) if quoted else text.split(separator)
        except csv.Error as error:
            raise damaged(path, line, str(error)) from None
        if free is not None and len(fields) > count:
            end = free + 1 + len(fields) - count
            fields[free:end] = [separator.join(fields[free:end])]
        if len(fields) != count:
            what = f"expected {count} fields between {separator!r}, found {len(fields)}"
            raise damaged(path, line, what)
        yield line, fields


def read_id(path: Path, line: int, what: str, field: str) -> int:
    """Return the id in a field, 0 ≤ id < 10**9, or raise DataError."""
    if not re.fullmatch("[0-9]{1,9}", field):
        what = f"the {what} id {field[:60]!r} is not a number as expected"
        raise damaged(path, line, what)
    return int(field)


def read_rating_table(
    path: Path,
    *,
    separator: str,
    header: str,
    scale: tuple[float, float],
    fields: tuple[Field, ...] = FIELDS,
) -> RatingTable:
    """Read a file of lines "user, item, rating" and perhaps "time", with `read_numbers`.

    A rating must be in the scale and a multiple of the lowest rating. Any other rating, and a
    second rating of an item by a user, raises DataError.
    """
    first, numbers = read_numbers(path, fields, separator=separator, header=header)
    users, items, *times = np.delete(numbers, 2, axis=1).astype(np.int64).T
    table = RatingTable(users, items, numbers[:, 2].copy(), times[0] if times else None)
    low, high = scale
    off = (table.values < low) | (table.values > high) | (table.values % low != 0)
    if off.any():
        worst = int(np.argmax(off))
        what = f"rating {table.values[worst]:g} is not in {low:g} to {high:g} by {low:g}"
        raise damaged(path, first + worst, what)
    check_distinct(path, first, users, items, "rates item")
    return table


def read_numbers(
    path: Path, fields: tuple[Field, ...], *, separator: str, header: str
) -> tuple[int, NDArray[np.float64]]:
    """Read a file with these numbers, and nothing else, in each line.

    Numbers must be exact in float64. See `read_fields` for separator, header and errors.

    Returns
    -------
    first
        Number of the table's first line: 1, or 2 after a header.
    numbers
        float64, shape (n_lines, len(fields)).
    """
    content = read_bytes(path)
    first = 1
    if header:
        top, _, content = content.partition(b"\n")
        if top.rstrip(b"\r") != header.encode():
            raise damaged(path, 1, f"expected the header {header!r}, found {_shown(top)}")
        if not content:
            raise DataError(f"{path} has only a header: unpack the data set again")
        first = 2

    # One pass of one pattern over the whole file finds the first damaged line.
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


def check_distinct(
    path: Path, first: int, users: NDArray[np.int64], items: NDArray[np.int64], verb: str
) -> None:
    """Raise DataError for the first line that repeats a pair; pair 0 is in line `first`."""
    pair = users * 10**9 + items  # unique, as ids are below 10**9
    order = np.argsort(pair, kind="stable")
    again = order[1:][pair[order[1:]] == pair[order[:-1]]]
    if again.size:
        worst = int(again.min())
        what = f"user {users[worst]} {verb} {items[worst]} a second time"
        raise damaged(path, first + worst, what)


def _shown(raw: bytes) -> str:
    """Return bytes from a file as printable text for a message."""
    return repr(raw[:60].decode("ascii", "backslashreplace"))


def _complaint(line: bytes, fields: tuple[Field, ...], separator: str) -> str:
    """Describe the first flaw of a line that does not match `fields`."""
    found = line.split(separator.encode())
    if len(found) != len(fields):
        names = separator.join(name for name, _ in fields)
        return f"expected {len(fields)} fields {names!r}, found {len(found)} in {_shown(line)}"
    for (name, form), text in zip(fields, found, strict=True):
        if not re.fullmatch(form, text):
            return f"the {name} {_shown(text)} is not a number as expected"
    raise AssertionError(line)  # the pattern does not match, so one of the fields does not
