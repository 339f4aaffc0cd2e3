"""Long batches over several threads: the compiled kernels let go of the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from secagg.arguments import check_integer

__all__ = ["in_slices", "set_threads", "threads"]

LANES = 8  # the widest kernel works on so many numbers side by side

_chosen: int | None = None


def set_threads(count: int | None) -> None:
    """Say how many threads homomorphic encryption may use, in this process and from now on.

    Parameters
    ----------
    count : int or None
        1 ≤ count ≤ 1024; None, as at the start, for all cores that the process may run on.

    Raises
    ------
    ParameterError
        Out of range.
    """
    global _chosen  # noqa: PLW0603 - one setting of the process, as of every numeric library
    if count is not None:
        check_integer("count", count, 1, 1024)
    _chosen = count


def threads() -> int:
    """Return how many threads a long batch is spread over."""
    if _chosen is not None:
        return _chosen
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_slices(work: Callable[[slice], None], count: int) -> None:
    """Call `work` for slices that cover range(count), one slice a thread.

    Slices begin at multiples of eight, and no thread is started for fewer elements. The
    first exception that `work` raises is raised here, after all slices have ended.
    """
    groups = -(-count // LANES)
    parts = max(1, min(threads(), groups))
    ends = [min(count, groups * (part + 1) // parts * LANES) for part in range(parts)]
    slices = [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    if parts == 1:
        work(slices[0])
        return
    with ThreadPoolExecutor(parts - 1) as pool:
        rest = [pool.submit(work, part) for part in slices[1:]]
        work(slices[0])  # the caller takes its part
        for future in rest:
            future.result()
