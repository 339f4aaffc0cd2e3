"""Measuring tables: finished runs come from the store, all others are run and kept at once.

`joblib.Memory` keeps a run under its table, row and seed, and under a digest of the sources and
the data. `joblib.Parallel` runs several at the same time, each in a process with one thread of
linear algebra.
"""

from __future__ import annotations

import hashlib
import math
import os
import signal
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import current_process, resource_tracker
from pathlib import Path
from time import perf_counter
from typing import Protocol

import joblib
from threadpoolctl import threadpool_limits

import benches
import fedmf
import secagg
from benches.papers import table as listed
from benches.papers.results import Record, Report, RowResult, TableResult
from benches.papers.table import Row, Run, Table, find_table, resolve
from fedmf.data import load, source_of
from fedmf.data.sets.folders import found_folder
from fedmf.errors import DataError, MissingExtra, SettingError
from secagg.bench.timing import machine

__all__ = ["QUICK_SEEDS", "Job", "Outcome", "Watch", "reproduce"]

QUICK_SEEDS = 2
DIED = "a process died, perhaps for want of memory: take fewer --jobs"
POLL = 0.1  # seconds between two reports of a run's progress

ROOTS = {one.__name__: Path(one.__path__[0]) for one in (benches, fedmf, secagg)}
SUFFIXES = (".py", ".pyx", ".pxd", ".pxi", ".c", ".h")
APART = (  # of the sources: those that only run, show or fetch, or measure other things
    *("fedmf/cli/", "fedmf/data/fetch/", "secagg/cli/", "secagg/bench/", "secagg/testing/"),
    *(f"benches/papers/{name}.py" for name in ("__main__", "picture", "runner", "show")),
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of one row of a table."""

    table: str
    row: Row
    seed: int
    quick: bool

    @property
    def place(self) -> tuple[str, str]:
        """The table's key and the row's name."""
        return self.table, self.row.name

    def __str__(self) -> str:
        return f"{self.table}: {self.row.name}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a job: a `record`, an `error`, or the extra that is `missing`."""

    record: Record | None = None
    error: str | None = None
    missing: str | None = None


class Watch(Protocol):
    """Receives the progress of `reproduce`."""

    def begin(self, kept: int, to_run: int) -> None:
        """Receive the numbers of runs that were kept before, and that are to be made."""

    def step(self, job: Job, what: str, done: int, of: int) -> None:
        """Receive the progress of a run, with one job at a time only."""

    def finished(self, job: Job, outcome: Outcome) -> None:
        """Receive the end of a run; if it has a record, that is kept."""


def reproduce(
    keys: Sequence[str],
    folder: Path,  # the store of the finished runs
    watch: Watch,
    *,
    seeds: int = 10,  # 0, 1, … of each row
    jobs: int = 1,  # at the same time; one runs in this process
    quick: bool = False,  # a tenth of the rounds, `QUICK_SEEDS` seeds, and no result
) -> Report:
    """Measure tables; after Ctrl-C (KeyboardInterrupt), the next call goes on."""
    listening = signal.getsignal(signal.SIGINT)
    for name, value in (("seeds", seeds), ("jobs", jobs)):
        if value < 1:
            raise SettingError(f"--{name} {value} must be at least 1")
    seeds = min(seeds, QUICK_SEEDS) if quick else seeds
    tables, absent = list[Table](), dict[str, str]()
    for name, module in resolve(keys, listed.MODULES).items():
        try:
            tables.append(find_table(module, name))
        except MissingExtra as error:
            absent[name] = str(error)
    wanted = [
        Job(table=table.key, row=row, seed=seed, quick=quick)
        for table in tables
        for row in table.rows
        for seed in range(seeds if row.seeds is None else min(seeds, row.seeds))
    ]
    states, unloaded = _states(dict.fromkeys(job.row.data for job in wanted))

    def key(job: Job) -> dict[str, object]:
        state = states[job.row.data]
        known = {"table": job.table, "name": job.row.name, "seed": job.seed, "quick": quick}
        return {**known, "state": state, "row": job.row, "progress": None}

    def call(job: Job) -> dict[str, object]:
        told = _rarely(partial(watch.step, job)) if jobs == 1 else None
        return {"store": store, **key(job), "progress": told}

    outcomes = dict[tuple[tuple[str, str], int], Outcome]()
    pending = deque[Job]()
    resource_tracker.ensure_running()  # it would start with the processes, and unblock Ctrl-C
    with _sigint(signal.SIG_BLOCK):
        if signal.getsignal(signal.SIGINT) != listening:
            raise KeyboardInterrupt  # it came, and was swallowed
        store = joblib.Memory(folder, verbose=0).cache(_measure, ignore=["row", "progress"])
        for job in wanted:
            if job.row.data in unloaded:
                outcomes[job.place, job.seed] = Outcome(missing=unloaded[job.row.data])
            elif store.check_call_in_cache(**key(job)):
                outcomes[job.place, job.seed] = Outcome(record=store(**key(job)))
            else:
                pending.append(job)
        watch.begin(sum(one.record is not None for one in outcomes.values()), len(pending))

        for job, outcome in _run_all(pending, call, jobs):
            outcomes[job.place, job.seed] = outcome
            watch.finished(job, outcome)

    def result(table: Table, row: Row) -> RowResult:
        mine = [job for job in wanted if job.place == (table.key, row.name)]
        known = [outcomes.get((job.place, job.seed), Outcome()) for job in mine]
        errors = [(job, one.error) for job, one in zip(mine, known, strict=True) if one.error]
        return RowResult(
            row=row,
            wanted=row.seeds if row.whole and row.seeds is not None else len(mine),
            records=tuple(one.record for one in known if one.record is not None),
            error=f"seed {errors[0][0].seed}: {errors[0][1]}" if errors else None,
            missing=next((one.missing for one in known if one.missing), None),
        )

    results = tuple(
        TableResult(table=table, rows=tuple(result(table, row) for row in table.rows))
        for table in tables
    )
    return Report(tables=results, missing=absent, seeds=seeds, quick=quick)


def _run_all(
    pending: deque[Job], call: Callable[[Job], dict[str, object]], jobs: int
) -> Iterator[tuple[Job, Outcome]]:
    """Run the jobs and yield them as they end; a row that failed is not begun again."""
    begun, left_out = dict[int, Job](), set[tuple[str, str]]()

    def calls() -> Iterator[object]:
        while pending:
            job = pending.popleft()
            if job.place not in left_out:
                begun[id(job)] = job
                yield joblib.delayed(_attempt)(id(job), **call(job))

    def ended(number: int, outcome: Outcome) -> tuple[Job, Outcome]:
        job = begun.pop(number)
        if outcome.record is None:
            left_out.add(job.place)
        return job, outcome

    while pending:
        parallel = joblib.Parallel(
            n_jobs=jobs, batch_size=1, pre_dispatch="n_jobs", max_nbytes=None,
            return_as="generator_unordered",
        )  # fmt: skip
        try:
            with parallel, warnings.catch_warnings():
                warnings.filterwarnings("ignore", r"\d+ tasks")  # that Ctrl-C has cancelled
                with closing(parallel(calls())) as outcomes:
                    while True:
                        with _sigint(signal.SIG_UNBLOCK):
                            found = next(outcomes, None)
                        if found is None:
                            break
                        yield ended(*found)
        except BrokenProcessPool:  # all that ran in it are lost; the other rows go on
            for number in list(begun):
                yield ended(number, Outcome(error=DIED))


@contextmanager
def _sigint(how: int) -> Iterator[None]:
    """Block Ctrl-C (``SIG_BLOCK``), which joblib might swallow, or let it through."""
    before = signal.pthread_sigmask(how, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _rarely(told: Callable[[str, int, int], None]) -> Callable[[str, int, int], None]:
    """Return a progress callback that passes on at most one call in `POLL` seconds."""
    last = perf_counter()

    def progress(what: str, done: int, of: int) -> None:
        nonlocal last
        if (now := perf_counter()) > last + POLL:
            last = now
            told(what, done, of)

    return progress


def _attempt(number: int, store: Callable[..., Record], **key: object) -> tuple[int, Outcome]:
    """Do a job, and return any error in words."""
    if current_process().name != "MainProcess":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with _sigint(signal.SIG_BLOCK):
            return number, Outcome(record=store(**key))
    except MissingExtra as error:
        return number, Outcome(missing=str(error))
    except Exception as error:  # any row's any error: it is shown, and the others go on
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(place.filename)}, line {place.lineno}"
        words = f"{type(error).__name__}: {' '.join(str(error).split())} ({where})"
        return number, Outcome(error=words)


def _measure(
    table: str,
    name: str,
    seed: int,
    quick: bool,
    state: str,
    row: Row,
    progress: Callable[[str, int, int], None] | None,
) -> Record:
    """Run a row. All arguments but the last two are the key of the store."""
    start, listening = perf_counter(), signal.getsignal(signal.SIGINT)
    told = {} if progress is None else {"progress": progress}
    with threadpool_limits(1), _sigint(signal.SIG_UNBLOCK):
        found = row.run(Run(seed=seed, quick=quick, **told))
    if signal.getsignal(signal.SIGINT) != listening:  # only the first is heard
        raise KeyboardInterrupt  # a training that it ended early is no result
    figures = {name: float(value) for name, value in found.items()}
    strange = [f"{name} = {x}" for name, x in figures.items() if not math.isfinite(x)]
    if strange or not figures:
        raise ArithmeticError(f"no result: {', '.join(strange) or 'it returned nothing'}")
    return Record(
        seed=seed,
        figures=figures,
        seconds=round(perf_counter() - start, 2),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        state=state,
        machine=here(),
    )


def here() -> dict[str, str]:
    """Return the machine, and the versions of all that computes."""
    versions = {"secagg": version("secagg")}
    for name in ("scikit-learn", "scipy", "dp-accounting"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return machine() | versions


def _states(names: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return by data set a digest of sources and data, or the reason why there are no data."""
    states, unloaded = dict[str, str](), dict[str, str]()
    for name in names:
        try:
            ratings = load(name)
        except DataError as error:
            unloaded[name] = _why_absent(name, error)
        else:
            known = ratings.catalogue
            arrays = (ratings.indptr, ratings.items, ratings.values, ratings.times)
            ids = (ratings.user_ids, ratings.item_ids)
            features = (known.genre_names, known.years, known.genres)
            states[name] = joblib.hash((sources(), arrays, ids, features))[:12]
    return states, unloaded


def _why_absent(name: str, error: DataError) -> str:
    """Return the reason; without this machine's folders if the data are not there."""
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


@cache
def sources() -> str:
    """Return a digest of the sources that compute, in Python, Cython and C."""
    seen = hashlib.sha256()
    for root in ROOTS.values():
        for path in sorted(root.rglob("*")):
            place = path.relative_to(root.parent).as_posix()
            if (
                path.suffix in SUFFIXES
                and not place.startswith(APART)
                and (root.name != "benches" or path.parent.name == "papers")
                and not (path.suffix == ".c" and path.with_suffix(".pyx").exists())
            ):
                seen.update(place.encode() + b"\0" + path.read_bytes())
    return seen.hexdigest()
