"""A comparison as a picture for a slide; drawn without a screen."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence

from secagg.compare.rows import Figure, Row
from secagg.compare.units import duration, volume
from secagg.errors import MissingExtra

try:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import FuncFormatter, NullLocator
except ModuleNotFoundError as error:
    if str(error.name).partition(".")[0] != "matplotlib":
        raise
    raise MissingExtra(
        "the picture needs matplotlib: pip install 'secagg[bench]'", name="matplotlib"
    ) from None

__all__ = ["draw", "spread"]

# Okabe and Ito (2008), which people who are colour-blind tell apart
COLOURS = {
    "ss": "#0072B2",
    "he": "#D55E00",
    "he-owner": "#CC79A7",
    "phe-packed": "#E69F00",
    "phe-float": "#000000",
    "ckks": "#009E73",
}
INK, GRID = "#303238", "#e4e6ea"
LABEL = 0.055
"""The height of a label, as a part of the axis."""
BESIDE = 1.3
"""How far to the right of the last point, as a factor."""


def draw(rows: Sequence[Row], path: str | os.PathLike[str]) -> None:
    """Draw a client's time, everybody else's, and a client's traffic over the length.

    The cohort is the one in the middle of those that were measured. Hollow marks are scaled
    from a sample.

    Parameters
    ----------
    rows : sequence of Row
        At least one.
    path : str or path
        Where the PNG goes.

    Raises
    ------
    OSError
        It cannot be written.
    """
    cohorts = sorted({row.case.clients for row in rows})
    n = cohorts[len(cohorts) // 2]
    shown = [row for row in rows if row.case.clients == n]
    canvas = Canvas(figsize=(12.8, 6.2), dpi=150, layout="constrained")
    FigureCanvasAgg(canvas)
    canvas.suptitle(
        f"The sum of {n:,} private vectors: what each way costs",
        x=0.01, ha="left", fontsize=19, weight="bold", color=INK,
    )  # fmt: skip
    panels: tuple[tuple[str, Callable[[Row], Figure], Callable[[float], str]], ...] = (
        ("a client computes", lambda row: row.client.seconds, duration),
        ("server and key holder compute", _central, duration),
        ("a client sends and receives", lambda row: row.bytes_up + row.bytes_down, volume),
    )
    for axes, (title, figure, text) in zip(canvas.subplots(1, 3), panels, strict=True):
        _panel(axes, shown, figure, text)
        axes.set_title(title, loc="left", fontsize=14, color=INK, pad=10)
    canvas.supxlabel(
        "elements of a vector        filled: measured, hollow: scaled from a sample",
        x=0.01, ha="left", fontsize=12, color=INK,
    )  # fmt: skip
    canvas.savefig(path, format="png")


def _central(row: Row) -> Figure:
    """Return the time of the parties that are there once."""
    return row.server.seconds if row.holder is None else row.server.seconds + row.holder.seconds


def _panel(
    axes: Axes,
    rows: Sequence[Row],
    figure: Callable[[Row], Figure],
    text: Callable[[float], str],
) -> None:
    """Draw a line for each system, and its name and last value where it ends."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(row.system.name, []).append(row)
    ends = []
    for name, points in lines.items():
        points.sort(key=lambda row: row.case.length)
        colour = COLOURS[name]
        xs, figures = [row.case.length for row in points], [figure(row) for row in points]
        axes.plot(xs, [one.value for one in figures], color=colour, lw=2.2, zorder=2)
        for x, one in zip(xs, figures, strict=True):
            face = colour if one.measured else "white"
            axes.plot(x, one.value, "o", ms=8, mfc=face, mec=colour, mew=2, zorder=3)
        last = figures[-1]
        mark = "" if last.measured else "~"
        ends.append(
            (last.value, f"{points[-1].system.label}  {mark}{text(last.value)}", colour)
        )
    _label(axes, max(row.case.length for row in rows), ends)
    axes.set_xticks(sorted({row.case.length for row in rows}))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: text(y)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=11, colors=INK, length=0)
    axes.grid(True, which="major", color=GRID, lw=0.9)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _label(axes: Axes, x: float, ends: list[tuple[float, str, str]]) -> None:
    """Write beside the ends of the lines, far enough from each other to be read."""
    low, high = (math.log10(y) for y in axes.get_ylim())
    ends.sort()
    heights = spread([math.log10(value) for value, _, _ in ends], LABEL * (high - low))
    for height, (_, label, colour) in zip(heights, ends, strict=True):
        axes.text(
            x * BESIDE, 10**height, label, color=colour, va="center", fontsize=12, weight="bold"
        )


def spread(heights: Sequence[float], apart: float) -> list[float]:
    """Move ascending heights as far apart as they have to be, about their middle."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + apart) if moved else height)
    shift = sum(moved) - sum(heights)
    return [height - shift / len(moved) for height in moved]
