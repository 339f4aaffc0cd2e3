"""Kaplan–Meier curves and the log-rank test on a declared grid of times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from secagg.errors import ParameterError
from secagg.statistics.columns import Real, decimal_text, exact
from secagg.statistics.exact import Singular, solve
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
    category,
    check_by,
    group_cells,
    group_masks,
    group_names,
    group_wheres,
    indicator,
    number,
)


@dataclass(frozen=True)
class Survival:
    """Kaplan–Meier estimate of survival (JASA 53, 1958), by groups with the log-rank test.

    Each time is moved up to the next time of the grid. At the same time events come before
    censorings. Records after the last time of the grid are censored there. A curve is published
    at times between which at least `min_count` events lie, as long as at least `min_count`
    records are at risk.

    Parameters
    ----------
    time : str
        A Number of the plan: the duration of each record.
    event : str
        A Category of the plan with two values: the second is an event, the first a censoring.
    grid : sequence of numbers
        Ascending times, 1 to 10,000, points of the column's grid.
    by : str, optional
        A Category of the plan: a curve for each value.
    """

    time: str
    event: str
    grid: tuple[Real, ...]
    by: str | None = None
    kind: ClassVar[str] = "survival"

    def __post_init__(self) -> None:
        grid = [exact("a time", time) for time in self.grid]
        if not 0 < len(grid) <= 10_000 or sorted(set(grid)) != grid:
            raise ParameterError(
                f"grid has {len(grid):,} times; list 1 to 10,000 ascending times"
            )
        object.__setattr__(self, "grid", tuple(map(decimal_text, grid)))

    @property
    def name(self) -> str:
        """Name in results."""
        return (
            f"survival of {self.time} by {self.by}" if self.by else f"survival of {self.time}"
        )

    def check(self, columns: Columns) -> None:
        """Raise `ParameterError` unless the columns are in the plan and the grid fits."""
        for time in self.grid:
            number(columns, self.time).point(f"a time of {self.name}", time)
        values = category(columns, self.event).values
        if len(values) != 2:
            raise ParameterError(
                f"{self.event!r} has the values {values}; an event needs two: censored, event"
            )
        check_by(columns, self.by, self.event)

    def wheres(self, columns: Columns) -> list[Where]:
        """Return the groups."""
        return group_wheres(columns, self.by, self.time, self.event)

    def words(self, columns: Columns) -> str:
        """Return what everybody learns."""
        groups = f" for each value of {self.by}, and the log-rank test" if self.by else ""
        return (
            f"survival by {self.time} at up to {len(self.grid)} times{groups}, where an event is "
            f"{self.event} = {category(columns, self.event).values[1]}"
        )

    def fields(self, columns: Columns, limits: Limits, past: Sequence[Sums]) -> list[Field]:
        """Return the fields of the only step."""
        groups = len(group_names(columns, self.by))
        # censorings and events at each time, and after the last
        shape = (groups, 2, len(self.grid) + 1)
        return [] if past else [Field("left", shape), Field("sites", (groups,))]

    def sums(
        self, columns: Columns, limits: Limits, records: Records, past: Sequence[Sums]
    ) -> dict[str, Any]:
        """Return the censorings and events at each time, by group."""
        column = number(columns, self.time)
        times = [column.point("a time", time) for time in self.grid]
        left = np.zeros((len(group_names(columns, self.by)), 2, len(times) + 1), np.int64)
        masks = group_masks(columns, records, self.by, self.time, self.event)
        for g, mask in enumerate(masks):
            place = np.searchsorted(times, records.points[self.time][mask])
            np.add.at(left[g], (records.points[self.event][mask], place), 1)
        return {"left": left, "sites": indicator(left.sum((1, 2)))}

    def cells(self, columns: Columns, past: Sequence[Sums]) -> list[Cell]:
        """Return the number of records of each group."""
        n = past[0]["left"].sum((1, 2))
        return group_cells(self.name, self.wheres(columns), n, past[0]["sites"])

    def tables(
        self, columns: Columns, limits: Limits, past: Sequence[Sums], hidden: Hidden
    ) -> dict[str, Table]:
        """Return the curves, a summary of the groups, and the log-rank test."""
        names = group_names(columns, self.by)
        seen = [
            g
            for g in range(len(names))
            if (g,) not in hidden and past[0]["left"][g].sum() >= limits.min_count
        ]
        curve, summary = list[tuple[Value, ...]](), list[tuple[Value, ...]]()
        for g, name in enumerate(names):
            mine = (name,) if self.by else ()
            if g not in seen:
                summary.append((*mine, None, None, None, None))
                continue
            risk, events = at_risk(past[0]["left"][g])
            points = kaplan_meier(
                [float(time) for time in self.grid], risk, events, limits.min_count
            )
            curve += [(*mine, *point) for point in points]
            median = next((time for time, s, _ in points if s <= 0.5), None)
            total = int(events.sum())
            shown = None if limits.few(total, 0) or limits.few(risk[0] - total, 0) else total
            summary.append((*mine, int(risk[0]), int(past[0]["sites"][g]), shown, median))
        by = (self.by,) if self.by else ()
        tables = {
            "": Table((*by, "records", "sites", "events", "median"), tuple(summary)),
            "curve": Table((*by, "time", "survival", "se"), tuple(curve)),
        }
        if self.by and len(seen) > 1:
            tables["log-rank test"] = log_rank([at_risk(past[0]["left"][g]) for g in seen])
        return tables


Counts = NDArray[np.object_]


def at_risk(left: Counts) -> tuple[Counts, Counts]:
    """Return the numbers of records at risk, and of events, at each time of the grid."""
    leaving = left.sum(0)
    risk = leaving[::-1].cumsum()[::-1]
    return risk[:-1], left[1, :-1]


def kaplan_meier(
    times: Sequence[float], risk: Counts, events: Counts, least: int
) -> list[tuple[float, float, float]]:
    """Return time, survival and Greenwood's standard error, where at least `least` events lie."""
    survival, variance, since = Fraction(1), 0.0, 0
    points = list[tuple[float, float, float]]()
    for time, n, d in zip(times, map(int, risk), map(int, events), strict=True):
        if n < least:
            break
        survival *= Fraction(n - d, n)
        variance += d / (n * (n - d)) if d < n else 0.0
        since += d
        # a step of the curve over fewer events could be the time of a single record
        if since >= least:
            points.append((time, float(survival), float(survival) * math.sqrt(variance)))
            since = 0
    return points


