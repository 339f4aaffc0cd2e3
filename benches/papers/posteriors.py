"""Pictures of correlated Bayesian t-tests, as in the FCF paper's figure 3."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benches.papers.bayes import ROPE, Posterior
from fedmf.errors import DataError

__all__ = ["draw_posteriors"]

INK, REGION = "#1f5fa8", "#e0a030"


def draw_posteriors(
    posteriors: Mapping[str, Mapping[str, Posterior]], *, title: str, rope: float = ROPE
) -> Figure:
    """Draw densities of mean differences, and the region of practical equivalence."""
    n_columns = max((len(row) for row in posteriors.values()), default=0)
    if not n_columns:
        raise DataError("there is no posterior to draw: it takes two builds of both models")
    figure = Figure(
        figsize=(2.5 * n_columns, 2.1 * len(posteriors) + 0.5), dpi=144, layout="constrained"
    )
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(posteriors), n_columns, squeeze=False)
    for axes_row, (name, row) in zip(grid, posteriors.items(), strict=True):
        for axes, (column, posterior) in zip(axes_row, row.items(), strict=False):
            chances = posterior.probabilities(rope)
            if posterior.scale == 0:
                axes.axvline(posterior.mean, color=INK, lw=1.6)
            else:
                # Far too narrow a density would be missed by an even grid over the region.
                around = posterior.mean + posterior.scale * np.linspace(-12, 12, 481)
                at = np.union1d(around, np.linspace(-1.6 * rope, 1.6 * rope, 161))
                density = posterior.density(at)
                axes.plot(at, density, color=INK, lw=1.4)
                axes.fill_between(at, density, color=INK, alpha=0.15, lw=0)
            for edge in (-rope, rope):
                axes.axvline(edge, color=REGION, lw=1.2, ls="--")
            reach = max(1.6 * rope, abs(posterior.mean) + 4 * posterior.scale)
            axes.set_xlim(-reach, reach)
            axes.set_ylim(bottom=0)
            axes.set_xticks([-rope, 0, rope])
            axes.set_yticks([])
            axes.set_title(f"{column}: within {chances.within:.4f}", fontsize=8)
            axes.tick_params(labelsize=7)
            axes.spines[["top", "right", "left"]].set_visible(False)
        axes_row[0].set_ylabel(name, fontsize=8)
        for axes in axes_row[len(row) :]:
            axes.set_visible(False)
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    return figure
