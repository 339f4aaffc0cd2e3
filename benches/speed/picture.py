"""Picture of the series: measured times, and the theoretical order through the last point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, NullLocator

from benches.speed.fits import fit
from benches.speed.scaling import Grown
from secagg.kit.picture import BLUE, VERMILION, blank, plain, style
from secagg.kit.table import duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABELS = {"n": "clients n", "neighbours": "neighbours k", "length": "elements d"}


def draw(grown: Sequence[Grown]) -> Figure:
    """Draw a panel for each series, on logarithmic axes, at least one."""
    down = -(-len(grown) // 2)
    titles = "; ".join(f"{one.series.title}, over {one.series.axis}" for one in grown)
    with style():
        about = f"Time over size, beside the theoretical order. Panels: {titles}."
        figure = blank(150 * down + 30, about)
        grid = figure.subplots(down, 2, squeeze=False).ravel().tolist()
        for axes, one in zip(grid, grown, strict=False):
            _panel(axes, one)
        for axes in grid[len(grown) :]:
            axes.remove()
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2)
    return figure


def _panel(axes: Axes, one: Grown) -> None:
    sizes, seconds = one.points, one.medians
    due = [seconds[-1] * (x / sizes[-1]) ** one.series.order for x in sizes]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot(sizes, due, "--", color=VERMILION, label="theoretical order", zorder=2)
    axes.plot(sizes, seconds, "-o", ms=5, color=BLUE, label="measured", zorder=3)
    found = fit(sizes, seconds)
    exponent = "" if found is None else f", exponent {found.overall:.2f}"
    axes.set_title(f"{one.series.title}:\norder {one.series.theory}{exponent}", fontsize=10)
    axes.set_xlabel(_LABELS.get(one.series.axis, one.series.axis), fontsize=10)
    axes.set_xticks(sizes, [_short(x) for x in sizes])
    least, most = min(*seconds, *due), max(*seconds, *due)
    ticks = [10.0**i for i in range(-6, 4) if least / 3 <= 10.0**i <= 3 * most]
    axes.set_yticks(ticks)
    axes.set_ylim(min([least / 1.5, *ticks]), max([1.5 * most, *ticks]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    plain(axes)


def _short(size: int) -> str:
    for unit, letter in ((1_000_000, "M"), (1000, "k")):
        if size >= 10_000 and size % unit == 0:
            return f"{size // unit}{letter}"
    return f"{size:,}"
