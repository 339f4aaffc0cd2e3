"""Threads for long batches: the batch is split, and the compiled kernels release the GIL."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from secagg._check import check_integer

LANES = 8  # numbers that the widest kernel computes side by side

SLICES = 4  # for each thread

_chosen: int | None = None
_within = threading.local()


def set_threads(count: int | None) -> None:
    """Set the number of threads for homomorphic encryption in this process.

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


def threads() -> int:
    """Return the number of threads that a long batch may use."""
    if _chosen is not None:
        return _chosen
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_slices(work: Callable[[slice], None], count: int, least: int = LANES) -> None:
    """Call `work` for slices that cover range(count), on several threads.

    Each thread gets a few slices, so that a thread can compute while another has the GIL.
    Slices begin at multiples of eight and are not shorter than `least`. Calls within `work`
    stay in their thread. If `work` raises, no further slice begins and the error is raised.
    """
    most = max(1, count // least)
    workers = 1 if getattr(_within, "slices", False) else min(threads(), most)
    if workers == 1:
        work(slice(0, count))
        return
    groups = -(-count // LANES)
    parts = min(SLICES * workers, most, groups)
    ends = [min(count, groups * (part + 1) // parts * LANES) for part in range(parts)]
    slices = iter([slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)])

    def take_part() -> None:
        try:
            _within.slices = True
            for rows in slices:
                work(rows)
        finally:
            _within.slices = False
            for _ in slices:  # after an error no thread begins another
                pass

    with ThreadPoolExecutor(workers - 1) as pool:
        others = [pool.submit(take_part) for _ in range(workers - 1)]
        take_part()  # the caller's thread works too
        for other in others:
            other.result()
