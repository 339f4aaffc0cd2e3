"""Seconds and bytes for people: three digits and a unit, and ~ before what was scaled."""

from __future__ import annotations

from secagg.compare.rows import Figure

__all__ = ["NONE", "duration", "memory", "seconds", "size", "volume"]

_SECONDS = ((1e-3, "µs", 1e6), (1, "ms", 1e3), (120, "s", 1), (7200, "min", 1 / 60))
_BYTES = ((1e3, "B", 1), (1e6, "kB", 1e-3), (1e9, "MB", 1e-6))
NONE = "–"
"""Stands for what there is not, or is not known."""


def duration(value: float) -> str:
    """Return seconds as text."""
    for limit, unit, scale in _SECONDS:
        if value < limit:
            return f"{_digits(value * scale)} {unit}"
    return f"{_digits(value / 3600)} h"


def volume(value: float) -> str:
    """Return bytes as text."""
    for limit, unit, scale in _BYTES:
        if value < limit:
            return f"{_digits(value * scale)} {unit}"
    return f"{_digits(value * 1e-9)} GB"


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


def _digits(value: float) -> str:
    """Return at most three digits that matter, and all those before the point."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"
