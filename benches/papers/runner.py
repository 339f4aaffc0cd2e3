"""Runner of tables: it takes finished runs from the store, and makes and stores all others.

`joblib.Memory` stores a run under its table, row and seed, and under a digest of the sources
and the data. Runs are made in processes with one thread of linear algebra each. These processes
ignore Ctrl-C, so that no training that ended early is taken for a result; the runner kills them
when it ends.
"""

from __future__ import annotations

import hashlib
import math
import os
import signal
import traceback
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import active_children, get_context
from pathlib import Path
from time import perf_counter

import joblib
from threadpoolctl import threadpool_limits

import benches
import fedmf
import secagg
from benches.papers import table as listed
from benches.papers.results import Outcome, Record, Report, RowResult, TableResult
from benches.papers.show import LiveRuns
from benches.papers.table import Row, Run, Table, find_table, resolve
from fedmf.data import load, source_of
from fedmf.data.sets.folders import found_folder
from fedmf.errors import DataError, MissingExtra, SettingError
from secagg.kit.timing import interruptible, machine, undisturbed

QUICK_SEEDS = 2
DIED = "a process died, perhaps for lack of memory: lower --jobs"

ROOTS = {one.__name__: Path(one.__path__[0]) for one in (benches, fedmf, secagg)}
SUFFIXES = (".py", ".pyx", ".pxd", ".pxi", ".c", ".h")
APART = (  # sources without influence on the figures
    *(
        "fedmf/cli/",
        "fedmf/data/fetch/",
        "secagg/cli/",
        "secagg/bench/",
        "secagg/kit/",
        "secagg/testing/",
    ),
    *("fedmf/flower/", "fedmf/search/", "secagg/flower/", "secagg/flare/", "secagg/http/"),
    *(f"benches/papers/{name}.py" for name in ("__main__", "picture", "runner", "show")),
)


@dataclass(frozen=True)
class Job:
    """One run of one row of a table, which is also the key of the run in the store."""

    module: str
    table: str
    row: str
    seed: int
    quick: bool
    state: str  # a digest of sources and data

    def __str__(self) -> str:
        return f"{self.table}: {self.row}, seed {self.seed}"


@contextmanager
def interrupted_once() -> Iterator[None]:
    """Raise KeyboardInterrupt at Ctrl-C, and ignore Ctrl-C from there to the exit."""
    try:
        with interruptible():
            yield
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to end
        raise


def reproduce(
    keys: Iterable[str],
    folder: Path,  # the store of the finished runs
    watch: LiveRuns,
    *,
    seeds: int = 10,  # 0, 1, … of each row
    jobs: int = 1,  # processes
    quick: bool = False,  # a tenth of the rounds, `QUICK_SEEDS` seeds, and no result
) -> Report:
    """Measure the tables with these keys. After Ctrl-C, the next call continues."""
    for name, value in (("seeds", seeds), ("jobs", jobs)):
        if value < 1:
            raise SettingError(f"--{name} {value} must be at least 1")
    seeds = min(seeds, QUICK_SEEDS) if quick else seeds
    tables, absent = dict[str, Table](), dict[str, str]()
    modules = resolve([*keys], listed.MODULES)
    for key, module in modules.items():
        try:
            tables[key] = find_table(module, key)
        except MissingExtra as error:
            absent[key] = str(error)
    states, unloaded = _states({row.data for one in tables.values() for row in one.rows})

    outcomes = dict[Job, Outcome]()
    for key, table in tables.items():
        for row in table.rows:
            missing = unloaded.get(row.data)
            for seed in range(min(seeds, row.seeds or seeds)):
                job = Job(modules[key], key, row.name, seed, quick, states.get(row.data, ""))
                outcomes[job] = Outcome(missing=missing) if missing else _kept(folder, job)
    pending = deque(job for job, outcome in outcomes.items() if outcome == Outcome())
    watch.begin(sum(one.record is not None for one in outcomes.values()), len(pending))
    with closing(_run_all(pending, folder, jobs)) as ended:
        for job, outcome in ended:
            outcomes[job] = outcome
            watch.finished(job, outcome)

    def result(key: str, row: Row) -> RowResult:
        place = key, row.name
        mine = {job: one for job, one in outcomes.items() if (job.table, job.row) == place}
        errors = (f"seed {job.seed}: {one.error}" for job, one in mine.items() if one.error)
        return RowResult(
            row=row,
            wanted=row.seeds if row.whole and row.seeds else len(mine),
            records=tuple(one.record for one in mine.values() if one.record is not None),
            error=next(errors, None),
            missing=next((one.missing for one in mine.values() if one.missing), None),
        )

    results = []
    for key, table in tables.items():
        rows = tuple(result(key, row) for row in table.rows)
        results.append(TableResult(table=table, rows=rows, quick=quick))
    return Report(tables=tuple(results), missing=absent, seeds=seeds, quick=quick)


