"""Quantiles by counts on grids that are refined step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from secagg._check import check_integer
from secagg.errors import ParameterError
from secagg.statistics.columns import Real, decimal_text, exact
from secagg.statistics.layout import Field, Sums
from secagg.statistics.records import Records
from secagg.statistics.statistic import (
    Cell,
    Columns,
    Hidden,
    Limits,
    Table,
    Value,
    Where,
    check_by,
    group_cells,
    group_masks,
    group_names,
    group_wheres,
    number,
)


@dataclass(frozen=True)
class Interval:
    """Interval of points that has a quantile, and what is known of its records.

    Attributes
    ----------
    start, stop : int
        First point, and the point after the last.
    before : int
        Records below the interval.
    inside : int
        Records in the interval.
    """

    start: int
    stop: int
    before: int
    inside: int


@dataclass(frozen=True)
class Quantiles:
    """Intervals that have the quantiles of a column, by groups.

    Each step counts the records in `bins` parts of the last interval. The steps end at a single
    point of the grid, after `steps` steps, or where the interval has fewer than twice the
    plan's `min_count` records. An interval with fewer records than `min_count` is never
    published. The quantile is the smallest value with at least the share of records at or below,
    ``numpy.quantile(…, method="inverted_cdf")``.

    Parameters
    ----------
    column : str
        A Number of the plan.
    shares : sequence of numbers
        Shares in (0, 1), such as .5 for the median.
    bins : int
        Parts of an interval, 2 to 1,000.
    steps : int
        Most steps, 1 to 20.
    by : str, optional
        A Category of the plan.
    """

    column: str
    shares: tuple[Real, ...] = (0.25, 0.5, 0.75)
    bins: int = 20
    steps: int = 4
    by: str | None = None
    kind: ClassVar[str] = "quantiles"

    def __post_init__(self) -> None:
        check_integer("bins", self.bins, 2, 1000)
        check_integer("steps", self.steps, 1, 20)
        shares = tuple(exact("a share", share) for share in self.shares)
        if not shares or any(not 0 < share < 1 for share in shares):
            raise ParameterError(f"shares are {self.shares}; list numbers between 0 and 1")
        object.__setattr__(self, "shares", tuple(map(decimal_text, shares)))

    @property
    def name(self) -> str:
        """Name in results."""
        return f"quantiles of {self.column}" + (f" by {self.by}" if self.by else "")

    def check(self, columns: Columns) -> None:
        """Raise `ParameterError` unless the columns are in the plan."""
        number(columns, self.column)
        check_by(columns, self.by)

    def wheres(self, columns: Columns) -> list[Where]:
        """Return the groups."""
        return group_wheres(columns, self.by, self.column)

    def words(self, columns: Columns) -> str:
        """Return what everybody learns."""
        groups = f", for each value of {self.by}" if self.by else ""
        return (
            f"intervals that have the quantiles {', '.join(map(str, self.shares))} of "
            f"{self.column}{groups}, by counts in {self.bins} parts in at most {self.steps} steps"
        )

    def fields(self, columns: Columns, limits: Limits, past: Sequence[Sums]) -> list[Field]:
        """Return the counts of the next step; none for intervals that are not divided."""
        grids = [grid for group in self._grids(columns, limits, past) for grid in group]
        groups = (len(group_names(columns, self.by)),)
        first = [] if past else [Field("n", groups), Field("sites", groups)]
        parts = sum(len(grid) - 1 for grid in grids)
        return [*first, Field("parts", (parts,))] if parts else []

    def sums(
        self, columns: Columns, limits: Limits, records: Records, past: Sequence[Sums]
    ) -> dict[str, Any]:
        """Return the records in each part of each interval."""
        sizes, parts = [], []
        masks = group_masks(columns, records, self.by, self.column)
        for mask, grids in zip(masks, self._grids(columns, limits, past), strict=True):
            points = np.sort(records.points[self.column][mask])
            sizes.append(points.size)
            parts += [np.diff(np.searchsorted(points, grid)) for grid in grids]
        sites = [int(size > 0) for size in sizes]
        return {"n": sizes, "sites": sites, "parts": np.concatenate(parts)}

    def cells(self, columns: Columns, past: Sequence[Sums]) -> list[Cell]:
        """Return the number of records of each group."""
        return group_cells(self.name, self.wheres(columns), past[0]["n"], past[0]["sites"])

    def tables(
        self, columns: Columns, limits: Limits, past: Sequence[Sums], hidden: Hidden
    ) -> dict[str, Table]:
        """Return a table with a row for each group and share."""
        column, rows = number(columns, self.column), list[tuple[Value, ...]]()
        sums = past[0]
        for g, found in enumerate(self._intervals(columns, limits, past)):
            n, sites = int(sums["n"][g]), int(sums["sites"][g])
            for share, (interval, _) in zip(self.shares, found, strict=True):
                row: tuple[Value, ...] = (None,) * 4
                if n and (g,) not in hidden and not limits.few(interval.inside, sites):
                    row = (
                        n,
                        sites,
                        column.value(interval.start),
                        column.value(interval.stop - 1),
                    )
                rows.append((share, *row))
                if self.by:
                    rows[-1] = (group_names(columns, self.by)[g], *rows[-1])
        header = ("share", "records", "sites", "from", "to")
        return {"": Table((self.by, *header) if self.by else header, tuple(rows))}

    def _grids(
        self, columns: Columns, limits: Limits, past: Sequence[Sums]
    ) -> list[list[list[int]]]:
        """Return the edges of the next parts, for each group and share; [0] at the end."""
        intervals = self._intervals(columns, limits, past)
        return [[self._edges(now) if more else [0] for now, more in row] for row in intervals]

    def _edges(self, interval: Interval) -> list[int]:
        """Return ascending edges of at most `bins` parts."""
        width = interval.stop - interval.start
        return sorted({interval.start + width * j // self.bins for j in range(self.bins + 1)})

    def _intervals(
        self, columns: Columns, limits: Limits, past: Sequence[Sums]
    ) -> list[list[tuple[Interval, bool]]]:
        """Return each share's interval in each group, and whether to divide the interval again."""
        top = number(columns, self.column).units + 1
        groups = len(group_names(columns, self.by))
        found = [[(Interval(0, top, 0, 0), True) for _ in self.shares] for _ in range(groups)]
        for sums in past:
            left = [int(part) for part in sums["parts"]]
            for g, row in enumerate(found):
                n = int(past[0]["n"][g])
                for i, (now, more) in enumerate(row):
                    if not more:
                        continue
                    edges = self._edges(now)
                    parts, left = left[: len(edges) - 1], left[len(edges) - 1 :]
                    rank = max(1, math.ceil(Fraction(str(self.shares[i])) * n))
                    row[i] = self._inside(now, edges, parts, rank, limits.min_count)
        last = len(past) >= self.steps
        return [[(now, more and not last) for now, more in row] for row in found]

    def _inside(
        self, now: Interval, edges: Sequence[int], parts: Sequence[int], rank: int, least: int
    ) -> tuple[Interval, bool]:
        """Return the part that has a rank, and whether the part may be divided again."""
        before = now.before
        for start, stop, inside in zip(edges, edges[1:], parts, strict=False):
            if before + inside >= rank:
                if inside < least:  # a part that is too small is not published
                    return now, False
                new = Interval(start, stop, before, inside)
                return new, stop - start > 1 and inside >= 2 * least
            before += inside
        return now, False  # without records, or if the sums contradict each other
