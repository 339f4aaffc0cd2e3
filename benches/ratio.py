"""A candidate against a baseline, timed turn by turn, so that both see the same machine.

Only ratios within one run mean anything: clocks, caches and neighbours differ between runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from secagg.bench.timing import in_turn


@dataclass(frozen=True)
class Row:
    """A line of the table; times are medians in seconds."""

    name: str
    baseline: str
    seconds: float
    baseline_seconds: float

    @property
    def ratio(self) -> float:
        """Speed relative to the baseline."""
        return self.baseline_seconds / self.seconds

    def document(self) -> dict[str, object]:
        """Return the fields and the ratio."""
        return {**vars(self), "ratio": self.ratio}


def compare(
    name: str,
    candidate: Callable[[], object],
    baseline: Callable[[], object],
    against: str,
    *,
    repeats: int = 9,
) -> Row:
    """Time both in turn, after a run to warm up, and keep the medians."""
    theirs, ours = in_turn((baseline, candidate), repeats)
    return Row(name, against, ours.elapsed, theirs.elapsed)
