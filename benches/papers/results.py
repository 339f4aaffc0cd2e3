"""Results of tables: finished runs, rows with their runs, and verdicts on their targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev

from benches.papers.table import Mean, Results, Row, Table


@dataclass(frozen=True, kw_only=True)
class Record:
    """Figures of a finished run, and the circumstances in which it ran."""

    seed: int
    figures: Mapping[str, float]
    seconds: float  # loading the data included
    date: str  # end of the run, UTC, in ISO 8601
    state: str  # a digest of the sources and the data
    machine: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of a job: a `record`, an `error`, or the package or data that is `missing`."""

    record: Record | None = None
    error: str | None = None
    missing: str | None = None


@dataclass(frozen=True, kw_only=True)
class RowResult:
    """A row of a table and the results of its runs."""

    row: Row
    wanted: int  # runs there should be; all of the row's seeds if it is to be `whole`
    records: tuple[Record, ...]  # in the order of the seeds
    error: str | None = None
    missing: str | None = None  # the data or the package that runs lack

    def by_seed(self, metric: str) -> dict[int, float]:
        """Return the values of a metric by seed, for the runs that have the metric."""
        return {r.seed: r.figures[metric] for r in self.records if metric in r.figures}

    def measured(self, metric: str) -> Mean | None:
        """Return the mean of a metric, with its spread if several runs have it."""
        found = list(self.by_seed(metric).values())
        return Mean(fmean(found), stdev(found) if len(found) > 1 else None) if found else None

    @property
    def finished(self) -> bool:
        """True if all wanted runs are finished."""
        return len(self.records) == self.wanted


@dataclass(frozen=True, kw_only=True)
class TableResult:
    """A table and the results of its rows, in the table's order."""

    table: Table
    rows: tuple[RowResult, ...]
    quick: bool = False  # if True, neither judged nor final

    def judged(self, row: RowResult) -> Mapping[str, bool]:
        """Return True for each target reached; nothing if the row cannot be judged yet."""
        if self.quick or not row.records or (row.row.whole and not row.finished):
            return {}
        verdicts = dict[str, bool]()
        for metric, target in row.row.target.items():
            mean = row.measured(metric)
            verdicts[metric] = mean is not None and target.met(mean.mean)
        others = {one.row.name: one for one in self.rows}
        for metric, below in row.row.below.items():
            mine, theirs = row.by_seed(metric), others[below.row].by_seed(metric)
            apart = [mine[seed] - theirs[seed] for seed in mine if seed in theirs]
            if apart:  # else there is nothing to compare with
                verdicts[f"{metric} below {below.row}"] = fmean(apart) <= -below.margin
        return verdicts

    def final(self, row: RowResult) -> bool:
        """Return True if the row is finished, and so is every row with which it is compared."""
        names = {row.row.name, *(below.row for below in row.row.below.values())}
        compared = [one for one in self.rows if one.row.name in names]
        return not self.quick and all(one.finished for one in compared)

    @property
    def results(self) -> Results:
        """Figures of all runs by the name of the row, for the table's own pictures."""
        found = {one.row.name: [run.figures for run in one.records] for one in self.rows}
        return {name: figures for name, figures in found.items() if figures}


@dataclass(frozen=True, kw_only=True)
class Report:
    """The results of all requested tables."""

    tables: tuple[TableResult, ...]
    missing: Mapping[str, str]  # by key, the reason why a table could not be imported
    seeds: int
    quick: bool

    @property
    def verdicts(self) -> Mapping[tuple[str, str, str], bool]:
        """True for each target that is met, by (table's key, row's name, target), if final."""
        return {
            (result.table.key, row.row.name, aim): met
            for result in self.tables
            for row in result.rows
            if result.final(row)
            for aim, met in result.judged(row).items()
        }
