"""Tables of ratings: CSV and Parquet files, data frames and Arrow tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedmf.data.columns import coded
from fedmf.data.delimited import read_delimited
from fedmf.data.table import Named, Table, is_number, positions
from fedmf.data.times import Nanos, Times, of_column
from fedmf.errors import DataError, optional

PARQUET = (".parquet", ".pq")
WIDE = ("Int128", "UInt128")  # dtypes of polars that numpy lacks
NO_NAMES = "if that is a rating, name the columns, such as user, item, rating"


def read_table(source: object, columns: Sequence[object]) -> Table:
    """Return columns of a table: users, items, ratings and, optionally, times.

    Parameters
    ----------
    source : see `fedmf.data.read_ratings`
    columns : names of the columns

    Raises
    ------
    DataError
        If the source cannot be read, has no row, lacks a column, or an entry is wrong.
    MissingExtra
        If pyarrow is needed and not installed.
    """
    if not isinstance(source, str | os.PathLike):
        return _of_frame(source, columns, f"the {type(source).__name__}")
    path = Path(source)
    if path.suffix.lower() not in PARQUET:
        return read_delimited(path, columns)
    pyarrow = optional("pyarrow", "Parquet files need")
    try:
        found = optional("pyarrow.parquet", "Parquet files need").read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(
            f"{path} cannot be read as Parquet: {error}; write it again, or let the name of a "
            "CSV file end in .csv"
        ) from error
    return _of_frame(found, columns, path.name)


def _of_frame(source: Any, columns: Sequence[object], name: str) -> Table:
    """Return the columns of a pandas or polars frame, or of anything that Arrow reads."""
    if hasattr(source, "collect") and hasattr(source, "lazy"):
        raise DataError(f"{name} has not been computed yet: pass the result of its collect()")
    heads = getattr(source, "columns", None)
    # the columns of an Arrow table have no names
    if hasattr(source, "column_names"):
        heads = source.column_names
    elif heads is None and hasattr(source, "__arrow_c_stream__"):
        pyarrow = optional("pyarrow", f"a {type(source).__name__} needs")
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
    heads = list(heads)
    titles = [heads[number] for number in positions(name, heads, columns, NO_NAMES)]
    users, items, values, *times = (_column(source[title]) for title in titles)
    if not len(users):
        raise DataError(f"{name} has no row: add a row per rating")
    named = Named(name, titles, "row {}".format)
    for number, column in enumerate((users, items, values, *times)):
        _check_given(named, number, column)
    when, nanos = _times(named, times[0]) if times else (None, None)
    who, what = (
        coded(name, str(title), column, wholes=True)
        for title, column in zip(titles, (users, items), strict=False)
    )
    rated = _values(named, values)
    return Table(name, titles, named.place, who, what, rated, when, nanos)


def _column(given: Any) -> NDArray[Any]:
    """Return a column as an array, without a copy of texts to the width of the longest."""
    if not type(given).__module__.startswith("polars."):
        return np.asarray(given)
    if str(given.dtype) in WIDE:
        return np.array(given.to_list(), dtype=object)
    return np.asarray(given.to_numpy())


def _check_given(named: Named, number: int, column: NDArray[Any]) -> None:
    """Raise DataError for the first empty entry of a column."""
    kind = column.dtype.kind
    if kind in "OUT":
        missing = np.array([_is_missing(one) for one in column.tolist()], dtype=np.bool_)
    elif kind in "mM":
        missing = np.isnat(column)
    else:
        missing = column != column
    if missing.any():
        raise named.empty(int(np.argmax(missing)), number)


def _is_missing(entry: object) -> bool:
    """Return True for no text, None, NaN, and the missing values of pandas."""
    if isinstance(entry, str):
        return not entry
    # neither the comparison of pandas.NA nor the comparison of an array has a truth value
    return entry is None or type(entry).__name__ == "NAType" or bool(np.any(entry != entry))


def _values(named: Named, column: NDArray[Any]) -> NDArray[np.float64]:
    """Return the ratings as float64; raises DataError for the first that is no number."""
    if column.dtype.kind not in "biuf":
        for row, entry in enumerate(column.tolist()):
            if not is_number(entry):
                raise named.no_number(row, entry)
    return column.astype(np.float64)


def _times(named: Named, column: NDArray[Any]) -> tuple[NDArray[np.int64], Nanos | None]:
    """Return the seconds and nanoseconds; raises DataError for the first that is no time."""
    kind = column.dtype.kind
    if kind not in "iufM":
        times = Times()
        wrong = times.add([str(one) for one in column.tolist()])
        if wrong is None:
            return times.arrays()
        raise named.no_time(wrong, column.tolist()[wrong])
    if kind in "uf" and (beyond := np.abs(column) >= 2**63).any():
        row = int(np.argmax(beyond))
        raise named.no_time(row, column[row].item())
    return (column.astype(np.int64), None) if kind in "iu" else of_column(column)
