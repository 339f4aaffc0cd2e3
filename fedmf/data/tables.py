"""Columns of tables by name: CSV and Parquet files, data frames and Arrow tables."""

from __future__ import annotations

import csv
import difflib
import io
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedmf.errors import DataError, MissingExtra

__all__ = ["Table", "is_missing", "is_time", "read_table"]

DELIMITERS = (",", ";", "\t", "|")
PARQUET = (".parquet", ".pq")
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one table, in the order in which they were asked for.

    Parameters
    ----------
    name : name of the table, for messages
    columns : arrays, all of one length
    place : function from the position of a row, from 0, to its place, such as "line 7"
    """

    name: str
    columns: tuple[NDArray[Any], ...]
    place: Callable[[int], str]


def read_table(source: object, columns: Sequence[str]) -> Table:
    """Return columns of a table: users, items, ratings and, optionally, times.

    Parameters
    ----------
    source : see `fedmf.data.read_ratings`
    columns : names of the columns

    Raises
    ------
    DataError
        If the source cannot be read, has no row, or lacks a column.
    MissingExtra
        If pyarrow is needed and not installed.
    """
    if not isinstance(source, str | os.PathLike):
        return _of_frame(source, columns, f"the {type(source).__name__}")
    path = Path(source)
    if path.suffix.lower() not in PARQUET:
        return _of_csv(path, columns)
    pyarrow = _pyarrow("Parquet files")
    from pyarrow import parquet

    try:
        found = parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error
    return _of_frame(found, columns, path.name)


def _of_csv(path: Path, columns: Sequence[str]) -> Table:
    """Read a CSV file with a header; the delimiter is the one that gives the columns."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataError(
            f"{path.name}, line {line}: byte {error.object[error.start]:#04x} is not UTF-8 "
            "text: save the file in UTF-8"
        ) from None
    if not text.strip():
        raise DataError(f"{path} is empty: give a CSV file with a header and ratings")
    lines = list(io.StringIO(text, newline=""))  # splitlines has more ends of lines than CSV
    heads = {mark: _fields(lines[:1], mark) for mark in DELIMITERS}
    mark = max(DELIMITERS, key=lambda one: (set(columns) <= set(heads[one]), len(heads[one])))
    numbers = _positions(path.name, heads[mark], columns)
    reader = csv.reader(lines, delimiter=mark, skipinitialspace=True, strict=True)
    rows: list[list[str]] = []
    where: list[int] = []
    start, width = 0, 0
    try:
        for fields in reader:
            line, start = start + 1, reader.line_num
            if not fields:
                continue
            width = width or len(fields)
            if len(fields) != width:
                raise DataError(
                    f"{path.name}, line {line}: {len(fields)} fields, but the header has "
                    f"{width}: add the missing fields, or quote fields that contain {mark!r}"
                )
            rows.append([fields[number].rstrip() for number in numbers])
            where.append(line)
    except csv.Error as error:
        raise DataError(f"{path.name}, line {reader.line_num}: {error}: mend it") from None
    if len(rows) < 2:
        raise DataError(f"{path} has a header and no rating: add a line per rating")
    texts = zip(*rows[1:], strict=True)
    kinds = (_ids, _ids, _values, _times)
    found = tuple(kind(list(column)) for kind, column in zip(kinds, texts, strict=False))
    return Table(path.name, found, lambda row: f"line {where[row + 1]}")


def _fields(lines: list[str], mark: str) -> list[str]:
    """Return the names in a header."""
    found = next(csv.reader(lines, delimiter=mark, skipinitialspace=True), [])
    return [name.strip() for name in found]


