"""Threads for long batches: the batch is split, and the compiled kernels release the GIL.

The caller's thread takes part. The other threads wait for the next call, as starting a thread
takes longer than waking a thread. The threads end when the process forks. Signal handlers may
call this module and fork.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from secagg._check import check_integer
from secagg._pool import Call, end_threads, submit

LANES = 8  # numbers that the widest kernel computes side by side

SLICES = 4  # for each thread

_chosen: int | None = None
_within = threading.local()


def set_threads(count: int | None) -> None:
    """Set the number of threads for long vectors in this process.

    The number holds for masks, encoding, unmasking, one-shot sums' helpers and homomorphic
    encryption. Results do not depend on the number. Work of less than about a millisecond
    stays in the calling thread.

    Parameters
    ----------
    count : int or None
        Number of threads, 1 ≤ count ≤ 1024. None restores the default, a thread for each core
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
    end_threads(wait=False)


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
    `alone`, there is a single slice. Calls within `work` stay in their thread. If `work`
    raises, no further slice begins. The error is raised, without frames of other modules than
    the module of `work`. After an interruption, too, no thread works on when this function
    ends.
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
    calls: list[Call] = []

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
        try:
            take_part()
        except BaseException as error:  # raised below, without frames that have secrets
            errors.append(error)

    def finish() -> None:
        slices.clear()  # a thread that wakes up later finds no slice
        try:
            for call in calls:
                call.end()
        except BaseException:  # a thread would go on writing into the caller's arrays
            finish()
            raise

    try:
        with suppress(RuntimeError):  # where no more threads can begin, fewer do the work
            for _ in range(workers - 1):
                calls.append(Call(help_out))
                submit(calls[-1], available - 1)
        take_part()
    finally:
        finish()
    if errors:
        raise errors[0]


def _after_fork() -> None:
    _within.slices = False  # a thread of the pool that forks is the only thread of the child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
