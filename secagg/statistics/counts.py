"""Numbers of records: tables of categories, and histograms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import Any, ClassVar, TypeAlias

import numpy as np

from secagg.errors import ParameterError
from secagg.statistics.columns import Number, Real, decimal_text, exact
from secagg.statistics.design import names_of
from secagg.statistics.layout import Field
from secagg.statistics.noise import shown
from secagg.statistics.records import Records
from secagg.statistics.statistic import (
    MISSING,
    Frame,
    Grouped,
    Hidden,
    Past,
    Row,
    Statistic,
    Table,
    Where,
    indicator,
)

MAX_CELLS = 100_000
Numbers: TypeAlias = Callable[[tuple[int, ...]], Row | None]
Axis: TypeAlias = tuple[str, Sequence[tuple[str, int, int]], tuple[str, ...]]
"""Name, parts and labels of an axis; the first part has the missing values."""


class _Cells(Statistic):
    """Common part of statistics that are numbers of records in cells."""

    counts_only: ClassVar[bool] = True

    def _axes(self, frame: Frame) -> list[Axis]:
        """Return the axes of the cells."""
        raise NotImplementedError

    def wheres(self, frame: Frame) -> list[Where]:
        """Return the cells."""
        return list(product(*(parts for _, parts, _ in self._axes(frame))))

    def fields(self, frame: Frame, past: Past) -> list[Field]:
        """Return the fields of the only step."""
        shape = tuple(len(parts) for _, parts, _ in self._axes(frame))
        return [] if past else [Field("n", shape), Field("sites", shape)]

    def sums(self, frame: Frame, records: Records, past: Past) -> dict[str, Any]:
        """Return the number of records in each cell, and 1 for each cell with records."""
        place, shape = np.zeros(records.size, np.int64), []
        for name, parts, _ in self._axes(frame):
            starts = np.array([start for _, start, _ in parts])
            place *= len(parts)
            place += np.searchsorted(starts, records.points[name], "right") - 1
            shape.append(len(parts))
        n = np.bincount(place, minlength=prod(shape)).reshape(shape)
        return {"n": n, "sites": indicator(n)}

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return a table with a row for each cell, missing values last."""

        def numbers(place: tuple[int, ...]) -> Row | None:
            n, sites = int(past[0]["n"][place]), int(past[0]["sites"][place])
            if not n and not all(place):
                return None  # nobody lacks this value
            return (None, None) if place in hidden else (n, sites)

        return self._table(frame, "sites", numbers)

    def norms(self, frame: Frame) -> dict[str, tuple[float, int]]:
        """Return the norm: a record is in a single cell."""
        return {"n": (1.0, 1)}

    def noised(self, frame: Frame, past: Past, error: Mapping[str, float]) -> dict[str, Table]:
        """Return a table with a row for each cell of at least `min_count` noised records."""

        def numbers(place: tuple[int, ...]) -> Row:
            n = shown(past[0]["n"][place])
            return (None, None) if n < frame.min_count else (n, error["n"])

        return self._table(frame, "se", numbers)

    def _table(self, frame: Frame, last: str, numbers: Numbers) -> dict[str, Table]:
        """Return a table with the numbers of each cell; cells without numbers have no row."""
        heads, parts, labels = zip(*self._axes(frame), strict=True)
        rows = list[Row]()
        for place in product(*((*range(1, len(part)), 0) for part in parts)):
            found = numbers(place)
            if found is not None:
                rows.append(
                    (*(names[i] for names, i in zip(labels, place, strict=True)), *found)
                )
        return {"": Table((*heads, "records", last), tuple(rows))}


def _axis(frame: Frame, name: str) -> Axis:
    values = frame.values(name)
    return name, [(name, i, i + 1) for i in range(-1, len(values))], (MISSING, *values)


@dataclass(frozen=True)
class Counts(_Cells):
    """Numbers of records by one or more categories: a cross table. Missing values are a value.

    Parameters
    ----------
    columns : sequence of str
        1 to 6 Categories of the plan, with at most 100,000 cells.
    """

    columns: Sequence[str]
    kind: ClassVar[str] = "counts"

    def __post_init__(self) -> None:
        names = names_of("columns", self.columns)
        if not 0 < len(names) <= 6 or len(set(names)) < len(names):
            raise ParameterError(f"columns is {names}; name 1 to 6 different columns")
        object.__setattr__(self, "columns", names)

    @property
    def name(self) -> str:
        """Name in results."""
        return f"counts of {' and '.join(self.columns)}"

    def check(self, frame: Frame) -> None:
        """Raise `ParameterError` if a column is no category or the cells are too many."""
        cells = prod(len(frame.values(name)) + 1 for name in self.columns)
        if cells > MAX_CELLS:
            raise ParameterError(f"{self.name} has {cells:,} cells; plan at most {MAX_CELLS:,}")

    def words(self, frame: Frame) -> str:
        """Return what everybody learns."""
        return f"number of records for each value of {', '.join(self.columns)}"

    def _axes(self, frame: Frame) -> list[Axis]:
        return [_axis(frame, name) for name in self.columns]


@dataclass(frozen=True)
class Histogram(_Cells, Grouped):
    """Numbers of records between declared edges, by groups.

    A bin has the lower edge and not the upper edge; the last bin has both. Values outside of
    the column's range are in the first bin and in the last bin.

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
    edges: Sequence[Real]
    by: str | None = None
    kind: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        edges = tuple(decimal_text(exact("an edge", edge)) for edge in self.edges)
        object.__setattr__(self, "edges", edges)

    def check(self, frame: Frame) -> None:
        """Raise `ParameterError` unless the columns are in the plan and the edges fit."""
        super().check(frame)
        starts = self.points(frame.number(self.column))
        if not starts or any(a >= b for a, b in pairwise((0, *starts))):
            raise ParameterError(
                f"the edges of {self.name} are {self.edges}; list ascending edges above the "
                f"column's low, {frame.number(self.column).low}"
            )

    def points(self, column: Number) -> tuple[int, ...]:
        """Return the edges as points of the column's grid."""
        return tuple(column.point(f"an edge of {self.name}", edge) for edge in self.edges)

    def words(self, frame: Frame) -> str:
        """Return what everybody learns."""
        return f"number of records in {len(self.edges) + 1} ranges of {self.column}{self._each}"

    def _axes(self, frame: Frame) -> list[Axis]:
        column = frame.number(self.column)
        cuts = (-1, 0, *self.points(column), column.units + 1)
        parts = [(self.column, a, b) for a, b in pairwise(cuts)]
        ends = (column.low, *map(str, self.edges), column.high)
        bins = [f"{a} to {b}" for a, b in pairwise(ends)]
        groups = [] if self.by is None else [_axis(frame, self.by)]
        return [*groups, (self.column, parts, (MISSING, *bins))]
