"""Records of a site: each column as points of a grid, or as numbers of values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from secagg.errors import ParameterError
from secagg.statistics.columns import Category, Column, Number, label
from secagg.statistics.tables import Source, columns_of

Points = NDArray[np.int64]
_MISSING_TEXTS = frozenset({"", "na", "n/a", "nan", "none", "null", "<na>"})


@dataclass(frozen=True, repr=False)
class Records:
    """Table of a site, judged by the columns of a plan.

    Attributes
    ----------
    size : int
        Number of records.
    points : mapping of column to int64 array
        Point of the grid or number of the value, for each record; −1 if the value is missing.
    below, above : mapping of column to bool array
        Records whose number was outside of the range.
    unknown : mapping of column to int
        Number of values that are in no list.
    designs : dict
        Terms and outcomes of the regressions so far.
    digest : bytes
        SHA-256 of the judged columns.
    """

    size: int
    points: Mapping[str, Points]
    below: Mapping[str, NDArray[np.bool_]]
    above: Mapping[str, NDArray[np.bool_]]
    unknown: Mapping[str, int]
    designs: dict[object, tuple[Points, Points]] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return f"<Records: {self.size:,} records, {len(self.points)} columns>"

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the number of records and of all points, by the columns' names."""
        made = hashlib.sha256(b"secagg/1 statistics table")
        for name, points in sorted(self.points.items()):
            made.update(len(name.encode()).to_bytes(4, "little") + name.encode())
            made.update(self.size.to_bytes(8, "little") + points.astype("<i8").tobytes())
        return made.digest()

    def complete(self, columns: Iterable[str]) -> NDArray[np.bool_]:
        """Return True for each record with a value in all of some columns."""
        found = np.ones(self.size, np.bool_)
        for name in columns:
            found &= self.points[name] >= 0
        return found

    @classmethod
    def read(cls, source: Source, columns: Mapping[str, Column]) -> Records:
        """Return the records of a table, all of which is read and judged.

        Parameters
        ----------
        source : DataFrame of pandas or polars, table of Arrow, path, or mapping
            Path of a CSV file or a Parquet file. A mapping has an array or a list for each
            column. Columns that the plan does not name are ignored.
        columns : mapping of name to column
            Columns of the plan.

        Raises
        ------
        ParameterError
            A column is missing, columns have different lengths, or a value is no number. The
            message has the column and the row, counted from 1, but no value.
        MissingExtra
            The table needs a package that is not installed.
        """
        given = columns_of(source, tuple(columns))
        sizes = {name: len(values) for name, values in given.items()}
        if len(set(sizes.values())) > 1:
            raise ParameterError(f"columns have different lengths: {sizes}; give a value each")
        size = next(iter(sizes.values()), 0)
        points, unknown = dict[str, Points](), dict[str, int]()
        below, above = dict[str, NDArray[np.bool_]](), dict[str, NDArray[np.bool_]]()
        for name, column in columns.items():
            if isinstance(column, Category):
                points[name], unknown[name] = _codes(given[name], column)
            else:
                numbers = _numbers(name, given[name])
                known = ~np.isnan(numbers)
                low, high = float(column.start), float(column.start + column.range)
                below[name], above[name] = known & (numbers < low), known & (numbers > high)
                points[name] = _on_grid(numbers, column)
        return cls(size, points, below, above, unknown)


def _on_grid(numbers: NDArray[np.float64], column: Number) -> Points:
    """Return the nearest points of the grid; −1 for NaN, the ends for numbers outside."""
    low, high = float(column.start), float(column.start + column.range)
    inside = np.clip(np.nan_to_num(numbers, nan=low), low, high)
    points = np.rint((inside - low) / float(column.step)).astype(np.int64)
    return np.where(np.isnan(numbers), -1, np.clip(points, 0, column.units))


def _is_missing(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in _MISSING_TEXTS
    # pandas' NA has no truth value, and NaN differs from itself
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _numbers(name: str, values: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return values as float64, NaN where a value is missing."""
    if values.dtype.kind in "iufb":
        numbers = values.astype(np.float64)
    else:
        numbers = np.full(len(values), np.nan)
        for row, value in enumerate(values.tolist()):
            try:
                if not _is_missing(value):
                    numbers[row] = _number(value)
            except (OverflowError, TypeError, ValueError):
                raise ParameterError(
                    f"column {name!r}, row {row + 1}: the {type(value).__name__} is no number; "
                    "correct the value, leave the field empty, or plan a Category"
                ) from None
    infinite = np.isinf(numbers)
    if infinite.any():
        raise ParameterError(
            f"column {name!r}, row {int(infinite.argmax()) + 1}: the number is infinite; "
            "correct the value or leave the field empty"
        )
    return numbers


def _number(value: object) -> float:
    # float() reads b"1" and "1_0", too
    if isinstance(value, bytes) or (isinstance(value, str) and "_" in value):
        raise ValueError
    return float(value)  # type: ignore[arg-type]


def _codes(values: NDArray[np.generic], column: Category) -> tuple[Points, int]:
    """Return the numbers of values in the list, −1 for any other, and the count of unknown."""
    code = {text: i for i, text in enumerate(column.values)}
    known = dict[object, int]()  # a table repeats few values
    unknown, points = 0, np.full(len(values), -1, np.int64)
    for row, value in enumerate(values.tolist()):
        key = value if isinstance(value, str | int | float | bool) else str(value)
        place = known.get((type(key), key))
        if place is None:
            place = code.get(label(value), -1 if _is_missing(value) else -2)
            known[(type(key), key)] = place
        points[row] = max(place, -1)
        unknown += place == -2
    return points, unknown