def log_rank(groups: Sequence[tuple[Counts, Counts]]) -> Table:
    """Return the test statistic, degrees of freedom and p value of equal survival."""
    from scipy.special import chdtrc

    k = len(groups) - 1
    difference = [Fraction(0)] * k
    covariance = [[Fraction(0)] * k for _ in range(k)]
    for place in range(len(groups[0][0])):
        n = [int(risk[place]) for risk, _ in groups]
        d = [int(events[place]) for _, events in groups]
        all_n, all_d = sum(n), sum(d)
        if all_n < 2 or not all_d:
            continue
        spread = Fraction(all_d * (all_n - all_d), all_n**2 * (all_n - 1))
        for i in range(k):
            difference[i] += d[i] - Fraction(n[i] * all_d, all_n)
            for j in range(k):
                covariance[i][j] += spread * n[i] * ((all_n if i == j else 0) - n[j])
    statistic = p = None
    try:
        statistic = _quadratic(covariance, difference)
        p = float(chdtrc(k, statistic))
    except Singular:
        pass  # no event at which two groups are at risk
    return Table(("chi2", "df", "p"), ((statistic, k, p),))


def _quadratic(matrix: list[list[Fraction]], vector: list[Fraction]) -> float:
    """Return vᵀ M⁻¹ v in floats of exact fractions."""
    scale = math.lcm(
        *(x.denominator for row in matrix for x in row), *(x.denominator for x in vector)
    )
    whole = np.array([[int(x * scale) for x in row] for row in matrix], object)
    right = np.array([[int(x * scale)] for x in vector], object)
    return float(
        sum((x * y[0] for x, y in zip(vector, solve(whole, right), strict=True)), Fraction(0))
    )
