"""Numbers of records: tables of categories, and histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np

from secagg.errors import ParameterError
from secagg.statistics.columns import Number, Real, decimal_text, exact
from secagg.statistics.layout import Field, Sums
from secagg.statistics.records import Points, Records
from secagg.statistics.statistic import (
    MISSING,
    Cell,
    Columns,
    Hidden,
    Limits,
    Table,
    Value,
    Where,
    category,
    check_by,
    group_cells,
    indicator,
    number,
)

MAX_CELLS = 100_000
Parts = Sequence[tuple[str, int, int]]


def count(
    records: Records, axes: Sequence[tuple[str, Points]], shape: tuple[int, ...]
) -> Points:
    """Return the number of records in each cell.

    Parameters
    ----------
    axes : sequence of name and int array
        For each column, the first point of each part of the axis, ascending from −1.
    shape : tuple of int
        Number of parts of each axis.
    """
    place = np.zeros(records.size, np.int64)
    for (name, starts), parts in zip(axes, shape, strict=True):
        place = place * parts + np.searchsorted(starts, records.points[name], "right") - 1
    return np.bincount(place, minlength=prod(shape)).reshape(shape)


class _Cells:
    """Common part of statistics that are numbers of records in cells."""

    def _axes(self, columns: Columns) -> list[tuple[str, Parts, tuple[str, ...]]]:
        """Return name, parts and labels of each axis; the first part has the missing values."""
        raise NotImplementedError

    def wheres(self, columns: Columns) -> list[Where]:
        """Return the cells."""
        return list(product(*(parts for _, parts, _ in self._axes(columns))))

    def fields(self, columns: Columns, limits: Limits, past: Sequence[Sums]) -> list[Field]:
        """Return the fields of the only step."""
        shape = tuple(len(parts) for _, parts, _ in self._axes(columns))
        return [] if past else [Field("n", shape), Field("sites", shape)]

    def sums(
        self, columns: Columns, limits: Limits, records: Records, past: Sequence[Sums]
    ) -> dict[str, Any]:
        """Return the number of records in each cell, and 1 for each cell with records."""
        axes = self._axes(columns)
        starts = [(name, np.array([first for _, first, _ in parts])) for name, parts, _ in axes]
        n = count(records, starts, tuple(len(parts) for _, parts, _ in axes))
        return {"n": n, "sites": indicator(n)}

    def cells(self, columns: Columns, past: Sequence[Sums]) -> list[Cell]:
        """Return all cells."""
        return group_cells(self.name, self.wheres(columns), past[0]["n"], past[0]["sites"])

    def tables(
        self, columns: Columns, limits: Limits, past: Sequence[Sums], hidden: Hidden
    ) -> dict[str, Table]:
        """Return a table with a row for each cell, missing values last."""
        axes = self._axes(columns)
        rows = list[tuple[Value, ...]]()
        for place in product(*((*range(1, len(parts)), 0) for _, parts, _ in axes)):
            labels = tuple(names[i] for (_, _, names), i in zip(axes, place, strict=True))
            n, sites = int(past[0]["n"][place]), int(past[0]["sites"][place])
            rows.append((*labels, *((None, None) if place in hidden else (n, sites))))
        return {"": Table((*(name for name, _, _ in axes), "records", "sites"), tuple(rows))}

    @property
    def name(self) -> str:
        """Name in results."""
        raise NotImplementedError


def _values(columns: Columns, name: str) -> tuple[str, Parts, tuple[str, ...]]:
    values = category(columns, name).values
    return name, [(name, i, i + 1) for i in range(-1, len(values))], (MISSING, *values)


@dataclass(frozen=True)
class Counts(_Cells):
    """Numbers of records by one or more categories: a cross table. Missing values are a value.

    Parameters
    ----------
    columns : sequence of str
        1 to 6 Categories of the plan, with at most 100,000 cells.
    """

    columns: tuple[str, ...]
    kind: ClassVar[str] = "counts"

    def __post_init__(self) -> None:
        names = (self.columns,) if isinstance(self.columns, str) else tuple(self.columns)
        if not 0 < len(names) <= 6 or len(set(names)) < len(names):
            raise ParameterError(f"columns is {names}; name 1 to 6 different columns")
        object.__setattr__(self, "columns", names)

    @property
    def name(self) -> str:
        """Name in results."""
        return f"counts of {' and '.join(self.columns)}"

    def check(self, columns: Columns) -> None:
        """Raise `ParameterError` unless the columns are in the plan and the cells not too many."""
        cells = prod(len(category(columns, name).values) + 1 for name in self.columns)
        if cells > MAX_CELLS:
            raise ParameterError(f"{self.name} has {cells:,} cells; plan at most {MAX_CELLS:,}")

    def words(self, columns: Columns) -> str:
        """Return what everybody learns."""
        return f"number of records for each value of {', '.join(self.columns)}"

    def _axes(self, columns: Columns) -> list[tuple[str, Parts, tuple[str, ...]]]:
        return [_values(columns, name) for name in self.columns]


@dataclass(frozen=True)
class Histogram(_Cells):
    """Numbers of records between declared edges, by groups.

    A bin has its lower edge and not its upper edge; the last bin has both. Values outside of the
    column's range are in the first bin and in the last bin.

    Parameters
    ----------
    column : str
        A Number of the plan.
    edges : sequence of numbers
        Edges between two bins, ascending, points of the column's grid above `low`.
    by : str, optional
        A Category of the plan.
    """

    column: str
    edges: tuple[Real, ...]
    by: str | None = None
    kind: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        edges = tuple(decimal_text(exact("an edge", edge)) for edge in self.edges)
        object.__setattr__(self, "edges", edges)

    @property
    def name(self) -> str:
        """Name in results."""
        return f"histogram of {self.column}" + (f" by {self.by}" if self.by else "")

    def check(self, columns: Columns) -> None:
        """Raise `ParameterError` unless the columns are in the plan and the edges fit."""
        check_by(columns, self.by)
        starts = self.points(number(columns, self.column))
        if not starts or any(a >= b for a, b in zip((0, *starts), starts, strict=False)):
            raise ParameterError(
                f"the edges of {self.name} are {self.edges}; list ascending edges above the "
                f"column's low, {number(columns, self.column).low}"
            )

    def points(self, column: Number) -> tuple[int, ...]:
        """Return the edges as points of the column's grid."""
        return tuple(column.point(f"an edge of {self.name}", edge) for edge in self.edges)

    def words(self, columns: Columns) -> str:
        """Return what everybody learns."""
        groups = f", for each value of {self.by}" if self.by else ""
        return f"number of records in {len(self.edges) + 1} ranges of {self.column}{groups}"

    def _axes(self, columns: Columns) -> list[tuple[str, Parts, tuple[str, ...]]]:
        column = number(columns, self.column)
        cuts = (-1, 0, *self.points(column), column.units + 1)
        parts = [(self.column, a, b) for a, b in zip(cuts, cuts[1:], strict=False)]
        ends = (column.low, *map(str, self.edges), column.high)
        bins = [f"{a} to {b}" for a, b in zip(ends, ends[1:], strict=False)]
        groups = [] if self.by is None else [_values(columns, self.by)]
        return [*groups, (self.column, parts, (MISSING, *bins))]
