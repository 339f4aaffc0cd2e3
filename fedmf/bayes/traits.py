"""Implicit feedback: features from the pairs of user and rated item, without the rating.

The server computes the features in each round of the second half of the burn-in, from the sums
of that round. Then the features stay. The features of an item are the popularity and the mean
factors of the raters, beside the public features f_i. Users compute g_u = Σ e_i / (n_u + 20)
over their n_u rated items; the e_i are the standardised factors of the round before. Rated
items as features of a user are due to Koren, "Factorization meets the neighborhood", KDD 2008,
section 4. As these features come from the ratings, the draws are from no joint posterior
distribution: docs/bayes.md has the effect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf.data import Ratings
from fedmf.data.blocks import Block

Floats = NDArray[np.float64]

SHRINKAGE = 20.0  # ratings; 5, 20 and 60 were tried on validation ratings of ml-100k


@dataclass(frozen=True, eq=False)
class Scaling:
    """Standardisation of item features: centre and width of each column, shape (f,).

    A column that was constant in training has the width infinity, and so no effect.
    """

    centre: Floats
    width: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Scaling:
        """Return the scaling to mean 0 and standard deviation 1 over the items."""
        spread = matrix.std(axis=0)
        return cls(matrix.mean(axis=0), np.where(spread > 0, spread, np.inf))

    def applied(self, matrix: Floats) -> Floats:
        """Return features in units of the training, shape (m, f)."""
        return np.asarray((matrix - self.centre) / self.width)


@dataclass(frozen=True, eq=False)
class Traits:
    """Features of all items from their raters.

    Parameters
    ----------
    items : float64, shape (m, k + 1), log popularity and mean factors of the raters
    embedding : float64, shape (m, k), the rows e_i, 0 for items without raters
    """

    items: Floats
    embedding: Floats

    @classmethod
    def of(cls, items: Floats, raters: Floats, weighted: Floats, mean: Floats) -> Traits:
        """Return the features after a sum.

        Parameters
        ----------
        items : float64, shape (m, k), q_i
        raters : float64, shape (m,), number of raters
        weighted : float64, shape (m, k + 1), Σ w p_u and Σ w over the raters
        mean : float64, shape (k,), the mean p_u of all users
        """
        total = weighted[:, -1:]
        apart = (weighted[:, :-1] - total * mean) / (total + SHRINKAGE)
        popular = np.log1p(raters)[:, None]
        embedding = np.where(total > 0, standardised(items), 0.0)
        return cls(standardised(np.concatenate((popular, apart), axis=1)), embedding)


def standardised(table: Floats) -> Floats:
    """Return columns of mean 0 and standard deviation 1; zeros for a constant column."""
    return Scaling.of(table).applied(table)


def profiles(ratings: Block | Ratings, embedding: Floats) -> Floats:
    """Return g_u of each user, float64, shape (n, k); 0 for users without a rating."""
    counts = np.diff(ratings.indptr)
    users = np.repeat(np.arange(counts.size), counts)
    columns = [np.bincount(users, one[ratings.items], counts.size) for one in embedding.T]
    return np.asarray(np.stack(columns, axis=1) / (counts + SHRINKAGE)[:, None])
