"""Columns of tables as arrays: DataFrames, tables of Arrow, CSV and Parquet files, mappings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg._check import repeated
from secagg._printable import in_short
from secagg.errors import ParameterError, needing
from secagg.kit.csv_rows import csv_rows

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
        source = _read(Path(source))
    found: Any = source
    if not isinstance(source, Mapping):
        # of the class: columns of a DataFrame are attributes of the DataFrame
        arrow, lazy = (hasattr(type(source), name) for name in ("column_names", "collect"))
        head = "column_names" if arrow else "columns"
        found = None if lazy else getattr(source, head, None)
    if found is None:
        raise ParameterError(
            f"{in_short(type(source).__name__)} is no table; pass a DataFrame, a table of "
            "Arrow, a path, or a mapping of column to array"
        )
    known = list(found)
    twice = sorted({name for name in names if known.count(name) > 1})
    missing = [name for name in names if name not in known]
    if missing or twice:
        # without the table's names, which are values if a file has no header
        raise ParameterError(
            f"the table of {len(known)} columns lacks {missing} and has {twice} more than "
            "once; name the columns as in the plan, in a file in the first line"
        )
    return {name: _array(name, source[name]) for name in names}  # type: ignore[index]


def _array(name: str, values: object) -> Array:
    """Return a column of any library as a 1-d array; objects where values are missing."""
    dtype = getattr(values, "dtype", None)
    # Arrow has to_pylist alone; integers with nulls stay integers
    listed = getattr(values, "to_list", getattr(values, "to_pylist", None))
    plain = isinstance(dtype, np.dtype) and dtype.kind in "iufb"
    if isinstance(values, np.ma.MaskedArray):
        array = _objects(values.tolist())  # None where a value is masked
    elif plain or isinstance(values, np.ndarray):
        array = np.asarray(values)
    elif listed is not None:
        array = _objects(listed())
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
    return np.fromiter(values, object, len(values))  # a list of lists stays a column of lists


def _read(path: Path) -> Source:
    """Return the table of a file."""
    try:
        return (_parquet if path.suffix.lower() in (".parquet", ".pq") else _csv)(path)
    except OSError as error:
        raise ParameterError(f"{path} cannot be read: {error}; give a readable file") from error


def _parquet(path: Path) -> Source:
    with needing("a Parquet file", "secagg[data]", "pyarrow"):
        import pyarrow
        import pyarrow.parquet as parquet
    try:
        return parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise ParameterError(f"{path} is no Parquet file: {error}; export it anew") from error


def _csv(path: Path) -> dict[str, list[str]]:
    """Return the columns of a CSV file with a header."""
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as lines:
        header, *rows = list(csv_rows(path, lines)) or [[]]
    for number, row in enumerate([header, *rows]):
        for name, text in zip(header, row, strict=True):
            if not text.isascii() and re.search("[\udc80-\udcff]", text):
                where = f"row {number}" if number else "the header"
                raise ParameterError(
                    f"{path}, {where}, column {name!r} is no UTF-8 text; save the file as UTF-8"
                )
    if twice := repeated(header):
        raise ParameterError(f"{path} has the columns {twice} more than once; rename them")
    return {name: [row[i] for row in rows] for i, name in enumerate(header)}
