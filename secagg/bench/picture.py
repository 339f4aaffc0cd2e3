"""Pictures, drawn without a screen, and the picture of a comparison."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

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
        "the picture needs matplotlib: pip install matplotlib", name="matplotlib"
    ) from None

INK, GRID = "#303238", "#e4e6ea"
COLOURS = {  # of the systems drawn; from Okabe and Ito (2008), for the colour-blind too
    "ss": "#0072B2",
    "he": "#D55E00",
    "phe-packed": "#E69F00",
    "phe-float": "#000000",
    "ckks": "#009E73",
}


_Scale: TypeAlias = tuple[Callable[[float], str], Sequence[float]]  # format and ticks
TIME: _Scale = (duration, [10.0**i for i in range(-6, 2)] + [60, 600, 3600, 36e3, 36e4, 36e5])
BYTES: _Scale = (volume, [10.0**i for i in range(13)])


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


def canvas(rows: Sequence[Row]) -> Canvas:
    """Draw client time, time of the other parties, and client traffic over the length.

    The cohort is the middle one of the rows, ≥ 1; hollow marks are scaled from a sample.
    """
    cohorts = sorted({row.case.clients for row in rows})
    n = cohorts[len(cohorts) // 2]
    shown = [row for row in rows if row.case.clients == n and row.system.name in COLOURS]
    whole = blank(16, 8, layout="constrained")
    place = {"x": 0.012, "ha": "left", "color": INK}
    title = f"What the sum of {n:,} private vectors costs"
    whole.suptitle(title, fontsize=21, weight="bold", **place)
    whole.supxlabel(
        "elements of a vector.  ●  measured  ○  scaled from a sample.  "
        f"One core of {machine()['cpu']}; each party in a process of its own",
        fontsize=12, **place,
    )  # fmt: skip
    panels: tuple[tuple[str, Callable[[Row], Figure], _Scale], ...] = (
        ("a client computes", lambda row: row.client.seconds, TIME),
        ("server and key holder compute", lambda row: row.central.seconds, TIME),
        ("a client sends and receives", lambda row: row.bytes_up + row.bytes_down, BYTES),
    )
    for axes, (title, figure, scale) in zip(whole.subplots(1, 3), panels, strict=True):
        _panel(axes, shown, figure, scale)
        axes.set_title(title, loc="left", fontsize=14, color=INK, pad=12)
    return whole


def _panel(
    axes: Axes, rows: Sequence[Row], figure: Callable[[Row], Figure], scale: _Scale
) -> None:
    """Draw a line for each system; the legend has its last value, the highest first."""
    write, ticks = scale
    axes.set_xscale("log")
    axes.set_yscale("log")
    lines: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.case.length):
        lines.setdefault(row.system.name, []).append(row)
    drawn = []
    for name, points in reversed(lines.items()):  # this library's on top
        xs, figures = [row.case.length for row in points], [figure(row) for row in points]
        colour, last = COLOURS[name], figures[-1]
        values = [one.value for one in figures]
        (line,) = axes.plot(xs, values, color=colour, lw=2.2, zorder=2)
        for x, one in zip(xs, figures, strict=True):
            face = colour if one.measured else "white"
            axes.plot(x, one.value, "o", ms=8, mfc=face, mec=colour, mew=2, clip_on=False)
        mark = "" if last.measured else "~"
        line.set_label(f"{points[-1].system.label}  {mark}{write(last.value)}")
        drawn.append((last.value, line))
    lengths = sorted({row.case.length for row in rows})
    axes.set_xticks(lengths, [f"{x // 1000}k" if x % 1000 == 0 else f"{x:,}" for x in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    axes.set_yticks([y for y in ticks if low <= y <= high])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: write(y)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=11, colors=INK, length=0)
    plain(axes)
    order = [line for _, line in sorted(drawn, key=lambda end: end[0], reverse=True)]
    axes.legend(handles=order, loc="upper left", bbox_to_anchor=(1, 1), labelcolor="linecolor")
