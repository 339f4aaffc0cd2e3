"""Records of a site: tables of many kinds, judged as points of grids and numbers of values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from secagg.errors import ParameterError
from secagg.kit.sources import Source, columns_of
from secagg.statistics.columns import Category, Column, Number, label

Points = NDArray[np.int64]
Flags = NDArray[np.bool_]
_MISSING_TEXTS = frozenset({"", "na", "n/a", "nan", "none", "null", "<na>"})
_NO_VALUES = frozenset({"none", "<na>", "nat", "nan", "snan"})
"""Texts of None, NaN, and the missing values of pandas."""


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
    """

    size: int
    points: Mapping[str, Points]
    below: Mapping[str, NDArray[np.bool_]]
    above: Mapping[str, NDArray[np.bool_]]
    unknown: Mapping[str, int]
    designs: dict[object, tuple[Points, Points]] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return f"<Records: {self.size:,} records, {len(self.points)} columns>"

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
        below, above = dict[str, Flags](), dict[str, Flags]()
        for name, column in columns.items():
            if isinstance(column, Category):
                points[name], unknown[name] = _codes(given[name], column)
            else:
                numbers = _numbers(name, given[name])
                points[name], below[name], above[name] = _on_grid(numbers, column)
        return cls(size, points, below, above, unknown)


def _on_grid(numbers: NDArray[np.float64], column: Number) -> tuple[Points, Flags, Flags]:
    """Return the nearest points of the grid, −1 for NaN, and which are below and above."""
    low, high = float(column.start), float(column.start + column.range)
    inside = np.clip(np.nan_to_num(numbers, nan=low), low, high)
    points = np.rint((inside - low) / float(column.step)).astype(np.int64)
    points = np.where(np.isnan(numbers), -1, np.clip(points, 0, column.units))
    return points, numbers < low, numbers > high


def _is_missing(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in _MISSING_TEXTS
    # NA, an array and a signalling NaN have no comparison
    return str(value).lower() in _NO_VALUES


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
                comma = isinstance(value, str) and re.fullmatch(r"\s*[-+\d.]*,\d+\s*", value)
                why = "number has a comma, not a point" if comma else "value is no number"
                raise _unfit(name, row, f"the {why}") from None
    if (infinite := np.isinf(numbers)).any():
        raise _unfit(name, int(infinite.argmax()), "the number is infinite")
    return numbers


def _unfit(name: str, row: int, what: str) -> ParameterError:
    """Return the error of a value in a column of numbers."""
    remedy = "correct the value, leave the field empty, or plan a Category"
    return ParameterError(f"column {name!r}, row {row + 1}: {what}; {remedy}")


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
        place = known.get((type(value), key))
        if place is None:
            missing = _is_missing(value)
            none = missing and not isinstance(value, str)  # "None" may be a value, None is not
            place = -1 if none else code.get(label(value), -1 if missing else -2)
            known[(type(value), key)] = place
        points[row] = max(place, -1)
        unknown += place == -2
    return points, unknown
