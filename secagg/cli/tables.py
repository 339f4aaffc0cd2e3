"""Tables of the commands for sums: CSV files with a header of names and one row of numbers."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from secagg._secrets import without_frames
from secagg.cli.files import checked, read
from secagg.cli.requests import check_columns
from secagg.encoding import Vector
from secagg.errors import ParameterError
from secagg.kit.csv_rows import csv_rows

_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_LARGEST = (1 << 63) - 1


def is_table(path: Path) -> bool:
    """Return True for the name of a CSV file."""
    return path.suffix.lower() == ".csv"


@without_frames
def read_table(path: Path, *, integers: bool) -> tuple[tuple[str, ...], Vector, str]:
    """Return the column names and the numbers of a file with one row, and their first error.

    Parameters
    ----------
    path : Path
    integers : bool
        True: the numbers are whole, and the vector has int64. False: float64.

    Returns
    -------
    columns : tuple of str
    vector : array, shape (d,)
        With 0 for each field that is no such number.
    wrong : str
        Error of the first such field, or "". No message has a number of the file.

    Raises
    ------
    ParameterError
        The file cannot be read, or is no such table. A well-formed field does not decide this.
    """
    header, *rows = _rows(path)
    if len(rows) != 1:
        raise ParameterError(
            f"{path} has {len(rows):,} rows of numbers, and a sum takes one row of a client; "
            "write the column names and one row, such as the total of all rows"
        )
    read_field = partial(_number, integers=integers)
    fields = zip(header, rows[0], strict=True)
    numbers, wrong = list[int | float](), ""
    for field in fields:
        try:
            numbers.append(checked(path, read_field, field))
        except ParameterError as error:
            numbers.append(0)
            wrong = wrong or str(error)
    vector: Vector = np.array(numbers, np.int64) if integers else np.array(numbers, np.float64)
    return header, vector, wrong


def read_header(path: Path) -> tuple[str, ...]:
    """Return the column names of a CSV file, whose rows do not matter."""
    return _rows(path)[0]


def as_columns(text: str) -> tuple[str, ...]:
    """Return column names from a text with commas, or from the header of a CSV file."""
    path = Path(text)
    if is_table(path):
        return read_header(path)
    header, *more = _lines(Path("--columns"), text)
    if more:
        raise ParameterError("--columns has several lines; give the names in one line")
    return _names(header)


def as_table(columns: Sequence[str], numbers: Vector) -> str:
    """Return CSV with a header and one row; each number is written without loss."""
    content = io.StringIO()
    rows = (columns, map(repr, numbers.tolist()))
    csv.writer(content, lineterminator="\n").writerows(rows)
    return content.getvalue()


def _rows(path: Path) -> tuple[tuple[str, ...], *tuple[list[str], ...]]:
    """Return the judged header of a file, and all rows."""
    data = read(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ParameterError(
            f"{path} is no text in UTF-8; save the table as CSV in UTF-8"
        ) from None
    header, *rows = _lines(path, text)
    return checked(path, _names, header), *rows


def _lines(path: Path, text: str) -> list[list[str]]:
    """Return the header of a table, empty if there is no header, and all rows."""
    # of a single column, an empty line would be an empty field
    return list(csv_rows(path, io.StringIO(text.rstrip("\r\n"), newline=""))) or [[]]


def _names(header: Sequence[str]) -> tuple[str, ...]:
    """Return column names in Unicode's form NFC; raise `ParameterError` for other texts."""
    if not header:
        raise ParameterError("there is no header; write the column names in the first line")
    names = tuple(unicodedata.normalize("NFC", name.strip()) for name in header)
    # without the names, which are values if there is no header
    if any(map(_FLOAT.fullmatch, names)):
        raise ParameterError(
            "the first line has numbers in place of column names; write a name for each "
            "element there, and the numbers in the second line"
        )
    check_columns(names)
    return names


def _number(named: tuple[str, str], *, integers: bool) -> int | float:
    """Return the number of a column's field; the error has the column, not the number."""
    name, field = named[0], named[1].strip()
    what, remedy = "is no number", "write a number such as 12.5"
    if not field:
        what, remedy = "is empty", "write a number; 0 if there is nothing to add"
    elif integers and _INTEGER.fullmatch(field):
        if abs(value := int(field)) <= _LARGEST:
            return value
        what, remedy = "is beyond 64 bits", "correct the number"
    elif integers and _FLOAT.fullmatch(field):
        what, remedy = "is no whole number", "round the number, or leave out --integers"
    elif _FLOAT.fullmatch(field):
        if abs(found := float(field)) < float("inf"):
            return found
        what, remedy = "is beyond float64", "correct the number"
    elif "," in field:
        what, remedy = "has a comma", "write a decimal point, and no separator of thousands"
    raise ParameterError(f"the number of column {name!r} {what}; {remedy}")
