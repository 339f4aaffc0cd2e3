"""Kaplan–Meier curves and the log-rank test on a declared grid of times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from secagg.errors import ParameterError
from secagg.statistics.columns import Real, decimal_text, decimals
from secagg.statistics.exact import Singular, indicator, solve
from secagg.statistics.layout import Exact, Field
from secagg.statistics.records import Records
from secagg.statistics.statistic import Frame, Grouped, Hidden, Past, Row, Table

Curve: TypeAlias = tuple[list[tuple[float, float, float]], int]
"""Time, survival and standard error of each point, and the events after the last."""


@dataclass(frozen=True)
class Survival(Grouped):
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
    grid: Sequence[Real]
    by: str | None = None

    def __post_init__(self) -> None:
        grid = decimals("grid", self.grid)
        if not 0 < len(grid) <= 10_000 or sorted(set(grid)) != grid:
            raise ParameterError(f"grid has {len(grid):,} times; list 1 to 10,000, ascending")
        object.__setattr__(self, "grid", tuple(map(decimal_text, grid)))

    @property
    def _columns(self) -> tuple[str, ...]:
        return (self.time, self.event)

    def check(self, frame: Frame) -> None:
        """Raise `ParameterError` unless the columns are in the plan and the grid fits."""
        for time in self.grid:
            frame.number(self.time).point(f"a time of {self.name}", time)
        values = frame.values(self.event)
        if len(values) != 2:
            raise ParameterError(
                f"{self.event!r} has the values {values}; an event needs two: censored, event"
            )
        self.groups(frame)

    def words(self, frame: Frame) -> str:
        """Return what everybody learns."""
        groups = f" for each value of {self.by}, and the log-rank test" if self.by else ""
        return (
            f"survival by {self.time} at up to {len(self.grid)} times{groups}, where an event "
            f"is {self.event} = {frame.values(self.event)[1]}"
        )

    def fields(self, frame: Frame, past: Past) -> list[Field]:
        """Return the fields of the only step."""
        # censorings and events at each time, and after the last
        shape = (len(self.groups(frame)), 2, len(self.grid) + 1)
        return [] if past else [Field("n", shape), Field("sites", shape[:1])]

    def sums(self, frame: Frame, records: Records, past: Past) -> dict[str, Any]:
        """Return the censorings and events at each time, by group."""
        column = frame.number(self.time)
        times = [column.point("a time", time) for time in self.grid]
        left = np.zeros((len(self.groups(frame)), 2, len(times) + 1), np.int64)
        for g, mask in enumerate(self.masks(frame, records)):
            place = np.searchsorted(times, records.points[self.time][mask])
            place[records.above[self.time][mask]] = len(times)  # after the last time
            np.add.at(left[g], (records.points[self.event][mask], place), 1)
        return {"n": left, "sites": indicator(left.sum((1, 2)))}

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return the curves, a summary of the groups, and the log-rank test."""
        times = [float(time) for time in self.grid]
        curve, summary, seen = list[Row](), list[Row](), list[tuple[Exact, Exact]]()
        left = past[0]["n"]
        # at risk are all that leave at the time or later
        risks, deaths = left.sum(1)[:, ::-1].cumsum(1)[:, :0:-1], left[:, 1, :-1]
        # the events of a group would follow from all events
        open_to_all = not any(map(frame.few, (*left[:, 0].sum(1), *deaths.sum(1))))
        groups = zip(self.groups(frame), risks, deaths, past[0]["sites"], strict=True)
        for g, (name, risk, events, sites) in enumerate(groups):
            n, total = int(risk[0]), int(events.sum())
            if (g,) in hidden or n < frame.min_count:
                summary.append((name, None, None, None, None))
                continue
            seen.append((risk, events))
            points, after = kaplan_meier(times, risk, events, frame)
            curve += [(name, *point) for point in points]
            few = any(map(frame.few, (total, n - total, after)))
            shown = total if open_to_all and not few else None
            median = next((time for time, s, _ in points if s <= 0.5), None)
            summary.append((name, n, int(sites), shown, median))
        tables = {
            "": self.table(("records", "sites", "events", "median"), summary),
            "curve": self.table(("time", "survival", "se"), curve),
        }
        if self.by is not None:
            tables["log-rank test"] = log_rank(seen)
        return tables


def kaplan_meier(times: Sequence[float], risk: Exact, events: Exact, frame: Frame) -> Curve:
    """Return time, survival and Greenwood's standard error, and the events after the last.

    Between two times, and after the last, are no fewer events and censorings than `min_count`.
    """
    survival, variance, since, lost, shown = Fraction(1), 0.0, 0, 0, 0
    points = list[tuple[float, float, float]]()
    risks = [*map(int, risk), 0]
    for time, n, then, d in zip(times, risks[:-1], risks[1:], map(int, events), strict=True):
        if n < frame.min_count:
            break
        survival *= Fraction(n - d, n)
        variance += d / (n * (n - d)) if d < n else 0.0
        since += d
        # a step of the curve over few records could be the time of a single record
        if since >= frame.min_count and not frame.few(lost) and not frame.few(n - d):
            points.append((time, float(survival), float(survival) * math.sqrt(variance)))
            since, lost, shown = 0, 0, shown + since
        lost += n - d - then
    return points, int(events.sum()) - shown


def log_rank(groups: Sequence[tuple[Exact, Exact]]) -> Table:
    """Return the test statistic, degrees of freedom and p value of equal survival."""
    from scipy.special import chdtrc

    head, k = ("chi2", "df", "p"), len(groups) - 1
    if k < 1:
        return Table(head, ((None, None, None),), "no test: fewer than two groups are shown")
    sums = np.full((k, k + 1), Fraction(0), object)  # the covariance, and the difference
    risks, events = (np.stack(numbers, 1) for numbers in zip(*groups, strict=True))
    for n, d in zip(risks, events, strict=True):
        all_n, all_d = int(n.sum()), int(d.sum())
        if all_n < 2 or not all_d:
            continue
        spread = Fraction(all_d * (all_n - all_d), all_n**2 * (all_n - 1))
        sums[:, :k] += (spread * (np.diag(n * all_n) - np.outer(n, n)))[:k, :k]
        sums[:, k] += (d - n * Fraction(all_d, all_n))[:k]
    whole = sums * math.lcm(*(x.denominator for x in sums.flat))
    try:
        solved = np.array(solve(whole[:, :k], whole[:, k:]), object)
    except Singular:
        return Table(head, ((None, k, None),), "no test: no event while two groups are at risk")
    statistic = float(sums[:, k] @ solved[:, 0])
    return Table(head, ((statistic, k, float(chdtrc(k, statistic))),))
