"""The most memory that this process has held, while it was doing something of interest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from secagg.bench.trial import peak_memory

__all__ = ["Peak"]

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc(5): sets the peak resident set size to what it is now


class Peak:
    """How far this process's memory has grown, while it was watched, since this was made.

    On Linux the kernel's mark is set back before each watch, so that nothing that went before
    hides what follows, and the pages of program files, which processes share, are left out, to
    within the few that are first read in that watch. Elsewhere only what exceeds the peak so
    far is seen.
    """

    def __init__(self) -> None:
        _set_back()
        self._before = self._most = _own_peak()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch until the end of the block."""
        _set_back()
        try:
            yield
        finally:
            self._most = max(self._most, _own_peak())

    def grown(self) -> int:
        """Return the bytes by which the highest peak of all watches exceeds the beginning."""
        return self._most - self._before


def _set_back() -> None:
    with suppress(OSError):
        _CLEAR.write_text(_RESET_PEAK)


def _own_peak() -> int:
    """Return the peak without the pages of files; as these only grow, it is not too high."""
    if not _STATUS.exists():
        return peak_memory()
    lines = (line.partition(":") for line in _STATUS.read_text().splitlines())
    kilobytes = {name: value.split()[0] for name, _, value in lines if value.endswith("kB")}
    return 1024 * (int(kilobytes["VmHWM"]) - int(kilobytes["RssFile"]))
