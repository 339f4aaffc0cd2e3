"""Quantiles by counts on grids that are refined step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from secagg._check import check_integer
from secagg.errors import ParameterError
from secagg.statistics.columns import Real, decimal_text, decimals
from secagg.statistics.exact import indicator
from secagg.statistics.layout import Field
from secagg.statistics.records import Records
from secagg.statistics.statistic import Cell, Frame, Grouped, Hidden, Past, Row, Table, Where


class Interval(NamedTuple):
    """Interval of points that has a quantile, with numbers of records.

    Attributes
    ----------
    start, stop : int
        First point, and the point after the last.
    before : int
        Records below the interval.
    inside : int
        Records in the interval.
    rank : int
        Rank of the quantile among all records, from 1.
    more : bool
        True if the next step divides the interval.
    """

    start: int
    stop: int
    before: int
    inside: int
    rank: int
    more: bool = True


@dataclass(frozen=True)
class Quantiles(Grouped):
    """Intervals that have the quantiles of a column, by groups.

    Each step counts the records in `bins` parts of the last interval. The steps end at a single
    point of the grid, after `steps` steps, or where the interval has fewer than twice the
    plan's `min_count` records. An interval with fewer records than `min_count` is never
    published, and neither are quantiles with fewer records between two of them. The quantile
    is the smallest value with at least the share of records at or below,
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
    shares: Sequence[Real] = (0.25, 0.5, 0.75)
    bins: int = 20
    steps: int = 4
    by: str | None = None

    def __post_init__(self) -> None:
        check_integer("bins", self.bins, 2, 1000)
        check_integer("steps", self.steps, 1, 20)
        shares = decimals("shares", self.shares)
        if not shares or any(not 0 < share < 1 for share in shares):
            raise ParameterError(f"shares are {self.shares}; list numbers above 0 and below 1")
        object.__setattr__(self, "shares", tuple(map(decimal_text, shares)))

    def words(self, frame: Frame) -> str:
        """Return what everybody learns."""
        return (
            f"intervals that have the quantiles {', '.join(map(str, self.shares))} of "
            f"{self.column}{self._each}, for which the server learns the counts of "
            f"{self.bins} parts in at most {self.steps} steps"
        )

    def fields(self, frame: Frame, past: Past) -> list[Field]:
        """Return the counts of the next step; none for intervals that are not divided."""
        rows = self._intervals(frame, past)
        groups = (len(rows),)
        first = [] if past else [Field("n", groups), Field("sites", groups)]
        parts = sum(len(self._edges(now)) - 1 for row in rows for now in row if now.more)
        return [*first, Field("parts", (parts,))] if parts else []

    def sums(self, frame: Frame, records: Records, past: Past) -> dict[str, Any]:
        """Return the records in each part of each interval."""
        sizes, parts, rows = [], [], self._intervals(frame, past)
        for mask, row in zip(self.masks(frame, records), rows, strict=True):
            points = np.sort(records.points[self.column][mask])
            sizes.append(points.size)
            grids = (self._edges(now) for now in row if now.more)
            parts += [np.diff(np.searchsorted(points, grid)) for grid in grids]
        return {"n": sizes, "sites": indicator(sizes), "parts": np.concatenate(parts)}

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return a table with a row for each group and share."""
        column, rows = frame.number(self.column), list[Row]()
        groups = zip(self.groups(frame), self._intervals(frame, past), strict=True)
        for g, (name, found) in enumerate(groups):
            n = int(past[0]["n"][g])
            sites = int(past[0]["sites"][g]) if "sites" in past[0] else None
            # ranks close to each other would count the records of every part
            close = any(frame.few(abs(a.rank - b.rank)) for a, b in combinations(found, 2))
            for share, now in zip(map(str, self.shares), found, strict=True):
                few = (g,) in hidden or not n or close or frame.few(now.inside, sites or 0)
                ends = (n, sites, column.value(now.start), column.value(now.stop - 1))
                rows.append((name, share, *((None,) * 4 if few else ends)))
        return {"": self.table(("share", "records", "sites", "from", "to"), rows)}

    def cells(self, frame: Frame, past: Past) -> list[Cell]:
        """Return the groups, with the most records below and above each interval."""
        groups = zip(super().cells(frame, past), self._intervals(frame, past), strict=True)
        return [replace(cell, most=tuple(_sides(cell, row))) for cell, row in groups]

    def norms(self, frame: Frame) -> dict[str, tuple[float, int]]:
        """Return the norms: a record is in one part of the interval of each share."""
        return {"n": (1.0, 1), "parts": (math.sqrt(len(self.shares)), 1)}

    def noised(self, frame: Frame, past: Past, error: Mapping[str, float]) -> dict[str, Table]:
        """Return a table with a row for each group and share."""
        few = {(g,) for g, n in enumerate(past[0]["n"]) if n < frame.min_count}
        return self.tables(frame, past, few)

    def _edges(self, interval: Interval) -> list[int]:
        """Return ascending edges of at most `bins` parts."""
        width = interval.stop - interval.start
        return sorted({interval.start + width * j // self.bins for j in range(self.bins + 1)})

    def _intervals(self, frame: Frame, past: Past) -> list[list[Interval]]:
        """Return each group's interval for each share."""
        top = frame.number(self.column).units + 1
        least = frame.min_count * (2 if frame.noised else 1)
        sizes = map(int, past[0]["n"]) if past else [0] * len(self.groups(frame))
        found = [[Interval(0, top, 0, 0, rank) for rank in self._ranks(n)] for n in sizes]
        for sums in past:
            parts = iter(map(int, sums["parts"]))
            for row in found:
                for i, now in enumerate(row):
                    if now.more:
                        row[i] = self._inside(now, parts, least)
        last = len(past) >= self.steps
        return [[now._replace(more=now.more and not last) for now in row] for row in found]

    def _ranks(self, n: int) -> list[int]:
        """Return the ranks of the quantiles among n records."""
        return [max(1, math.ceil(Fraction(str(share)) * n)) for share in self.shares]

    def _inside(self, now: Interval, parts: Iterator[int], least: int) -> Interval:
        """Return the part that has the rank, of the next of all parts."""
        edges, before = self._edges(now), now.before
        counts = list(islice(parts, len(edges) - 1))
        for (start, stop), inside in zip(pairwise(edges), counts, strict=True):
            if before + inside >= now.rank:
                if inside < least:
                    break  # a part that is too small is not published
                more = stop - start > 1 and inside >= 2 * least
                return Interval(start, stop, before, inside, now.rank, more)
            before += inside
        return now._replace(more=False)  # or without records, or the sums contradict each other


def _sides(cell: Cell, row: Sequence[Interval]) -> Iterator[tuple[Where, int]]:
    """Yield the parts below and above each interval, with the most records there."""
    *by, (name, _, end) = cell.where
    for now in row:
        yield (*by, (name, 0, now.start)), now.rank - 1
        yield (*by, (name, now.stop, end)), max(0, cell.count - now.rank)
