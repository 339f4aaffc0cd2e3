"""A table as a picture: each measured mean with its spread, beside what the paper reports."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benches.papers.results import TableResult
from benches.papers.table import Target

__all__ = ["draw"]

MEASURED, PAPER, TARGET = "#1f5fa8", "#e0a030", "#4f9a5b"
FAR = 30.0  # times: figures that differ by more are shown on a logarithmic axis


def draw(result: TableResult, *, quick: bool = False) -> Figure | None:
    """Return a panel for each metric with a line for each row; None if nothing was measured."""
    shown = [
        metric
        for metric in result.table.metrics
        if any(row.measured(metric) is not None for row in result.rows)
    ]
    rows = [row for row in result.rows if row.records]
    if not shown:
        return None
    width, height = 2.8 + 3.2 * len(shown), 1.5 + 0.34 * len(rows)
    figure = Figure(figsize=(width, height), dpi=144, layout="constrained")
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
    tried = " (tried with --quick: no result)" if quick else ""
    figure.suptitle(f"{result.table.title}{tried}", x=0.01, ha="left", fontsize=11)
    return figure


def _panel(axes: Axes, result: TableResult, metric: str) -> None:
    rows = [row for row in result.rows if row.records]
    lengths = list[float]()
    for height, row in enumerate(rows):
        for bound in _bounds(row.row.target.get(metric, Target())):
            axes.plot([bound] * 2, [height - 0.35, height + 0.35], color=TARGET, label="target")
        if (paper := row.row.paper.get(metric)) is not None:
            lengths.append(paper.mean)
            axes.errorbar(
                paper.mean, height + 0.16, xerr=paper.sd, fmt="D", ms=4.5, color=PAPER,
                elinewidth=1.4, capsize=2, label="paper",
            )  # fmt: skip
        if (measured := row.measured(metric)) is not None:
            lengths.append(measured.mean)
            axes.errorbar(
                measured.mean, height - 0.1, xerr=measured.sd, fmt="o", ms=5.5, color=MEASURED,
                elinewidth=1.6, capsize=2.5, label="measured",
            )  # fmt: skip
    if min(lengths) > 0 and max(lengths) > FAR * min(lengths):
        axes.set_xscale("log")
    axes.set_title(metric, loc="left", fontsize=10)
    axes.grid(True, axis="x", color="#e4e6ea", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _bounds(target: Target) -> list[float]:
    return [bound for bound in (target.at_least, target.at_most) if math.isfinite(bound)]
