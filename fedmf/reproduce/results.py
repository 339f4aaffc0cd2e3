"""What came out of the runs of a table, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from fedmf.reproduce.store import Record
from fedmf.reproduce.table import Results, Row, Table

__all__ = ["Measured", "Report", "RowResult", "TableResult"]


@dataclass(frozen=True)
class Measured:
    """The mean over the runs, and their sample standard deviation if there are several."""

    mean: float
    sd: float | None


@dataclass(frozen=True, kw_only=True)
class RowResult:
    """A row and its runs.

    Parameters
    ----------
    row
        What was run.
    wanted
        How many runs there should be.
    records
        Those there are, in the order of the seeds.
    error, missing
        Why runs failed, or could not be made for want of data or a package.
    """

    row: Row
    wanted: int
    records: tuple[Record, ...]
    error: str | None = None
    missing: str | None = None

    def measured(self, metric: str) -> Measured | None:
        """Return mean and spread of a metric, None if no run has it."""
        found = [one.figures[metric] for one in self.records if metric in one.figures]
        if not found:
            return None
        return Measured(fmean(found), stdev(found) if len(found) > 1 else None)

    @property
    def met(self) -> Mapping[str, bool]:
        """By metric that has a target, whether the mean reaches it."""
        means = {metric: self.measured(metric) for metric in self.row.target}
        return {
            metric: mean is not None and self.row.target[metric].met(mean.mean)
            for metric, mean in means.items()
        }


@dataclass(frozen=True, kw_only=True)
class TableResult:
    """A table and what came out."""

    table: Table
    rows: tuple[RowResult, ...]

    @property
    def records(self) -> tuple[Record, ...]:
        """All runs of all rows."""
        return tuple(record for row in self.rows for record in row.records)

    @property
    def results(self) -> Results:
        """What the table's own pictures are drawn from."""
        return {
            one.row.name: [record.figures for record in one.records]
            for one in self.rows
            if one.records
        }


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that was asked for.

    Parameters
    ----------
    tables
        In the order they were asked for.
    missing
        Why other tables could not be had, by key.
    seeds, quick
        As they were asked for.
    """

    tables: tuple[TableResult, ...]
    missing: Mapping[str, str]
    seeds: int
    quick: bool

    @property
    def failed(self) -> bool:
        """Whether a run failed."""
        return any(row.error for table in self.tables for row in table.rows)
