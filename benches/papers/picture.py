"""Pictures of tables: each measured mean with its spread, beside the published figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from benches.papers.results import RowResult, TableResult
from benches.papers.table import Mean, Panel, Target
from secagg.kit.picture import BLUE, GREEN, GRID, INK, VERMILION, blank, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURED, PAPER = (BLUE, "o"), (VERMILION, "D")
SEVERAL = ((VERMILION, "D"), (BLUE, "o"), (GREEN, "^"), (INK, "|"))  # of one panel
FAR = 30.0  # times: figures that differ by more are shown on a logarithmic axis


def draw(result: TableResult) -> Figure | None:
    """Draw the panels of a table, with a line for each row; None for fewer than two rows."""
    rows = [row for row in result.rows if row.records]
    there = {name for row in rows for record in row.records for name in record.figures}
    panels = result.table.panels
    if panels is None:
        panels = tuple(Panel(metric, (metric,)) for metric in result.table.metrics)
    panels = tuple(panel for panel in panels if there.intersection(panel.metrics))
    if len(rows) < 2 or not panels:
        return None
    columns = min(2, len(panels))
    names = [fill(row.row.name, 48 // columns) for row in rows]
    marks = max(len(panel.metrics) for panel in panels)
    high = max(6 + 12.5 * max(name.count("\n") + 1 for name in names), 8.0 * marks)
    down = -(-len(panels) // columns)
    drawn = ", ".join(panel.title for panel in panels)
    if len(panels) == 1 and len(panels[0].metrics) > 1:
        drawn += f" ({'; '.join(panels[0].metrics)})"
    about = f"{result.table.title}. Drawn for each of its {len(rows)} rows: {drawn}."
    figure = blank(30 + down * (high * len(rows) + 45), about)
    grid = figure.subplots(down, columns, sharey=True, squeeze=False).ravel().tolist()
    for axes, panel in zip(grid, panels, strict=False):
        _panel(axes, rows, panel, ticks=8 // columns)
        axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(len(rows) - 0.5, -0.5)  # the first row on top
    for axes in grid[len(panels) :]:
        axes.remove()
    _legend(figure)
    if result.quick:
        figure.supxlabel("tried with --quick: no result", x=0.01, ha="left", fontsize=11)
    return figure


def _panel(axes: Axes, rows: Sequence[RowResult], panel: Panel, ticks: int) -> None:
    means = list[float]()
    series = _series(rows, panel)
    for place, (label, (colour, mark), figures) in enumerate(series):
        below = 0.8 * ((place + 0.5) / len(series) - 0.5)
        for height, figure in enumerate(figures):
            if figure is not None:
                means.append(figure.mean)
                axes.errorbar(
                    figure.mean, height + below, xerr=figure.sd, fmt=mark, ms=6,
                    mew=2 if mark == "|" else 0, color=colour, elinewidth=1.4, label=label,
                )  # fmt: skip
    if len(panel.metrics) == 1:
        for height, row in enumerate(rows):
            target = row.row.target.get(panel.metrics[0], Target())
            for bound in filter(math.isfinite, (target.at_least, target.at_most)):
                axes.vlines(bound, height - 0.4, height + 0.4, GREEN, lw=1.8, label="target")
    if panel.limits is not None:
        axes.set_xlim(*panel.limits)
    elif min(means) > 0 and max(means) > FAR * min(means):
        axes.set_xscale("log")
    else:
        axes.locator_params(axis="x", nbins=ticks)
    axes.set_title(panel.title)
    plain(axes, "x")
    for height in range(1, len(rows)):
        axes.axhline(height - 0.5, color=GRID, lw=0.8, zorder=0)


def _series(
    rows: Sequence[RowResult], panel: Panel
) -> list[tuple[str, tuple[str, str], list[Mean | None]]]:
    """Return label, look and means of several metrics, or of one and its published figures."""
    measured = [[row.measured(metric) for row in rows] for metric in panel.metrics]
    if len(measured) > 1:
        looks = SEVERAL[: len(measured)]
        return list(zip(panel.metrics, looks, measured, strict=True))
    (metric,) = panel.metrics
    published = [row.row.paper.get(metric) for row in rows]
    paper = [("paper", PAPER, published)] if any(published) else []
    return [("measured", MEASURED, measured[0]), *paper]


def _legend(figure: Figure) -> None:
    """Add a legend above the panels, unless all marks are measured means of one metric."""
    named = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if named.keys() != {"measured"}:
        columns = 2 if sum(map(len, named)) > 48 else 4
        figure.legend(named.values(), named.keys(), loc="outside upper left", ncols=columns)
