"""Number of users who rated each item, as far as they could be counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Raters"]


@dataclass(frozen=True, eq=False)
class Raters:
    """Number of users who rated each item, as far as they could be counted.

    Parameters
    ----------
    counts
        int64, shape (m,): the raters among the users that were counted, at most n_i.
    share
        The part of the cohort that was counted, 0 < share ≤ 1; the others vanished.
    """

    counts: NDArray[np.int64]
    share: float

    @property
    def bound(self) -> NDArray[np.float64]:
        """Bound that n_i hardly exceeds: two deviations above count / share, at least 1.

        It is n_i itself where nobody vanished. A step that was divided by a count of half the
        raters would be twice as long, and the item would never settle.
        """
        spread = np.sqrt(self.counts * (1 - self.share))
        return np.asarray(np.maximum((self.counts + 2 * spread) / self.share, 1.0))

    def at_least(self, least: int) -> NDArray[np.bool_]:
        """Return which items have so many raters: bool, shape (m,)."""
        return np.asarray(self.counts >= least)
