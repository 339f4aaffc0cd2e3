"""The correlated Bayesian t-test: how probable it is that two models are practically equal.

Corani and Benavoli 2015, "A Bayesian approach for comparing cross-validated algorithms on
multiple data sets", section 3; Benavoli et al. 2017, "Time for a change", section 3.1. The FCF
paper compares FCF with CF by it (section 6.3, figure 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.errors import DataError, MissingExtra, SettingError

try:
    from scipy import stats
except ModuleNotFoundError as error:
    raise MissingExtra("the t-test needs scipy: pip install 'secagg[fedmf]'") from error

__all__ = ["ROPE", "Posterior", "Probabilities", "correlated_t_test"]

ROPE = 0.005
"""Half the width of the region of practical equivalence, in the metric's unit (FCF)."""


@dataclass(frozen=True)
class Probabilities:
    """Of the mean difference: that it lies below, within or above the region; they add to 1."""

    left: float
    within: float
    right: float


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """What is known of the mean difference: Student's t, shifted and scaled."""

    mean: float  # x̄ of the differences
    scale: float  # √((1/n + ρ/(1 − ρ)) σ̂²); 0 if all differences are the same: no doubt
    dof: int  # n − 1

    def density(self, difference: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability density."""
        return np.asarray(stats.t.pdf(difference, self.dof, self.mean, self.scale))

    def probabilities(self, rope: float = ROPE) -> Probabilities:
        """Return how the mass lies to the region of practical equivalence, [−rope, rope]."""
        if not 0 <= rope < math.inf:
            raise SettingError(f"rope = {rope!r} must be finite and at least 0")
        if self.scale == 0:
            left, right = float(self.mean < -rope), float(self.mean > rope)
        else:
            left = float(stats.t.cdf(-rope, self.dof, self.mean, self.scale))
            right = float(stats.t.sf(rope, self.dof, self.mean, self.scale))
        return Probabilities(left, 1.0 - left - right, right)


def correlated_t_test(
    first: Sequence[float], second: Sequence[float], correlation: float
) -> Posterior:
    """Return the posterior of the mean of ``second − first``, a metric of the same builds.

    ρ, 0 ≤ ρ < 1, is the correlation of different builds, whose training ratings overlap. The
    heuristic is n_test / (n_test + n_train), so that ρ/(1 − ρ) is n_test/n_train (Nadeau and
    Bengio 2003); what a build leaves out of both does not count.
    """
    if not 0 <= correlation < 1:
        raise SettingError(f"correlation = {correlation} must be in [0, 1)")
    if len(first) != len(second) or len(first) < 2:
        raise DataError(
            f"a paired test needs the same builds of both models and at least two, not "
            f"{len(first)} and {len(second)}"
        )
    differences = np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    if not np.isfinite(differences).all():
        raise DataError("a metric of a build is not a finite number")
    n = differences.size
    variance = float(differences.var(ddof=1))
    return Posterior(
        mean=float(differences.mean()),
        scale=math.sqrt((1 / n + correlation / (1 - correlation)) * variance),
        dof=n - 1,
    )
