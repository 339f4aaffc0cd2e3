"""The correlated Bayesian t-test: the probability that two models are practically equal.

Corani and Benavoli 2015, "A Bayesian approach for comparing cross-validated algorithms on
multiple data sets", section 3; Benavoli et al. 2017, "Time for a change", section 3.1. The FCF
paper compares FCF with CF by it (section 6.3, figure 3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benches.papers.table import Picture
from fedmf.errors import DataError, MissingExtra, SettingError

try:
    from scipy import stats
except ModuleNotFoundError as error:
    raise MissingExtra("the t-test needs scipy: pip install scipy") from error

if TYPE_CHECKING:  # the table can be listed without matplotlib
    from matplotlib.axes import Axes

ROPE = 0.005
"""Half the width of the region of practical equivalence, in the metric's unit (FCF)."""


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Posterior of the mean difference of two models, a shifted and scaled Student's t."""

    mean: float  # x̄ of the differences
    scale: float  # √((1/n + ρ/(1 − ρ)) σ̂²); 0 if all differences are the same: no doubt
    dof: int  # n − 1

    def density(self, difference: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability density at each difference."""
        return np.asarray(stats.t.pdf(difference, self.dof, self.mean, self.scale))

    def within(self, rope: float = ROPE) -> float:
        """Return the probability that the difference is in [−rope, rope], practically zero."""
        if not 0 <= rope < math.inf:
            raise SettingError(f"rope = {rope!r} must be finite and at least 0")
        if self.scale == 0:
            return float(abs(self.mean) <= rope)
        below, above = stats.t.cdf([-rope, rope], self.dof, self.mean, self.scale)
        return float(above - below)


def correlated_t_test(
    first: Sequence[float], second: Sequence[float], correlation: float
) -> Posterior:
    """Return the posterior of the mean of ``second − first``, a metric of the same builds.

    `correlation`, 0 ≤ ρ < 1, is that of different builds, whose training ratings overlap. The
    usual value is n_test / (n_test + n_train), so that ρ/(1 − ρ) is n_test/n_train (Nadeau and
    Bengio 2003).
    """
    if not 0 <= correlation < 1:
        raise SettingError(f"correlation = {correlation} must be in [0, 1)")
    if len(first) != len(second) or len(first) < 2:
        raise DataError(
            f"a paired test needs the same two or more builds of both models, not "
            f"{len(first)} and {len(second)}"
        )
    differences = np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    if not np.isfinite(differences).all():
        raise DataError("a metric of a build is NaN or infinite: check the runs")
    n = differences.size
    variance = float(differences.var(ddof=1))
    return Posterior(
        mean=float(differences.mean()),
        scale=math.sqrt((1 / n + correlation / (1 - correlation)) * variance),
        dof=n - 1,
    )


def draw_posteriors(
    posteriors: Mapping[str, Mapping[str, Posterior]], *, title: str
) -> Picture:
    """Draw the density of each posterior, with lines at the ends of [−ROPE, ROPE]."""
    from secagg.kit.picture import blank

    metrics = list(dict.fromkeys(metric for row in posteriors.values() for metric in row))
    if not metrics:
        raise DataError("a posterior needs two runs of both models: raise --seeds")
    figure = blank(
        30 + 90 * len(metrics),
        f"{title}: densities for {', '.join(metrics)}, each on {'; '.join(posteriors)}.",
    )
    figure.suptitle(title, x=0.01, ha="left")
    grid = figure.subplots(len(metrics), len(posteriors), squeeze=False)
    for axes_row, metric in zip(grid, metrics, strict=True):
        for axes, row in zip(axes_row, posteriors.values(), strict=True):
            if metric in row:
                _density(axes, row[metric])
                axes.set_title(f"{metric}: within {row[metric].within():.4f}", fontsize=10)
            else:
                axes.set_visible(False)
    for axes, name in zip(grid[-1], posteriors, strict=True):
        axes.set_xlabel(name)
    return figure


def _density(axes: Axes, posterior: Posterior) -> None:
    from secagg.kit.picture import BLUE, VERMILION

    if posterior.scale == 0:
        axes.axvline(posterior.mean, color=BLUE, lw=1.6)
    else:
        # An even grid over the region would miss a very narrow density.
        around = posterior.mean + posterior.scale * np.linspace(-12, 12, 121)
        at = np.union1d(around, np.linspace(-1.6 * ROPE, 1.6 * ROPE, 41))
        density = posterior.density(at)
        axes.plot(at, density, color=BLUE, lw=1.4)
        axes.fill_between(at, density, color=BLUE, alpha=0.15, lw=0)
    for edge in (-ROPE, ROPE):
        axes.axvline(edge, color=VERMILION, lw=1.2, ls="--")
    reach = max(1.6 * ROPE, abs(posterior.mean) + 4 * posterior.scale)
    axes.set(xlim=(-reach, reach), xticks=[-ROPE, 0, ROPE], yticks=[])
    axes.set_xticklabels([f"−{ROPE:g}", "0", f"{ROPE:g}"], fontsize=9)
    axes.set_ylim(bottom=0)
    axes.tick_params(length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
