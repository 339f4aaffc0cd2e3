"""`Pools`: items with few raters, in buckets whose sums have enough raters."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedmf.bayes.gaussian import Floats
from fedmf.data import Ratings
from fedmf.models.federated import Raters

HASH = 2654435761  # Knuth, TAOCP 3, section 6.4: it scatters neighbouring numbers


@dataclass(frozen=True, eq=False)
class Pools(Raters):
    """Raters of the rows of the users' tables; a row is of an item, or of a bucket of items.

    A sum over fewer raters than `min_raters` would tell too much of a user. So items with fewer
    raters share a row, and have the same factors in every draw. Of the items of a bucket, a
    user's first rating alone is used.

    Parameters
    ----------
    counts, share : see `Raters`, for rows: int64, shape (m,), 0 for a number that is no row
    items : int64, shape (m,), number of raters of each item
    rows : int64, shape (m,), row of each item, -1 for an item left out
    """

    items: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, raters: Raters, least: int) -> Pools:
        """Return rows by the raters of each item; the raters of buckets are still unknown.

        Parameters
        ----------
        raters : raters of each item
        least : int, `min_raters`, ≥ 1
        """
        counts = raters.counts
        few = np.flatnonzero((counts > 0) & (counts < least))
        few = few[np.argsort(few * HASH % 2**32, kind="stable")]
        rows = np.where(counts >= least, np.arange(counts.size), -1)
        firsts, ratings = [-1], least
        for item, count in zip(few.tolist(), counts[few].tolist(), strict=True):
            if ratings >= least:
                firsts.append(item)
                ratings = 0
            rows[item] = firsts[-1]
            ratings += count
        if ratings < least and len(firsts) > 2:  # too little for a bucket
            rows[rows == firsts[-1]] = firsts[-2]
        found = cls(np.where(counts >= least, counts, 0), raters.share, counts, rows)
        return replace(found, rows=np.where(found.pooled | (counts >= least), rows, -1))

    def with_counts(self, raters: Raters, least: int) -> Pools:
        """Return the rows after a count of their raters, without rows of too few raters."""
        enough = (self.rows >= 0) & raters.at_least(least)[self.rows]
        counts = np.where(raters.at_least(least), raters.counts, 0)
        return replace(self, counts=counts, rows=np.where(enough, self.rows, -1))

    @property
    def pooled(self) -> NDArray[np.bool_]:
        """True for each item of a bucket: bool, shape (m,)."""
        sizes = np.bincount(self.rows[self.rows >= 0], minlength=self.rows.size)
        return (self.rows >= 0) & (sizes[self.rows] > 1)

    def ratings(self, ratings: Ratings) -> Ratings:
        """Return the ratings of rows: a row stands in the place of pooled items."""
        rows, pooled = self.rows[ratings.items], self.pooled[ratings.items]
        keep = rows >= 0
        pairs = ratings.users[pooled].astype(np.int64) * self.rows.size + rows[pooled]
        again = np.ones(pairs.size, dtype=np.bool_)
        again[np.unique(pairs, return_index=True)[1]] = False
        keep[np.flatnonzero(pooled)[again]] = False
        return replace(ratings.take(keep), items=rows[keep].astype(np.int32))

    def of_rows(self, table: Floats) -> Floats:
        """Return the table with the bucket's row for each pooled item."""
        found, pooled = table.copy(), self.pooled
        found[pooled] = table[self.rows[pooled]]
        return found

    def means(self, table: Floats) -> Floats:
        """Return the table with the mean over the bucket for each pooled item."""
        found, pooled = table.copy(), self.pooled
        whose = self.rows[pooled]
        sums = np.zeros_like(table)
        np.add.at(sums, whose, table[pooled])
        sizes = np.bincount(whose, minlength=len(table))
        found[pooled] = (sums / np.maximum(sizes, 1)[:, None])[whose]
        return found
