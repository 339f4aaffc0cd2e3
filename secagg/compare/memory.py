"""The most memory that this process has held since a moment of one's choice."""

from __future__ import annotations

from pathlib import Path

from secagg.trial import peak_memory

__all__ = ["Peak"]

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc(5): sets the peak resident set size to what it is now


class Peak:
    """Watches from its creation on.

    On Linux the kernel's mark is reset, so that nothing that went before can hide what
    follows, and the pages of program files, which processes share, are left out. Elsewhere
    only what exceeds the peak so far is seen.
    """

    def __init__(self) -> None:
        try:
            _CLEAR.write_text(_RESET_PEAK)
        except OSError:
            self._read = peak_memory
        else:
            self._read = _own_peak
        self._before = self._read()

    def grown(self) -> int:
        """Return the bytes by which the peak since then exceeds what was held then."""
        return max(0, self._read() - self._before)


def _own_peak() -> int:
    """Return the peak without pages of files; as these only grow, it is not too high."""
    lines = (line.partition(":") for line in _STATUS.read_text().splitlines())
    kilobytes = {name: value.split()[0] for name, _, value in lines if value.endswith("kB")}
    return 1024 * (int(kilobytes["VmHWM"]) - int(kilobytes["RssFile"]))
