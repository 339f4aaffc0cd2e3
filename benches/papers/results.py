"""Results of the runs of a table, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from benches.papers.table import Results, Row, Table

__all__ = ["Measured", "Record", "Report", "RowResult", "TableResult"]


@dataclass(frozen=True, kw_only=True)
class Record:
    """A finished run."""

    seed: int
    figures: Mapping[str, float]
    seconds: float  # loading the data included
    date: str  # of its end, UTC, in ISO 8601
    state: str  # a digest of the sources and the data
    machine: Mapping[str, str]


@dataclass(frozen=True)
class Measured:
    """The mean over the runs, and their sample standard deviation if there are several."""

    mean: float
    sd: float | None


@dataclass(frozen=True, kw_only=True)
class RowResult:
    """A row and its runs."""

    row: Row
    wanted: int  # runs there should be; all of the row's seeds if it is to be `whole`
    records: tuple[Record, ...]  # in the order of the seeds
    error: str | None = None
    missing: str | None = None  # the data or the package that runs lack

    def measured(self, metric: str) -> Measured | None:
        """Return mean and spread of a metric, None if no run has it."""
        found = [one.figures[metric] for one in self.records if metric in one.figures]
        if not found:
            return None
        return Measured(fmean(found), stdev(found) if len(found) > 1 else None)

    @property
    def finished(self) -> bool:
        """True if all runs are there."""
        return len(self.records) == self.wanted

    @property
    def met(self) -> Mapping[str, bool]:
        """By metric with a target of its own, True if the mean reaches it."""
        means = {metric: self.measured(metric) for metric in self.row.target}
        return {
            metric: mean is not None and self.row.target[metric].met(mean.mean)
            for metric, mean in means.items()
        }

    def apart(self, other: RowResult, metric: str) -> float | None:
        """Return the mean of a metric of this row − the other's, over the seeds of both."""
        mine, theirs = (
            {one.seed: one.figures[metric] for one in row.records if metric in one.figures}
            for row in (self, other)
        )
        differences = [mine[seed] - theirs[seed] for seed in mine if seed in theirs]
        return fmean(differences) if differences else None


@dataclass(frozen=True, kw_only=True)
class TableResult:
    """A table and the results of its rows, in the table's order."""

    table: Table
    rows: tuple[RowResult, ...]

    def judged(self, row: RowResult) -> Mapping[str, bool]:
        """Return for each of a row's targets, by its name, True if it is reached.

        A row without runs is not judged, nor is a `whole` one that is unfinished.
        """
        if not row.records or (row.row.whole and not row.finished):
            return {}
        verdicts = dict(row.met)
        others = {one.row.name: one for one in self.rows}
        for metric, below in row.row.below.items():
            apart = row.apart(others[below.row], metric)
            if apart is not None:  # else there is nothing to compare with
                verdicts[f"{metric} below {below.row}"] = apart <= -below.margin
        return verdicts

    def final(self, row: RowResult) -> bool:
        """Return True if the row, and every row it is compared with, is finished."""
        compared = {below.row for below in row.row.below.values()}
        return row.finished and all(r.finished for r in self.rows if r.row.name in compared)

    @property
    def records(self) -> tuple[Record, ...]:
        """All runs of all rows."""
        return tuple(record for row in self.rows for record in row.records)

    @property
    def results(self) -> Results:
        """The figures that the table's own pictures are drawn from."""
        return {
            one.row.name: [record.figures for record in one.records]
            for one in self.rows
            if one.records
        }


@dataclass(frozen=True, kw_only=True)
class Report:
    """The results of all requested tables."""

    tables: tuple[TableResult, ...]
    missing: Mapping[str, str]  # by key, the reason why a table could not be imported
    seeds: int
    quick: bool

    @property
    def verdicts(self) -> Mapping[tuple[str, str, str], bool]:
        """By key of the table, name of the row and target, True if met; final ones only."""
        return {
            (result.table.key, row.row.name, aim): met
            for result in self.tables
            for row in result.rows
            if result.final(row) and not self.quick
            for aim, met in result.judged(row).items()
        }

    @property
    def failed(self) -> bool:
        """True if a run failed."""
        return any(row.error for table in self.tables for row in table.rows)
