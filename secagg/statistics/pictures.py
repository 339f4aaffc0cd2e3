"""Pictures of a result: bars of counts, curves of survival, and coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from secagg.errors import ParameterError
from secagg.kit import picture as kit
from secagg.statistics.result import Result
from secagg.statistics.statistic import Row, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = (kit.BLUE, kit.VERMILION, kit.GREEN, kit.PURPLE, kit.ORANGE)
_DASHES = ("-", "--", ":", "-.")


def draw(result: Result, name: str) -> bytes:
    """Return a picture of a table as SVG.

    Parameters
    ----------
    result : Result
    name : str
        Name of a table of counts, a histogram, a survival curve or a regression.

    Raises
    ------
    ParameterError
        There is no such table, or the table has no picture.
    MissingExtra
        matplotlib is not installed.
    """
    table = result[name]
    kind = next((column for column in _KINDS if column in table.header), None)
    if kind is None or "mean" in table.header:
        raise ParameterError(f"{name!r} has no picture; take counts, a curve or coefficients")
    rows = 0 if kind == "survival" else len(table.rows)
    with kit.style():
        canvas = kit.blank(max(240, 60 + 14 * rows), f"{result.plan.name}: {name}")
        axes = canvas.subplots()
        axes.set_title(name)
        _KINDS[kind](axes, table)
        if kind != "survival":
            axes.invert_yaxis()
        kit.plain(axes, "both" if kind == "survival" else "x")
        return kit.svg(canvas)


def _named(row: Row, count: int) -> str:
    return ", ".join(str(value) for value in row[:count])


def _numbers(table: Table, column: str) -> Sequence[float | None]:
    at = table.header.index(column)
    return [value if isinstance(value := row[at], int | float) else None for row in table.rows]


def _bars(axes: Axes, table: Table) -> None:
    """Draw a bar for each cell; a hidden cell has a mark in place of the bar."""
    at = table.header.index("records")
    places, labels = range(len(table.rows)), [_named(row, at) for row in table.rows]
    counts = _numbers(table, "records")
    axes.barh(places, [count or 0 for count in counts], color=kit.BLUE)
    axes.set_yticks(places, labels)
    for place, count in enumerate(counts):
        if count is None:
            axes.annotate("hidden", (0, place), va="center", color=kit.DIM, size=8)
    axes.set_xlabel("records")


def _coefficients(axes: Axes, table: Table) -> None:
    """Draw each coefficient with the interval of 95 %, without the intercept."""
    labels = [str(row[0]) for row in table.rows[1:]]
    middle = [b or 0.0 for b in _numbers(table, "coefficient")[1:]]
    width = [1.96 * (se or 0.0) for se in _numbers(table, "se")[1:]]
    axes.errorbar(middle, labels, xerr=width, fmt="o", color=kit.BLUE)
    axes.axvline(0, color=kit.LINE, lw=0.8)
    axes.set_xlabel("coefficient, with interval of 95 %")


def _curves(axes: Axes, table: Table) -> None:
    """Draw a step curve for each group."""
    at = table.header.index("time")
    for i, (group, rows) in enumerate(groupby(table.rows, lambda row: _named(row, at))):
        points = [(0.0, 1.0), *((row[at], row[at + 1]) for row in rows)]
        times, survival = zip(*points, strict=True)
        style, colour = _DASHES[i % len(_DASHES)], _COLOURS[i % len(_COLOURS)]
        axes.step(times, survival, style, where="post", color=colour, label=group or None)
    if at:
        axes.legend(title=table.header[0])
    axes.set_ylim(0, 1)
    axes.set_xlabel("time")
    axes.set_ylabel("survival")


_KINDS = {"coefficient": _coefficients, "survival": _curves, "records": _bars}
"""Drawing of a table that has a column of the name."""
