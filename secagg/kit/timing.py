"""Timers, peak memory, a description of the machine, and the handling of Ctrl-C.

With `interruptible` and `undisturbed`, Ctrl-C ends a measurement but not the saving of results.
"""

from __future__ import annotations

import math
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from statistics import median
from types import FrameType
from typing import NamedTuple

from secagg import _fast

INTERRUPTED = 130  # exit code that shells report for a command that Ctrl-C ended
_LONG_ENOUGH = 0.04  # seconds
_PATIENCE = 1.0  # seconds after a Ctrl-C before another Ctrl-C is heard
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Taken(NamedTuple):
    """Seconds of a call: processor time of all threads of this process, and wall-clock time."""

    processor: float
    elapsed: float


def in_turn(calls: Sequence[Callable[[], object]], repeats: int) -> list[Taken]:
    """Time calls in alternation, under the same conditions, and return each call's medians.

    Each call runs once to warm up and then `repeats` times, ≥ 1.
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in calls]
    for _ in range(1 + repeats):
        for call, times in zip(calls, taken, strict=True):
            processor, elapsed = time.process_time(), time.perf_counter()
            call()
            times.append((time.process_time() - processor, time.perf_counter() - elapsed))
    return [Taken(*map(median, zip(*times[1:], strict=True))) for times in taken]


def mean_seconds(call: Callable[[], object]) -> float:
    """Return the mean wall-clock seconds of a short call, after one call to warm up."""
    call()
    count, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < _LONG_ENOUGH or count == 0:
        call()
        count += 1
    return passed / count


def machine() -> dict[str, str]:
    """Return processor, cores, tier of kernels, and the versions of secagg and of libraries.

    Without gmpy2, the versions of gmpy2 and GMP are "none".
    """
    integers = {"gmpy2": "none", "gmp": "none"}
    with suppress(ModuleNotFoundError):
        import gmpy2  # imported here: only homomorphic encryption needs it

        integers = {"gmpy2": gmpy2.version(), "gmp": gmpy2.mp_version()}
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return {
        "secagg": version("secagg"),
        "cpu": next(names, platform.processor() or platform.machine()),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "cryptography": version("cryptography"),
        **integers,
        "tier": _fast.TIER,
    }


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt at Ctrl-C in the block, at most once in `_PATIENCE` seconds.

    So repeated Ctrl-C does not disturb the clean-up, but helps if a library swallowed the first
    Ctrl-C. In threads other than the main thread, or with a handler that is not Python's own,
    Ctrl-C is handled as before.
    """
    last = -math.inf

    def heard(number: int, frame: FrameType | None) -> None:
        nonlocal last
        if (now := time.monotonic()) > last + _PATIENCE:
            last = now
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    # Python sets handlers in the main thread only
    in_main = threading.current_thread() is threading.main_thread()
    ours = in_main and before is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


@contextmanager
def undisturbed(*others: signal.Signals) -> Iterator[None]:
    """Ignore Ctrl-C, and `others`, in the block, so that files are written whole."""
    signals = (signal.SIGINT, *others)
    before = [signal.signal(one, signal.SIG_IGN) for one in signals]
    try:
        yield
    finally:
        for one, handler in zip(signals, before, strict=True):
            signal.signal(one, handler)


def peak_memory() -> int:
    """Return the peak memory of this process so far, in bytes."""
    import resource  # Windows has none; the other commands work there

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # in bytes on macOS, in kilobytes elsewhere
    return peak if sys.platform == "darwin" else 1024 * peak


class Peak:
    """Peak memory of this process in watched blocks, beyond the memory at the beginning.

    On Linux the kernel's peak is reset before each block, and pages of program files are left
    out. On other systems only memory above the highest peak so far is counted.
    """

    def __init__(self) -> None:
        _reset_peak()
        self._before = self._most = _own_peak()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Measure the peak memory of the block."""
        _reset_peak()
        try:
            yield
        finally:
            self._most = max(self._most, _own_peak())

    def grown(self) -> int:
        """Return the highest peak of all blocks in bytes, minus the memory at the start."""
        return self._most - self._before


def _reset_peak() -> None:
    with suppress(OSError):
        _CLEAR.write_text("5")  # proc(5): sets the peak resident set size to the present one


def _own_peak() -> int:
    """Return the peak in bytes; on Linux without the pages of files, which can only grow."""
    if not _STATUS.exists():
        return peak_memory()
    lines = (line.partition(":") for line in _STATUS.read_text().splitlines())
    kilobytes = {name: value.split()[0] for name, _, value in lines if value.endswith("kB")}
    return 1024 * (int(kilobytes["VmHWM"]) - int(kilobytes["RssFile"]))