def _of_frame(source: Any, columns: Sequence[str], name: str) -> Table:
    """Return the columns of a pandas or polars frame, or of anything that Arrow reads."""
    if hasattr(source, "collect") and hasattr(source, "lazy"):
        raise DataError(f"{name} has not been computed yet: pass the result of its collect()")
    heads = getattr(source, "columns", None)
    if hasattr(source, "column_names"):  # a table of Arrow, whose columns have no names
        heads = source.column_names
    elif heads is None and hasattr(source, "__arrow_c_stream__"):
        pyarrow = _pyarrow(f"a {type(source).__name__}")
        try:
            source = pyarrow.table(source)
            heads = source.column_names
        except (TypeError, pyarrow.ArrowException):  # one column, as a series is
            heads = None
    if heads is None:
        raise DataError(
            f"{name} is no table: pass the path of a CSV or Parquet file, a data frame of "
            "pandas or polars, or a table of Arrow"
        )
    heads = [str(head) for head in heads]
    _positions(name, heads, columns)
    found = tuple(np.asarray(source[column]) for column in columns)
    if any(column.ndim != 1 for column in found):
        raise DataError(f"{name} has several columns of one name: rename all but one")
    if not len(found[0]):
        raise DataError(f"{name} has no row: add a row per rating")
    if len(found) > 3:
        found = *found[:3], _times_of(name, columns[3], found[3])
    return Table(name, found, lambda row: f"row {row}")


def _positions(name: str, heads: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Return the position of each column; raises DataError for one that is missing."""
    for column in columns:
        if column not in heads:
            shown = ", ".join(map(repr, heads))
            close = difflib.get_close_matches(column, heads, n=1, cutoff=0.5)
            guess = f"; did you mean {close[0]!r}?" if close else ""
            if any(INTEGER.fullmatch(head) for head in heads):
                guess = "; if that is a rating, add a first line such as user,item,rating"
            raise DataError(
                f"{name} has no column {column!r}: set columns to names of its header, "
                f"{shown}{guess}"
            )
    return [list(heads).index(column) for column in columns]


def _ids(texts: list[str]) -> NDArray[Any]:
    """Return ids as int64 if all are integers without leading zeros, else as texts."""
    if all(map(INTEGER.fullmatch, texts)):
        return np.array(texts, dtype=np.int64)
    return np.array(texts, dtype=object)


def _values(texts: list[str]) -> NDArray[Any]:
    """Return ratings as float64; as the texts if one of them is no number."""
    try:
        return np.array([float(text) for text in texts])
    except ValueError:
        return np.array(texts, dtype=object)


def _times(texts: list[str]) -> NDArray[Any]:
    """Return times as int64, dates as seconds since 1970; as the texts if one is neither."""
    if all(map(INTEGER.fullmatch, texts)):
        return np.array(texts, dtype=np.int64)
    try:
        return np.array([_seconds(text) for text in texts], dtype=np.int64)
    except (OverflowError, ValueError):
        return np.array(texts, dtype=object)


def _times_of(name: str, title: str, column: NDArray[Any]) -> NDArray[Any]:
    """Return the times of a frame as `_times` does; raises DataError if one is missing."""
    kind = column.dtype.kind
    if kind == "O":
        missing = np.array([is_missing(one) for one in column.tolist()])
    else:
        missing = np.isnat(column) if kind in "mM" else column != column
    if missing.any():
        row = int(np.argmax(missing))
        raise DataError(f"{name}, row {row}: {title} is empty: fill it in or remove the row")
    if kind == "M":
        return np.asarray(column.astype("datetime64[s]").astype(np.int64))
    if kind == "f":
        return np.asarray(np.floor(column))
    return _times([str(one) for one in column.tolist()]) if kind in "OU" else column


def is_missing(entry: object) -> bool:
    """Return True for None, NaN, and the missing values of pandas."""
    # the comparison of pandas.NA has no truth value
    return entry is None or type(entry).__name__ == "NAType" or entry != entry


def is_time(entry: object) -> bool:
    """Return True for a number or a date, also as a text, that is a time of 64 bits."""
    try:
        _seconds(str(entry))
    except (OverflowError, ValueError):
        return False
    return True


def _seconds(text: str) -> int:
    """Return a number, or the seconds from 1970 to a date in ISO 8601, by default in UTC.

    Raises ValueError if it is neither, or OverflowError if it has more than 64 bits.
    """
    try:
        return int(np.int64(int(float(text))))
    except ValueError:
        moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _pyarrow(what: str) -> Any:
    """Return the package pyarrow; raises MissingExtra if it is not installed."""
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise MissingExtra(
            f"pyarrow, which {what} need, is not installed: pip install pyarrow",
            name="pyarrow",
        ) from None
    return pyarrow
