"""Tables of a site: pandas, polars, Arrow, CSV, Parquet, and mappings of arrays."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg._printable import in_short
from secagg.errors import ParameterError, needing

Source: TypeAlias = object
"""DataFrame of pandas or polars, table of Arrow, path of a CSV or Parquet file, or a mapping of
arrays."""
Array: TypeAlias = NDArray[np.generic]


def columns_of(source: Source, names: Sequence[str]) -> dict[str, Array]:
    """Return some columns of a table, a 1-d array each.

    Raises
    ------
    ParameterError
        The table is of no known kind, or a column is missing or not 1-d.
    MissingExtra
        A Parquet file needs pyarrow.
    """
    if isinstance(source, str | os.PathLike):
        source = _read(Path(source), names)
    found = getattr(source, "column_names", None) or getattr(source, "columns", None)
    known = (
        list(source) if isinstance(source, Mapping) else list(() if found is None else found)
    )
    if not isinstance(source, Mapping) and found is None:
        raise ParameterError(
            f"{in_short(type(source).__name__)} is no table; pass a DataFrame, a table of "
            "Arrow, a path, or a mapping of column to array"
        )
    repeated = sorted({name for name in names if known.count(name) > 1})
    missing = [name for name in names if name not in known]
    if missing or repeated:
        # without the table's names, which are values if a file has no header
        raise ParameterError(
            f"the table of {len(known)} columns lacks {missing} and has {repeated} more than "
            "once; name the columns as in the plan, in a file in the first line"
        )
    return {name: _array(name, source[name]) for name in names}  # type: ignore[index]


def _array(name: str, values: object) -> Array:
    """Return a column of any library as a 1-d array; objects where values are missing."""
    if hasattr(values, "to_pylist"):  # Arrow: integers with nulls stay integers
        return _objects(values.to_pylist())
    if hasattr(values, "to_list") and not hasattr(values, "dtype"):
        return _objects(values.to_list())
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "iufb":
        array = np.asarray(values)
    elif hasattr(values, "to_list"):
        array = _objects(values.to_list())
    elif isinstance(values, np.ndarray):
        array = values
    elif isinstance(values, Sequence) and not isinstance(values, str | bytes):
        array = _objects(list(values))
    else:
        array = np.array(0)
    if array.ndim != 1 or array.dtype.kind in "mM":
        raise ParameterError(
            f"column {name!r} is {array.dtype.name} of {array.ndim} dimensions; give a list or "
            "a 1-d array of numbers or texts"
        )
    return array


def _objects(values: list[object]) -> Array:
    array: NDArray[np.object_] = np.empty(len(values), object)
    for place, value in enumerate(values):  # a list of lists stays a column of lists
        array[place] = value
    return array


def _read(path: Path, names: Sequence[str]) -> dict[str, list[object]]:
    """Return columns of a file, each as a list."""
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return _parquet(path, names)
        return _csv(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} cannot be read: {error}; give a readable file") from error


def _parquet(path: Path, names: Sequence[str]) -> dict[str, list[object]]:
    with needing("a Parquet file", "secagg[data]", "pyarrow"):
        import pyarrow
        import pyarrow.parquet as parquet
    try:
        table = parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise ParameterError(f"{path} is no Parquet file: {error}; export it anew") from error
    return {name: table[name].to_pylist() for name in table.column_names if name in names}


def _csv(path: Path) -> dict[str, list[object]]:
    """Return the columns of a CSV file with a header, comma or semicolon between the fields."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        first = lines.readline()
        lines.seek(0)
        comma = ";" if first.count(";") > first.count(",") else ","
        rows = csv.reader(lines, delimiter=comma, strict=True)
        try:
            header = [name.strip() for name in next(rows, [])]
            columns: list[list[object]] = [[] for _ in header]
            for row in rows:
                if not row and len(header) > 1:
                    continue  # a blank line
                if len(row) != len(header):
                    number = 1 + max(map(len, columns), default=0)
                    raise ParameterError(
                        f"{path}, row {number} has {len(row)} fields, and the header has "
                        f"{len(header)}; correct the row, quote fields with {comma!r}"
                    )
                for column, text in zip(columns, row, strict=True):
                    column.append(text)
        except csv.Error as error:
            raise ParameterError(
                f"{path}, line {rows.line_num} is no CSV: {error}; correct the line"
            ) from error
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise ParameterError(f"{path} has the columns {repeated} more than once; rename them")
    return dict(zip(header, columns, strict=True))
