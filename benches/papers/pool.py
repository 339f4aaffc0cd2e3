"""Runs in processes of their own, each with one thread of linear algebra.

A row's function cannot be sent to another process, so a job names module, table and row, and
the process looks it up. The processes do not hear Ctrl-C: `Trainer.fit` would end its training
early and return, and the half-trained model would pass for a result. They are ended from here,
and here it is only noted and then looked at where nothing is half done: struck while a process
starts, the pool would wait for ever for one that it never knew of.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.queues import SimpleQueue
from time import perf_counter
from typing import TypeAlias

from benches.papers.table import Run
from benches.papers.tables import find_row
from fedmf.errors import MissingExtra

__all__ = ["Job", "Outcome", "Progress", "run_jobs"]

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
DIED = "a process died, perhaps for want of memory: take fewer --jobs"
POLL = 0.1  # seconds between two looks at how far the processes are


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run of one row, named such that another process finds it."""

    module: str
    table: str
    row: str
    seed: int
    quick: bool


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a job ended: with `figures`, with an `error`, or with the extra that is `missing`."""

    figures: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    error: str | None = None
    missing: str | None = None


Progress: TypeAlias = Callable[[Job, str, int, int], None]
_Steps: TypeAlias = "SimpleQueue[tuple[Job, str, int, int]]"


def run_jobs(
    jobs: Sequence[Job],
    *,
    processes: int,
    finished: Callable[[Job, Outcome], None],
    progress: Progress,
) -> None:
    """Run all jobs, and call `finished` with each as it ends.

    Of a row that failed, the runs that have not begun are left out. An exception raised here
    ends the processes where they are, and so does Ctrl-C, which is raised once they are ended.

    Parameters
    ----------
    processes
        How many jobs run at the same time, at least 1.
    progress
        Called now and then with a job under way, what it does, and how many steps of how many
        are over.
    """
    context = multiprocessing.get_context("spawn")
    steps: _Steps = context.SimpleQueue()
    others = set(multiprocessing.active_children())
    failed: set[tuple[str, str]] = set()
    left, running = deque(jobs), dict[Future[Outcome], Job]()

    def start() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(steps,))

    with _one_thread_each(), _ctrl_c_noted() as noted:
        pool = start()
        try:
            while (left or running) and not noted.is_set():
                while left and len(running) < processes:
                    job = left.popleft()
                    if (job.table, job.row) not in failed:
                        with _ctrl_c_blocked():  # submitting starts the processes
                            running[pool.submit(_run, job)] = job
                ready, _ = wait(running, timeout=POLL, return_when=FIRST_COMPLETED)
                while not steps.empty():
                    progress(*steps.get())
                for future in [one for one in running if one in ready]:  # in the jobs' order
                    job = running.pop(future)
                    outcome = _outcome(future)
                    if outcome.error or outcome.missing:
                        failed.add((job.table, job.row))
                    finished(job, outcome)
                if any(isinstance(one.exception(), BrokenProcessPool) for one in ready):
                    pool = start()  # the rows that did not run in it go on
        finally:
            if left or running:
                for child in set(multiprocessing.active_children()) - others:
                    child.kill()
            pool.shutdown(cancel_futures=True)


def _outcome(future: Future[Outcome]) -> Outcome:
    if isinstance(future.exception(), BrokenProcessPool):
        return Outcome(error=DIED)
    return future.result()


@contextmanager
def _ctrl_c_noted() -> Iterator[threading.Event]:
    """Set the event at Ctrl-C, however often it comes, and let it strike at the end."""
    noted = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield noted  # it is ignored, or cannot strike here
        return
    signal.signal(signal.SIGINT, lambda number, frame: noted.set())
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
        if noted.is_set():
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """Let processes that start here be deaf to it from the first, before `_begin` runs."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that start here compute with one thread; libraries read this on import."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_steps: _Steps | None = None  # of a process of the pool: where its progress goes


def _begin(steps: _Steps) -> None:
    """Prepare a process."""
    global _steps  # noqa: PLW0603  # what a pool's initializer is for
    _steps = steps
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(job: Job) -> Outcome:
    """Do a job, in a process of the pool; whatever goes wrong is returned in words."""
    told = start = perf_counter()

    def progress(what: str, done: int, of: int) -> None:
        nonlocal told
        if _steps is not None and (now := perf_counter()) > told + POLL:
            told = now
            _steps.put((job, what, done, of))

    try:
        row = find_row(job.module, job.table, job.row)
        found = row.run(Run(seed=job.seed, quick=job.quick, progress=progress))
        figures = {name: float(value) for name, value in found.items()}
        strange = [f"{name} = {x}" for name, x in figures.items() if not math.isfinite(x)]
        if strange or not figures:
            return Outcome(error=f"no result: {', '.join(strange) or 'it returned nothing'}")
    except MissingExtra as error:
        return Outcome(missing=str(error))
    except Exception as error:  # any row's any error: it is told, and the others go on
        return Outcome(error=_told(error))
    return Outcome(figures=figures, seconds=perf_counter() - start)


def _told(error: Exception) -> str:
    """Return the error in a line, with the place it comes from."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}, line {place.lineno}"
    return f"{type(error).__name__}: {' '.join(str(error).split())} ({where})"
