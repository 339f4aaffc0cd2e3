"""Ratings from your own tables: `read_ratings`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedmf.data.columns import check_scale, from_triples, ids, ids_of, integers
from fedmf.data.ratings import Ids, Ratings
from fedmf.data.tables import Table, is_missing, is_time, read_table
from fedmf.errors import DataError
from fedmf.settings import check

Floats = NDArray[np.float64]

__all__ = ["COLUMNS", "Duplicates", "read_ratings"]

Duplicates = Literal["last", "mean", "error"]
"""Methods for several ratings of one item by one user."""

COLUMNS = ("user", "item", "rating")
DECIMAL_COMMA = re.compile(r"\s*[0-9]+,[0-9]+\s*")


def read_ratings(
    source: Any,
    columns: Sequence[str] = COLUMNS,
    *,
    scale: tuple[float, float] | None = None,
    duplicates: Duplicates = "error",
) -> Ratings:
    """Return the ratings of a CSV or Parquet file, a data frame or an Arrow table.

    Ids are integers or texts. In a CSV file they are integers if all ids of the column are
    integers without leading zeros. Other columns of the table are not read.

    Parameters
    ----------
    source
        Path of a CSV file in UTF-8 with a header, its fields separated by comma, semicolon, tab
        or bar; blanks around a field do not count. Or path of a file ``.parquet``, a frame of
        pandas or polars, an Arrow table, or an object with ``__arrow_c_stream__``.
    columns
        Names of the columns of users, items, ratings and, optionally, times. Times are integers
        or, in ISO 8601, dates; see `fedmf.data.from_triples`.
    scale
        Lowest and highest possible rating, such as (1, 5); required, since the lowest and the
        highest rating that occur may differ from it.
    duplicates
        Method for several ratings of one item by one user. ``"error"`` raises; ``"last"`` keeps
        the one with the latest time, or else the last row; ``"mean"`` takes their mean.

    Raises
    ------
    DataError
        If the source cannot be read, is empty or lacks a column. Also if an entry is wrong or
        outside the scale, or a pair occurs twice; the message has the line or the row.
    SettingError
        If `duplicates` is unknown.
    MissingExtra
        If Parquet is to be read and pyarrow is not installed.
    """
    check(Duplicates, duplicates=duplicates)
    names = () if isinstance(columns, str) else tuple(columns)
    if len(names) not in (3, 4) or len(set(names)) < len(names):
        raise DataError(
            f"columns = {columns!r} must be three different names, of users, items and "
            "ratings, or four with times"
        )
    table = read_table(source, names)
    for title, column in zip(names, table.columns, strict=True):
        _check_given(table, title, column)
    values = _values(table, names[2])
    ends = _scale(table, names[2], values, scale)
    users, items = (ids(table.name, names[side], table.columns[side]) for side in (0, 1))
    when = np.zeros(values.size, dtype=np.int64)
    if len(names) == 4:
        when = _times(table, names[3])
    pairs = _pairs(users, items)
    rows = _latest(pairs, when)
    if rows.size < pairs.size and duplicates == "error":
        raise _repeated(table, users, items, pairs)
    if duplicates == "mean":
        values = (np.bincount(pairs, values) / np.bincount(pairs))[pairs]
    return from_triples(
        users[rows],
        items[rows],
        np.clip(values[rows], *ends),  # a mean may be rounded off the scale
        scale=ends,
        name=table.name,
        times=when[rows],
    )


def _check_given(table: Table, title: str, column: NDArray[Any]) -> None:
    """Raise DataError for the first empty entry of a column."""
    if column.dtype.kind not in "OU":
        return
    for row, entry in enumerate(column.tolist()):
        if is_missing(entry) or entry == "":
            raise DataError(
                f"{table.name}, {table.place(row)}: {title} is empty: fill it in or remove "
                "the row"
            )


def _values(table: Table, title: str) -> Floats:
    """Return the ratings as float64; raises DataError for the first that is no number."""
    column = table.columns[2]
    if column.dtype.kind in "OU":
        for row, entry in enumerate(column.tolist()):
            if not _is_number(entry):
                comma = DECIMAL_COMMA.fullmatch(str(entry))
                raise DataError(
                    f"{table.name}, {table.place(row)}: {title} {entry!r} is not a number "
                    f"such as 4 or 3.5: {'write decimal points' if comma else 'correct it'}"
                )
    values = column.astype(np.float64)
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{table.name}, {table.place(row)}: {title} {values[row]} is not a number: remove "
            "the row"
        )
    return values


def _times(table: Table, title: str) -> NDArray[np.int64]:
    """Return the times as int64; raises DataError for the first that is no time."""
    column = table.columns[3]
    if column.dtype.kind in "OU":  # at least one is no time
        for row, entry in enumerate(column.tolist()):
            if not is_time(entry):
                raise DataError(
                    f"{table.name}, {table.place(row)}: {title} {entry!r} is neither a number "
                    "of seconds nor a date such as 2024-05-31: correct it"
                )
    return integers(table.name, title, column)


def _is_number(entry: object) -> bool:
    try:
        float(entry)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return not isinstance(entry, bool)


def _scale(
    table: Table, title: str, values: Floats, scale: tuple[float, float] | None
) -> tuple[float, float]:
    """Return the validated scale; raises DataError if a rating is outside."""
    low, high = values.min(), values.max()
    if scale is None:
        raise DataError(
            f"scale is missing: {title} of {table.name} lies within {low:g} to {high:g}; give "
            "the lowest and the highest possible rating, such as 1 and 5"
        )
    ends = check_scale(table.name, scale)
    outside = (values < ends[0]) | (values > ends[1])
    if outside.any():
        row = int(np.argmax(outside))
        raise DataError(
            f"{table.name}, {table.place(row)}: {title} {values[row]:g} is outside the scale "
            f"from {ends[0]:g} to {ends[1]:g}: correct it, or widen scale, as the ratings lie "
            f"within {low:g} to {high:g}"
        )
    return ends


def _pairs(users: Ids, items: Ids) -> NDArray[np.int64]:
    """Return the number of each row's pair of user and item, from 0."""
    rows, columns = (ids_of(one)[1] for one in (users, items))
    wide = rows * (int(columns.max()) + 1) + columns
    return np.asarray(np.unique(wide, return_inverse=True)[1], dtype=np.int64)


def _latest(pairs: NDArray[np.int64], when: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of the latest rating of each pair, ascending; of equal times the last."""
    order = np.lexsort((np.arange(pairs.size), when, pairs))
    last = np.append(np.diff(pairs[order]) > 0, True)
    return np.asarray(np.sort(order[last]), dtype=np.int64)


def _repeated(table: Table, users: Ids, items: Ids, pairs: NDArray[np.int64]) -> DataError:
    """Return the error for the first row that repeats a pair."""
    first = np.unique(pairs, return_index=True)[1]
    again = np.ones(pairs.size, dtype=np.bool_)
    again[first] = False
    row = int(np.argmax(again))
    earlier = int(first[pairs[row]])
    return DataError(
        f"{table.name}: user {users[row]} rates item {items[row]} in {table.place(earlier)} "
        f"and again in {table.place(row)} ({int(again.sum())} such rows): set duplicates "
        "to 'last' or 'mean', or remove the rows"
    )
