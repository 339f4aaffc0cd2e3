"""Threads for long batches: the batch is split, and the compiled kernels release the GIL.

The caller's thread takes part. The others wait for the next call, as starting a thread takes
longer than waking one. They end when the process forks.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from secagg._check import check_integer

LANES = 8  # numbers that the widest kernel computes side by side

SLICES = 4  # for each thread

_chosen: int | None = None
_pool: ThreadPoolExecutor | None = None
_within = threading.local()


def set_threads(count: int | None) -> None:
    """Set the number of threads for long vectors in this process.

    It holds for masks, encoding, unmasking, the helpers of one-shot sums and homomorphic
    encryption. Results do not depend on it. Work of less than about a millisecond stays in its
    thread.

    Parameters
    ----------
    count : int or None
        Number of threads, 1 ≤ count ≤ 1024. None restores the default, one thread for each core
        that the process may run on.

    Raises
    ------
    ParameterError
        `count` is not an int in this range.
    """
    global _chosen  # noqa: PLW0603 - one setting per process, as in every numeric library
    if count is not None:
        check_integer("count", count, 1, 1024)
    _chosen = count
    _end_pool(wait=False)


def threads() -> int:
    """Return the number of threads that a long batch may use."""
    if _chosen is not None:
        return _chosen
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_slices(
    work: Callable[[slice], None], count: int, least: int = LANES, alone: int = 0
) -> None:
    """Call `work` for slices that cover range(count), on several threads.

    Each thread gets a few slices, so that a thread can compute while another has the GIL.
    Slices begin at multiples of eight and are not shorter than `least`. If `count` is below
    `alone`, there is one slice. Calls within `work` stay in their thread. If `work` raises, no
    further slice begins and the error is raised, without frames of other modules than its own.
    After an interruption, too, no thread works on when this function ends.
    """
    most = max(1, count // max(1, least))
    available = threads()
    workers = min(available, most)
    if workers == 1 or count < alone or getattr(_within, "slices", False):
        work(slice(0, count))
        return
    groups = -(-count // LANES)
    parts = min(SLICES * workers, most, groups)
    ends = [min(count, groups * (part + 1) // parts * LANES) for part in range(parts)]
    slices = deque(slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True))
    errors: list[BaseException] = []
    helping, changed = 0, threading.Condition()

    def take() -> slice | None:
        try:
            return slices.popleft()
        except IndexError:
            return None

    def take_part() -> None:
        _within.slices = True
        try:
            for rows in iter(take, None):
                work(rows)
        finally:
            _within.slices = False
            slices.clear()  # after an error no thread begins another

    def help_out() -> None:
        nonlocal helping
        with changed:
            helping += 1
        try:
            take_part()
        except BaseException as error:  # a future would raise it from frames with its secrets
            errors.append(error)
        with changed:
            helping -= 1
            changed.notify()

    def finish() -> None:
        slices.clear()  # a thread that wakes up later finds no slice
        try:
            with changed:
                changed.wait_for(lambda: helping == 0)
        except BaseException:  # a thread would go on writing into the caller's arrays
            finish()
            raise

    try:
        with suppress(RuntimeError):  # where no more threads can begin, fewer do the work
            pool = _shared_pool(available - 1)
            for _ in range(workers - 1):
                pool.submit(help_out)
        take_part()
    finally:
        finish()
    if errors:
        raise errors[0]


def _shared_pool(count: int) -> ThreadPoolExecutor:
    """Return the pool, a new one with `count` threads if there is none."""
    global _pool  # noqa: PLW0603 - threads that race make two, and the one without users ends
    pool = _pool
    if pool is None:
        pool = _pool = ThreadPoolExecutor(count, thread_name_prefix="secagg")
    return pool


def _end_pool(*, wait: bool) -> None:
    """End the threads of the pool after what they do now; the next long batch begins others."""
    global _pool
    pool, _pool = _pool, None
    if pool is not None:
        pool.shutdown(wait=wait)


def _forget_pool() -> None:
    """Forget a pool that another thread began during the fork; a child has no other threads."""
    global _pool  # noqa: PLW0603
    _pool = None
    _within.slices = False


def _before_fork() -> None:
    _end_pool(wait=not getattr(_within, "slices", False))  # a thread cannot wait for itself


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_forget_pool)
