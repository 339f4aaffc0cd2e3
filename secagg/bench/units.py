"""Seconds and bytes for people: a few digits, a unit, and ~ before what was scaled."""

from __future__ import annotations

from secagg.bench.rows import Figure

__all__ = ["NONE", "duration", "memory", "micro", "seconds", "size", "volume"]

_SECONDS = ((1e-3, "µs", 1e6), (1, "ms", 1e3), (60, "s", 1), (3600, "min", 1 / 60))
_BYTES = ((1e3, "B", 1), (1e6, "kB", 1e-3), (1e9, "MB", 1e-6))
NONE = "–"
"""Stands for what there is not, or is not known."""


def duration(value: float) -> str:
    """Return seconds as text."""
    for limit, unit, scale in _SECONDS:
        if value < limit:
            return f"{_digits(value * scale, 2)} {unit}"
    return f"{_digits(value / 3600, 2)} h"


def volume(value: float) -> str:
    """Return bytes as text."""
    for limit, unit, scale in _BYTES:
        if value < limit:
            return f"{_digits(value * scale, 3)} {unit}"
    return f"{_digits(value * 1e-9, 3)} GB"


def micro(value: float) -> str:
    """Return seconds as text, in microseconds whatever they are."""
    return f"{_digits(1e6 * value, 2)} µs"


def seconds(figure: Figure) -> str:
    """Return a figure in seconds as text."""
    return _mark(figure) + duration(figure.value)


def size(figure: Figure) -> str:
    """Return a figure in bytes as text."""
    return _mark(figure) + volume(figure.value)


def memory(value: int | None) -> str:
    """Return bytes in whole megabytes, without the unit."""
    return NONE if value is None else f"{value / 1e6:.0f}"


def _mark(figure: Figure) -> str:
    return "" if figure.measured else "~"


def _digits(value: float, digits: int) -> str:
    """Return so many digits, and all those before the point."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.{digits}g}"
