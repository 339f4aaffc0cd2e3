"""Numbers of records: in cells and histograms, and of missing, unknown and clipped values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod, sqrt
from typing import Any, ClassVar, TypeAlias

import numpy as np

from secagg.errors import ParameterError
from secagg.statistics.columns import Number, Real, decimal_text, decimals
from secagg.statistics.design import names_of
from secagg.statistics.exact import indicator
from secagg.statistics.layout import Field
from secagg.statistics.noise import shown
from secagg.statistics.records import Records
from secagg.statistics.statistic import Frame, Grouped, Hidden, Past, Statistic, Table, Where

MAX_CELLS = 100_000
MISSING = "(missing)"
"""Name of the category of missing values."""
Numbers: TypeAlias = Mapping[tuple[int, ...], tuple[float | None, ...]]
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
        axes = self._axes(frame)
        shape = tuple(len(parts) for _, parts, _ in axes)
        each = [
            np.searchsorted([start for _, start, _ in parts], records.points[name], "right") - 1
            for name, parts, _ in axes
        ]
        places = np.ravel_multi_index(each, shape)
        n = np.bincount(places, minlength=prod(shape)).reshape(shape)
        return {"n": n, "sites": indicator(n)}

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return a table with a row for each cell, missing values last."""
        counts, sites = past[0]["n"], past[0]["sites"]
        numbers = {
            place: (None, None) if place in hidden else (int(n), int(sites[place]))
            for place, n in np.ndenumerate(counts)
            if n or all(place)  # else nobody lacks this value
        }
        return self._table(frame, "sites", numbers)

    def norms(self, frame: Frame) -> dict[str, tuple[float, int]]:
        """Return the norm: a record is in a single cell."""
        return {"n": (1.0, 1)}

    def noised(self, frame: Frame, past: Past, error: Mapping[str, float]) -> dict[str, Table]:
        """Return a table with a row for each cell of at least `min_count` noised records."""
        numbers = {
            place: (None, None) if n < frame.min_count else (float(n), error["n"])
            for place, n in np.ndenumerate(past[0]["n"])
        }
        return self._table(frame, "se", numbers)

    def _table(self, frame: Frame, last: str, numbers: Numbers) -> dict[str, Table]:
        """Return a table with the numbers of each cell; cells without numbers have no row."""
        heads, _, labels = zip(*self._axes(frame), strict=True)
        named = product(*((*names[1:], names[0]) for names in labels))
        places = product(*((*range(1, len(names)), 0) for names in labels))
        rows = [(*n, *numbers[p]) for n, p in zip(named, places, strict=True) if p in numbers]
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names_of("columns", self.columns, 1, 6))

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

    def __post_init__(self) -> None:
        edges = decimals("edges", self.edges)
        object.__setattr__(self, "edges", tuple(map(decimal_text, edges)))

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


@dataclass(frozen=True)
class Indicators(Statistic):
    """Numbers of records, of missing, unknown and clipped values; a part of every plan.

    Parameters
    ----------
    names : tuple of str
        Columns of the plan.
    """

    names: tuple[str, ...]
    counts_only: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """Name in results."""
        return "records"

    def wheres(self, frame: Frame) -> list[Where]:
        """Return all records, then the records without a value in each column."""
        return [(), *(((name, -1, 0),) for name in self.names)]

    def words(self, frame: Frame) -> str:
        """Return what everybody learns."""
        return (
            "number of sites and records, and for each column the numbers of missing values, "
            "of values outside of the range and of values that are in no list"
        )

    def fields(self, frame: Frame, past: Past) -> list[Field]:
        """Return the fields of the first step."""
        more = {"n": 1, "sites": 1, "below": 0, "above": 0}
        return [] if past else [Field(k, (len(self.names) + m,)) for k, m in more.items()]

    def sums(self, frame: Frame, records: Records, past: Past) -> dict[str, Any]:
        """Return a site's numbers; unknown values count as missing and as above."""
        n = [records.size, *(int((records.points[c] < 0).sum()) for c in self.names)]
        ends: list[Mapping[str, Any]] = [records.below, {**records.above, **records.unknown}]
        below, above = ([int(np.sum(end.get(c, 0))) for c in self.names] for end in ends)
        return {"n": n, "sites": indicator(n), "below": below, "above": above}

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return a row for each column; a clipped count below `min_count` is hidden."""
        whole = int(past[0]["n"][0])
        n, *missing = (None if (i,) in hidden else int(k) for i, k in enumerate(past[0]["n"]))
        below, above = (
            [None if frame.few(k) or frame.few(whole - k) else int(k) for k in past[0][end]]
            for end in ("below", "above")
        )
        rows = [
            (c, m, low, high, None)
            if isinstance(frame.columns[c], Number)
            else (c, m, None, None, high)
            for c, m, low, high in zip(self.names, missing, below, above, strict=True)
        ]
        sites = None if n is None else int(past[0]["sites"][0])
        return {
            "": Table(("column", "missing", "below", "above", "unknown"), tuple(rows)),
            "all": Table(("records", "sites"), ((n, sites),)),
        }

    def norms(self, frame: Frame) -> dict[str, tuple[float, int]]:
        """Return the norms: a record is in all numbers at most once."""
        size = len(self.names)
        return {"n": (sqrt(size + 1), 1), "below": (sqrt(size), 1), "above": (sqrt(size), 1)}

    def noised(self, frame: Frame, past: Past, error: Mapping[str, float]) -> dict[str, Table]:
        """Return a row for each column, with standard errors."""
        n, *missing = (shown(x) for x in past[0]["n"])
        outside = zip(*(map(shown, past[0][key]) for key in ("below", "above")), strict=True)
        rows = [(c, m, *o) for c, m, o in zip(self.names, missing, outside, strict=True)]
        note = "standard errors: " + ", ".join(f"{k} {e:.3g}" for k, e in error.items())
        return {
            "": Table(("column", "missing", "below", "above or unknown"), tuple(rows), note),
            "all": Table(("records", "se"), ((n, error["n"]),)),
        }
