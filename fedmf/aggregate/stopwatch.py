"""The time that one role takes, out of a computation in which all take turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

__all__ = ["Stopwatch"]


class Stopwatch:
    """Adds up the seconds of what is done while it runs.

    Attributes
    ----------
    seconds : float
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self, *, for_each_of: int = 1) -> Iterator[None]:
        """Time what is done once and stands for what so many do."""
        start = perf_counter()
        yield
        self.seconds += (perf_counter() - start) * for_each_of
