"""Pictures, drawn without a screen, and the one of a comparison."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from secagg.bench.cases import Figure, Row
from secagg.bench.table import duration, volume
from secagg.bench.timing import machine
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

INK, GRID = "#303238", "#e4e6ea"
COLOURS = {  # Okabe and Ito (2008), which people who are colour-blind tell apart
    "ss": "#0072B2",
    "he": "#D55E00",
    "phe-packed": "#E69F00",
    "phe-float": "#000000",
    "ckks": "#009E73",
}
"""Of the systems that are drawn: where the key is kept matters little for what is drawn."""
LABEL = 0.045
"""The height of a label, as a part of the axis."""


@dataclass(frozen=True)
class _Scale:
    """How an axis is written."""

    text: Callable[[float], str]
    ticks: Sequence[float]


TIME = _Scale(duration, [*(10.0**i for i in range(-6, 2)), 60, 600, 3600, 36e3, 36e4, 36e5])
BYTES = _Scale(volume, [10.0**i for i in range(13)])


def blank(
    width: float, height: float, *, dpi: int = 144, layout: Literal["constrained"] | None = None
) -> Canvas:
    """Return an empty picture, width and height in inches."""
    whole = Canvas(figsize=(width, height), dpi=dpi, layout=layout)
    FigureCanvasAgg(whole)
    return whole


def plain(axes: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Leave only the lower spine, and a light grid behind the data."""
    axes.grid(True, which="major", axis=grid, color=GRID, lw=0.9)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)


def png(picture: Canvas) -> bytes:
    """Return the picture as a PNG file."""
    drawn = io.BytesIO()
    picture.savefig(drawn, format="png")
    return drawn.getvalue()


def spread(heights: Sequence[float], apart: float) -> list[float]:
    """Move ascending heights of labels as far apart as needed, about their middle."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + apart) if moved else height)
    shift = sum(moved) - sum(heights)
    return [height - shift / len(moved) for height in moved]


def canvas(rows: Sequence[Row]) -> Canvas:
    """Draw a client's time, everybody else's, and a client's traffic over the length.

    The cohort is the middle one of those that the rows, at least one, have. Hollow marks are
    scaled from a sample.
    """
    cohorts = sorted({row.case.clients for row in rows})
    n = cohorts[len(cohorts) // 2]
    shown = [row for row in rows if row.case.clients == n and row.system.name in COLOURS]
    whole = blank(14.4, 8.1, dpi=150)
    whole.subplots_adjust(left=0.052, right=0.835, bottom=0.12, top=0.84, wspace=1.6)
    place = {"x": 0.012, "ha": "left", "color": INK}
    title = f"What the sum of {n:,} private vectors costs"
    whole.suptitle(title, y=0.975, fontsize=21, weight="bold", **place)
    whole.supxlabel(
        "elements of a vector.  ●  measured  ○  scaled from a sample.  "
        f"One core of {machine()['cpu']}; each party in a process of its own",
        y=0.02, fontsize=12, **place,
    )  # fmt: skip
    panels: tuple[tuple[str, Callable[[Row], Figure], _Scale], ...] = (
        ("a client computes", lambda row: row.client.seconds, TIME),
        ("server and key holder compute", _central, TIME),
        ("a client sends and receives", lambda row: row.bytes_up + row.bytes_down, BYTES),
    )
    for axes, (title, figure, scale) in zip(whole.subplots(1, 3), panels, strict=True):
        _panel(axes, shown, figure, scale)
        axes.set_title(title, loc="left", fontsize=14, color=INK, pad=12)
    return whole


def _central(row: Row) -> Figure:
    """Return the time of the parties that are there once."""
    return row.server.seconds if row.holder is None else row.server.seconds + row.holder.seconds


def _panel(
    axes: Axes, rows: Sequence[Row], figure: Callable[[Row], Figure], scale: _Scale
) -> None:
    """Draw a line for each system, with its name and its last value where it ends."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    lines: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.case.length):
        lines.setdefault(row.system.name, []).append(row)
    ends = []
    for name, points in reversed(lines.items()):  # this library's on top
        xs, figures = [row.case.length for row in points], [figure(row) for row in points]
        colour, last = COLOURS[name], figures[-1]
        axes.plot(xs, [one.value for one in figures], color=colour, lw=2.2, zorder=2)
        for x, one in zip(xs, figures, strict=True):
            face = colour if one.measured else "white"
            axes.plot(x, one.value, "o", ms=8, mfc=face, mec=colour, mew=2, clip_on=False)
        mark = "" if last.measured else "~"
        text = f"{points[-1].system.label}  {mark}{scale.text(last.value)}"
        ends.append((last.value, text, colour))
    lengths = sorted({row.case.length for row in rows})
    axes.set_xticks(lengths, [f"{x // 1000}k" if x % 1000 == 0 else f"{x:,}" for x in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    axes.set_yticks([y for y in scale.ticks if low <= y <= high])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: scale.text(y)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=11, colors=INK, length=0)
    plain(axes)
    _label(axes, ends)


def _label(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Write beside the ends of the lines, far enough from each other to be read."""
    low, high = (math.log10(y) for y in axes.get_ylim())
    ends.sort()
    heights = spread([(math.log10(y) - low) / (high - low) for y, _, _ in ends], LABEL)
    for height, (_, text, colour) in zip(heights, ends, strict=True):
        axes.text(
            1.05, height, text, color=colour, va="center", fontsize=10.5, weight="bold",
            transform=axes.transAxes,
        )  # fmt: skip
