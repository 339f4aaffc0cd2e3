"""Tables, measured: what is kept already is taken from there, the rest is run and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Protocol

from benches.papers import tables as listed
from benches.papers.origin import DISTRIBUTION, here, state
from benches.papers.pool import Job, Outcome, run_jobs
from benches.papers.results import Report, RowResult, TableResult
from benches.papers.store import Record, Store, Task
from benches.papers.table import Row, Table
from benches.papers.tables import find_table, resolve
from fedmf.data import load, source_of
from fedmf.data.sets.folders import found_folder
from fedmf.errors import DataError, MissingExtra, SettingError

__all__ = ["QUICK_SEEDS", "Watch", "reproduce"]

QUICK_SEEDS = 2


class Watch(Protocol):
    """Is told how the work goes on."""

    def begin(self, kept: int, to_run: int) -> None:
        """Learn how many runs were kept before, and how many are to be made now."""

    def step(self, job: Job, what: str, done: int, of: int) -> None:
        """Learn how far a run is."""

    def finished(self, job: Job, outcome: Outcome) -> None:
        """Learn how a run ended; if it has figures, it is kept."""


def reproduce(
    keys: Sequence[str],
    store: Store,
    watch: Watch,
    *,
    seeds: int = 10,
    jobs: int = 1,
    quick: bool = False,
) -> Report:
    """Measure tables, and return what is known then.

    Ctrl-C (KeyboardInterrupt) ends it; what was finished is in the store, and the next call
    goes on from there.

    Parameters
    ----------
    keys
        Of `benches.papers.tables.MODULES`, or "all".
    store
        Where runs are kept.
    watch
        Is told how it goes on.
    seeds
        How many runs of each row, with the seeds 0, 1, …; at least 1.
    jobs
        How many processes, at least 1.
    quick
        Whether to try the rows only: `QUICK_SEEDS` seeds, a tenth of the rounds, no result.

    Raises
    ------
    SettingError
        If a table is unknown or a number out of range, or a run cannot be kept.
    """
    for name, value in (("seeds", seeds), ("jobs", jobs)):
        if value < 1:
            raise SettingError(f"--{name} {value} must be at least 1")
    seeds = min(seeds, QUICK_SEEDS) if quick else seeds
    chosen = resolve(keys, listed.MODULES)
    tables, missing = _tables(chosen)
    work = _Work(store)
    for table in tables:
        for row in table.rows:
            for seed in range(seeds if row.seeds is None else min(seeds, row.seeds)):
                module = chosen[table.key]
                work.add(
                    Job(module=module, table=table.key, row=row.name, seed=seed, quick=quick),
                    row,
                )
    to_run = work.to_run()
    watch.begin(len(work.records), len(to_run))

    def finished(job: Job, outcome: Outcome) -> None:
        work.keep(job, outcome)
        watch.finished(job, outcome)

    run_jobs(to_run, processes=jobs, finished=finished, progress=watch.step)
    results = tuple(
        TableResult(
            table=table,
            rows=tuple(work.result(table.key, row) for row in table.rows),
            present=work.states(),
        )
        for table in tables
    )
    return Report(tables=results, missing=missing, seeds=seeds, quick=quick)


class _Work:
    """The runs that were asked for, and what is known of them."""

    def __init__(self, store: Store) -> None:
        self.records: dict[Job, Record] = {}
        self._store = store
        self._rows: dict[Job, Row] = {}
        self._states: dict[str, str] = {}  # by data set
        self._errors: dict[tuple[str, str], str] = {}  # by table and row
        self._missing: dict[tuple[str, str], str] = {}
        self._version = version(DISTRIBUTION)
        self._machine = here()

    def add(self, job: Job, row: Row) -> None:
        """Ask for a run; it may be in the store."""
        self._rows[job] = row
        record = self._store.get(self._task(job))
        if record is not None:
            self.records[job] = record

    def to_run(self) -> list[Job]:
        """Return the runs that are not in the store and whose data are at hand."""
        absent: dict[str, str] = {}
        for name in dict.fromkeys(row.data for row in self._rows.values()):
            try:
                self._states[name] = state(load(name))
            except DataError as error:
                absent[name] = _why_absent(name, error)
        pending = [job for job in self._rows if job not in self.records]
        for job in pending:
            if (reason := absent.get(self._rows[job].data)) is not None:
                self._missing[_place(job)] = reason
        return [job for job in pending if _place(job) not in self._missing]

    def states(self) -> Mapping[str, str]:
        """Return the present state by data set, of those that `to_run` could load."""
        return self._states

    def keep(self, job: Job, outcome: Outcome) -> None:
        """Write down how a run ended."""
        if outcome.error is not None:
            self._errors.setdefault(_place(job), f"seed {job.seed}: {outcome.error}")
        elif outcome.missing is not None:
            self._missing[_place(job)] = outcome.missing
        else:
            record = Record(
                task=self._task(job),
                figures=outcome.figures,
                seconds=round(outcome.seconds, 2),
                date=datetime.now(UTC).isoformat(timespec="seconds"),
                state=self._states[self._rows[job].data],
                machine=self._machine,
            )
            self._store.put(record)
            self.records[job] = record

    def result(self, table: str, row: Row) -> RowResult:
        """Return what is known of a row."""
        place = (table, row.name)
        jobs = [job for job in self._rows if _place(job) == place]
        return RowResult(
            row=row,
            wanted=row.seeds if row.whole and row.seeds is not None else len(jobs),
            records=tuple(self.records[job] for job in jobs if job in self.records),
            error=self._errors.get(place),
            missing=self._missing.get(place),
        )

    def _task(self, job: Job) -> Task:
        row = self._rows[job]
        return Task(
            table=job.table,
            row=job.row,
            data=row.data,
            settings=row.settings,
            seed=job.seed,
            quick=job.quick,
            version=self._version,
        )


def _why_absent(name: str, error: DataError) -> str:
    """Say why data cannot be loaded; where they are not there, without this machine's folders.

    The report is to be read elsewhere, too.
    """
    try:
        source = source_of(name)
    except DataError:
        return str(error)
    if found_folder(source) is not None:
        return str(error)
    return (
        f"for the data set {name} was not at hand: run 'fedmf data fetch {source.name}', or "
        f"put its folder {source.folder!r} into the one that FEDMF_DATA names"
    )


def _place(job: Job) -> tuple[str, str]:
    return job.table, job.row


def _tables(chosen: Mapping[str, str]) -> tuple[list[Table], dict[str, str]]:
    """Return the tables, and why others cannot be had."""
    tables, missing = list[Table](), dict[str, str]()
    for key, module in chosen.items():
        try:
            tables.append(find_table(module, key))
        except MissingExtra as error:
            missing[key] = str(error)
    return tables, missing
