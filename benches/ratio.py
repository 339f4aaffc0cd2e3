"""Time a candidate against a baseline, turn by turn, so that both see the same machine.

Only ratios within one run mean anything: clocks, caches and neighbours differ between runs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Row", "compare", "table"]


@dataclass(frozen=True)
class Row:
    """One line of the table; times are medians in seconds."""

    name: str
    baseline: str
    seconds: float
    baseline_seconds: float

    @property
    def ratio(self) -> float:
        """How many times faster than the baseline."""
        return self.baseline_seconds / self.seconds


def compare(
    name: str,
    candidate: Callable[[], object],
    baseline: Callable[[], object],
    against: str,
    *,
    repeats: int = 9,
) -> Row:
    """Run both once to warm up, then ``repeats`` times in turn, and keep the medians."""
    candidate()
    baseline()
    times: list[float] = []
    baseline_times: list[float] = []
    for _ in range(repeats):
        baseline_times.append(_seconds(baseline))
        times.append(_seconds(candidate))
    return Row(name, against, statistics.median(times), statistics.median(baseline_times))


def table(rows: list[Row]) -> str:
    """Lay the rows out in columns."""
    width = max(len(row.name) for row in rows)
    lines = [f"{'':{width}}  {'secagg':>10}  {'baseline':>10}  {'ratio':>7}"]
    lines += [
        f"{row.name:{width}}  {_milliseconds(row.seconds)}  "
        f"{_milliseconds(row.baseline_seconds)}  {row.ratio:6.1f}×  {row.baseline}"
        for row in rows
    ]
    return "\n".join(lines)


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:7.3f} ms"
