"""Ratings from your own tables: `read_ratings`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, MappingView, Sequence, Set
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedmf.data.coded import Coded, twins
from fedmf.data.columns import check_scale, from_coded
from fedmf.data.ratings import Ratings
from fedmf.data.table import Table
from fedmf.data.tables import read_table
from fedmf.data.times import Nanos, mixed_units
from fedmf.errors import DataError, DataWarning
from fedmf.settings import check

Duplicates = Literal["last", "mean", "error"]
"""Methods for several ratings of the same item by the same user."""

COLUMNS = ("user", "item", "rating")


def read_ratings(
    source: Any,
    columns: Sequence[object] = COLUMNS,
    *,
    scale: tuple[float, float] | None = None,
    duplicates: Duplicates = "error",
) -> Ratings:
    """Return the ratings of a CSV or Parquet file, a data frame or an Arrow table.

    Ids are integers or texts. They are integers if all ids of the column are whole numbers
    without leading zeros, written as 7 or as 7.0. Other columns of the table are not read. A
    CSV file is read in one pass, which takes about 80 bytes a rating and the size of each
    different id.

    Parameters
    ----------
    source
        Path of a CSV file in UTF-8 with a header and fields separated by comma, semicolon, tab
        or bar; blanks around a field and blank lines do not count. The file may be packed by
        gzip, bzip2, xz or zip. Or path of a file ``.parquet``, a frame of pandas or polars, an
        Arrow table, or an object with ``__arrow_c_stream__``.
    columns
        Names of the columns of users, items, ratings and, optionally, times; numbers if the
        columns of a frame have numbers. Times are numbers or, in ISO 8601, dates. The result
        has whole seconds, and `duplicates` compares nanoseconds; see
        `fedmf.data.from_triples`.
    scale
        Lowest and highest possible rating, such as (1, 5); required, since the lowest and the
        highest rating in the data may lie inside the scale.
    duplicates
        Method for several ratings of an item by the same user. ``"error"`` raises; ``"last"``
        keeps the rating with the latest time, also within a second, or else the last row;
        ``"mean"`` takes the mean.

    Warns
    -----
    DataWarning
        If texts of a column have both 7 and 7.0, or times are in different units.

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
    names = _names(columns)
    table = read_table(source, names)
    for doubt in _doubts(table):
        warnings.warn(f"{table.name}: {doubt}", DataWarning, stacklevel=2)
    ends = _scale(table, scale)
    values, times = table.values, table.times
    rows: slice | NDArray[np.int64] = slice(None)
    pairs = table.users.codes * np.int64(table.items.ids.size) + table.items.codes
    ascending = np.sort(pairs)
    if (ascending[1:] == ascending[:-1]).any():
        if duplicates == "error":
            raise _repeated(table, pairs)
        rows = _latest(pairs, times, table.nanos)
        if duplicates == "mean":
            number = np.unique(pairs, return_inverse=True)[1]
            means = (np.bincount(number, values) / np.bincount(number))[number]
            values = means.clip(*ends)  # a mean may be rounded off the scale
    return from_coded(
        Coded(table.users.ids, table.users.codes[rows]),
        Coded(table.items.ids, table.items.codes[rows]),
        values[rows],
        scale=ends,
        name=table.name,
        times=None if times is None else times[rows],
    )


def _names(columns: object) -> tuple[object, ...]:
    """Return the names of the columns as a tuple; raises DataError if they are not usable."""
    names: tuple[object, ...] = ()
    # a set has no order, by which users differ from items
    unordered = isinstance(columns, str | bytes | Set) and not isinstance(columns, MappingView)
    if isinstance(columns, Iterable) and not unordered:
        names = tuple(columns)
    try:
        different = len(set(names)) == len(names)
    except TypeError:  # entries that are no names
        different = False
    if len(names) not in (3, 4) or not different:
        raise DataError(
            f"columns = {columns!r} must be a tuple of three different names, of users, items "
            "and ratings, or of four with times, such as ('user', 'item', 'rating')"
        )
    return names


def _doubts(table: Table) -> Iterator[str]:
    """Yield what is read, and perhaps not as meant."""
    for title, side in zip(table.titles, (table.users, table.items), strict=False):
        if (found := twins(side.ids)) is not None:
            count, *pair = found
            one, other = (
                f"{str(side.ids[code])!r} ({table.place(int(np.argmax(side.codes == code)))})"
                for code in pair
            )
            more = f" and {count - 1} more such pairs" if count > 1 else ""
            yield (
                f"{title} has {one} and {other}{more}, which are different ids beside ids that "
                "are no whole numbers: write each id in one way"
            )
    if table.times is not None and (mixed := mixed_units(table.times, table.place)):
        yield f"{table.titles[3]}: {mixed}"


def _scale(table: Table, scale: tuple[float, float] | None) -> tuple[float, float]:
    """Return the validated scale; raises DataError if a rating is not finite or outside."""
    values = table.values
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise table.wrong(row, 2, f"{values[row]} is not a number: remove the row")
    low, high = values.min(), values.max()
    if scale is None:
        raise DataError(
            f"scale is missing: {table.titles[2]} of {table.name} lies within {low:g} to "
            f"{high:g}; give the lowest and the highest possible rating, such as 1 and 5"
        )
    ends = check_scale(table.name, scale)
    outside = (values < ends[0]) | (values > ends[1])
    if outside.any():
        row = int(np.argmax(outside))
        fault = (
            f"{values[row]:g} is outside the scale from {ends[0]:g} to {ends[1]:g}: correct "
            f"it, or widen scale, as the ratings lie within {low:g} to {high:g}"
        )
        raise table.wrong(row, 2, fault)
    return ends


def _latest(
    pairs: NDArray[np.int64], times: NDArray[np.int64] | None, nanos: Nanos | None
) -> NDArray[np.int64]:
    """Return the row of the latest rating of each pair, ascending; of equal times the last."""
    keys = [key for key in (nanos, times, pairs) if key is not None]
    order = np.lexsort(keys)  # stable, so that of equal times the last row is the last
    last = np.append(np.diff(pairs[order]) > 0, True)
    return np.asarray(np.sort(order[last]), dtype=np.int64)


def _repeated(table: Table, pairs: NDArray[np.int64]) -> DataError:
    """Return the error for the first row that repeats a pair."""
    first = np.unique(pairs, return_index=True)[1]
    again = np.ones(pairs.size, dtype=np.bool_)
    again[first] = False
    row = int(np.argmax(again))
    earlier = int(np.argmax(pairs == pairs[row]))
    user, item = (side.ids[side.codes[row]] for side in (table.users, table.items))
    return DataError(
        f"{table.name}: user {user} rates item {item} in {table.place(earlier)} and again in "
        f"{table.place(row)} ({int(again.sum())} such rows): set duplicates to 'last' or "
        "'mean', or remove the rows"
    )
