"""Picture of ``secagg bench``: seconds and bytes of each system over the vectors' length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, NullLocator

from secagg.bench.cases import Figure, Row
from secagg.kit import picture as kit
from secagg.kit.table import duration, volume
from secagg.kit.timing import machine

SYSTEMS = {  # that are drawn: colour and mark
    "ss": (kit.BLUE, "o"),
    "one-shot": (kit.ORANGE, "P"),
    "he": (kit.VERMILION, "D"),
    "phe-packed": (kit.PURPLE, "s"),
    "phe-float": (kit.INK, "v"),
    "ckks": (kit.GREEN, "^"),
}

_Scale: TypeAlias = tuple[Callable[[float], str], Sequence[float]]  # format and ticks
TIME: _Scale = (duration, [10.0**i for i in range(-6, 2)] + [60, 600, 3600, 36e3, 36e4, 36e5])
BYTES: _Scale = (volume, [10.0**i for i in range(13)])
_PANELS: tuple[tuple[str, Callable[[Row], Figure], _Scale], ...] = (
    ("a client computes", lambda row: row.client.seconds, TIME),
    ("server and key holder compute", lambda row: row.central.seconds, TIME),
    ("a client sends and receives", lambda row: row.bytes_up + row.bytes_down, BYTES),
)


def canvas(rows: Sequence[Row]) -> Canvas:
    """Return the picture of a comparison of systems, from at least one row.

    The panels are client time, time of server and key holder, and client traffic. They show
    each system over the vector length, or at the only length. If the rows have several numbers
    of clients, only the middle number is drawn. Hollow marks are scaled from a sample.
    """
    cohorts = sorted({row.case.clients for row in rows})
    n = cohorts[len(cohorts) // 2]
    shown = [row for row in rows if row.case.clients == n and row.system.name in SYSTEMS]
    lengths = sorted({row.case.length for row in shown})
    single = len(lengths) == 1
    title = f"What the sum of {n:,} private vectors costs"
    about = f", {lengths[0]:,} elements each" if single else ", over their length"
    systems = ", ".join(dict.fromkeys(row.system.label for row in shown))
    panels = ", ".join(title for title, _, _ in _PANELS)
    height = 3 * (44 + 17 * len(shown)) if single else 3 * 175
    with kit.style():
        whole = kit.blank(height + 70, f"{title}{about}: {panels}. Systems: {systems}.")
        place = {"x": 0.01, "ha": "left"}
        whole.suptitle(f"{title}{about}" if single else title, fontsize=13, **place)
        of = "" if single else "Elements of a vector. "
        foot = (
            f"{of}● measured, ○ scaled from a sample. One core of {machine()['cpu']}; each "
            "party in a process of its own."
        )
        whole.supxlabel(fill(foot, 84), fontsize=10, color=kit.DIM, **place)
        for axes, (title, figure, scale) in zip(whole.subplots(3, 1), _PANELS, strict=True):
            (_systems if single else _lines)(axes, shown, figure, scale)
            axes.set_title(title)
    return whole


def _systems(
    axes: Axes, rows: Sequence[Row], figure: Callable[[Row], Figure], scale: _Scale
) -> None:
    """Draw a panel for a single length: a row for each system, with the value by the mark."""
    axes.set_xscale("log")
    for height, row in enumerate(rows):
        _mark(axes, row, figure(row).value, height, figure(row))
        axes.annotate(
            _written(figure(row), scale), (figure(row).value, height), (9, 0),
            textcoords="offset points", va="center", fontsize=10,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), [row.system.label for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    low, high = axes.get_xlim()
    axes.set_xlim(low / 1.5, high * (high / low) ** 0.25)  # room for the values
    _ticked(axes, "x", scale)
    kit.plain(axes, "x")


def _lines(
    axes: Axes, rows: Sequence[Row], figure: Callable[[Row], Figure], scale: _Scale
) -> None:
    """Draw a panel over lengths: a line for each system, with the last value in the legend."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    lines: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.case.length):
        lines.setdefault(row.system.name, []).append(row)
    drawn = []
    for name, points in reversed(lines.items()):  # this library's on top
        colour, mark = SYSTEMS[name]
        last = figure(points[-1])
        values = [figure(row).value for row in points]
        axes.plot([row.case.length for row in points], values, color=colour, zorder=2)
        for row in points:
            _mark(axes, row, row.case.length, figure(row).value, figure(row))
        label = f"{points[-1].system.label}: {_written(last, scale)}"
        # an empty plot, so that the legend shows line and mark together
        (line,) = axes.plot([], [], color=colour, marker=mark, label=label)
        drawn.append((last.value, line))
    lengths = sorted({row.case.length for row in rows})
    axes.set_xticks(lengths, [f"{x // 1000}k" if x % 1000 == 0 else f"{x:,}" for x in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
    _ticked(axes, "y", scale)
    kit.plain(axes)
    order = [line for _, line in sorted(drawn, key=lambda end: end[0], reverse=True)]
    axes.legend(handles=order, loc="upper left", bbox_to_anchor=(1, 1.05), handlelength=1.5)


def _mark(axes: Axes, row: Row, x: float, y: float, figure: Figure) -> None:
    colour, mark = SYSTEMS[row.system.name]
    face = colour if figure.measured else kit.PAGE
    axes.plot(x, y, mark, ms=6.5, mfc=face, mec=colour, mew=1.8, clip_on=False, zorder=3)


def _written(figure: Figure, scale: _Scale) -> str:
    return f"{'' if figure.measured else '~'}{scale[0](figure.value)}"


def _ticked(axes: Axes, name: str, scale: _Scale) -> None:
    """Label a logarithmic axis with up to five round times or sizes."""
    write, ticks = scale
    low, high = axes.get_xlim() if name == "x" else axes.get_ylim()
    axis = axes.xaxis if name == "x" else axes.yaxis
    there = [tick for tick in ticks if low <= tick <= high]
    # every k-th tick, with k so large that at most five labels are left
    axis.set_ticks(there[:: -(-len(there) // 5)] if there else there)
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    axis.set_minor_locator(NullLocator())