def _run_all(
    pending: deque[Job], folder: Path, jobs: int
) -> Generator[tuple[Job, Outcome], None, None]:
    """Run the jobs and yield each when it ends; skip further jobs of a row that failed."""
    context, others = get_context("spawn"), {*active_children()}
    # a process that dies breaks its whole pool, so each process has a pool of its own
    pools = [ProcessPoolExecutor(1, context) for _ in range(jobs)]
    idle, running = list(range(jobs)), dict[Future[Outcome], tuple[Job, int]]()
    failed = set[tuple[str, str]]()
    try:
        while pending or running:
            while pending and idle:
                job, place = pending.popleft(), idle[-1]
                if (job.table, job.row) in failed:
                    continue
                try:
                    with undisturbed():  # a new process inherits the ignored signal
                        future = pools[place].submit(_attempt, folder, job)
                except BrokenProcessPool:  # the last job killed it, or it died idle
                    pools[place].shutdown()
                    pools[place] = ProcessPoolExecutor(1, context)
                    pending.appendleft(job)
                else:
                    running[future] = job, idle.pop()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job, place = running.pop(future)
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    outcome = Outcome(error=DIED)
                if outcome.record is None:
                    failed.add((job.table, job.row))
                idle.append(place)
                yield job, outcome
    finally:
        with undisturbed():
            for process in {*active_children()} - others:
                process.kill()  # unfinished runs are not waited for
            for pool in pools:
                pool.shutdown()  # now, as Python's exit calls a pool without the pool's lock


def _attempt(folder: Path, job: Job) -> Outcome:
    """Run and store a job; return its record, or the error as a text."""
    try:
        return Outcome(record=joblib.Memory(folder, verbose=0).cache(_measure)(job))
    except MissingExtra as error:
        return Outcome(missing=str(error))
    except Exception as error:  # every error of a row is shown; the others continue
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(place.filename)}, line {place.lineno}"
        words = f"{type(error).__name__}: {' '.join(str(error).split())} ({where})"
        return Outcome(error=words)


def _kept(folder: Path, job: Job) -> Outcome:
    """Return the stored run, or an empty outcome if it is not stored or damaged."""
    store = joblib.Memory(folder, verbose=0).cache(_measure)
    with suppress(Exception):
        if store.check_call_in_cache(job):
            return Outcome(record=store.call_and_shelve(job).get())
    return Outcome()


def _measure(job: Job) -> Record:
    """Run a row with one seed and return the record; ArithmeticError for NaN or no figures."""
    start = perf_counter()
    rows = {row.name: row for row in find_table(job.module, job.table).rows}
    with threadpool_limits(1):
        found = rows[job.row].run(Run(seed=job.seed, quick=job.quick))
    figures = {name: float(value) for name, value in found.items()}
    strange = [f"{name} = {x}" for name, x in figures.items() if not math.isfinite(x)]
    if strange or not figures:
        raise ArithmeticError(
            f"no result: {', '.join(strange) or 'the row returned no metric'}"
        )
    versions = machine()
    for name in ("scikit-learn", "scipy", "dp-accounting"):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return Record(
        seed=job.seed,
        figures=figures,
        seconds=round(perf_counter() - start, 2),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        state=job.state,
        machine=versions,
    )


def _states(names: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return two mappings by data set: digests of sources and data, and reasons for no data."""
    states, unloaded = dict[str, str](), dict[str, str]()
    for name in names:
        try:
            ratings = load(name)
        except DataError as error:
            unloaded[name] = str(error)
            with suppress(DataError):
                source = source_of(name)
                if found_folder(source) is None:  # the document must not name local folders
                    unloaded[name] = (
                        f"the data set {name} is missing; run 'fedmf data fetch {source.name}' "
                        f"or set FEDMF_DATA to the folder that contains {source.folder!r}"
                    )
        else:
            known = ratings.catalogue
            arrays = (ratings.indptr, ratings.items, ratings.values, ratings.times)
            ids = (ratings.user_ids, ratings.item_ids)
            features = (known.genre_names, known.years, known.genres)
            states[name] = joblib.hash((sources(), arrays, ids, features))[:12]
    return states, unloaded


@cache
def sources() -> str:
    """Return a digest of the sources that influence the figures, in Python, Cython and C."""
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
