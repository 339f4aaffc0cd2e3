"""A table as a picture: each measured mean with its spread, beside the published figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benches.papers.results import TableResult
from benches.papers.table import Target
from secagg.bench.picture import blank, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

MEASURED, PAPER, TARGET = "#1f5fa8", "#e0a030", "#4f9a5b"
FAR = 30.0  # times: figures that differ by more are shown on a logarithmic axis


def draw(result: TableResult) -> Figure | None:
    """Return a panel for each metric with a line for each row; None if nothing was measured."""
    rows = [row for row in result.rows if row.records]
    there = {name for row in rows for record in row.records for name in record.figures}
    shown = [metric for metric in result.table.metrics if metric in there]
    if not shown:
        return None
    figure = blank(2.8 + 3.2 * len(shown), 1.5 + 0.34 * len(rows), layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, metric in zip(panels, shown, strict=True):
        _panel(axes, result, metric)
    panels[0].set_yticks(range(len(rows)), [row.row.name for row in rows], fontsize=9)
    panels[0].set_ylim(len(rows) - 0.5, -0.5)  # the first row on top
    named = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        named.values(), named.keys(), loc="outside lower right", ncols=3, frameon=False
    )
    tried = " (tried with --quick: no result)" if result.quick else ""
    figure.suptitle(f"{result.table.title}{tried}", x=0.01, ha="left", fontsize=11)
    return figure


def _panel(axes: Axes, result: TableResult, metric: str) -> None:
    lengths = list[float]()
    for height, row in enumerate(row for row in result.rows if row.records):
        target = row.row.target.get(metric, Target())
        for bound in filter(math.isfinite, (target.at_least, target.at_most)):
            axes.plot([bound] * 2, [height - 0.35, height + 0.35], color=TARGET, label="target")
        for figure, below, label, mark, size, colour in (
            (row.row.paper.get(metric), 0.16, "paper", "D", 4.5, PAPER),
            (row.measured(metric), -0.1, "measured", "o", 5.5, MEASURED),
        ):
            if figure is not None:
                lengths.append(figure.mean)
                axes.errorbar(
                    figure.mean, height + below, xerr=figure.sd, fmt=mark, ms=size,
                    color=colour, elinewidth=1.5, capsize=2.5, label=label,
                )  # fmt: skip
    if min(lengths) > 0 and max(lengths) > FAR * min(lengths):
        axes.set_xscale("log")
    axes.set_title(metric, loc="left", fontsize=10)
    plain(axes, "x")
    axes.tick_params(axis="y", length=0)
