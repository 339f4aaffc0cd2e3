"""Exact CF from secure sums: users send moments of x_u instead of gradients.

For y_i in eq. 9 (Ammad-ud-din et al. 2019) two sums are enough: Σ_u c_ui x_u x_uᵀ and
Σ_u c_ui p_ui x_u. As c = 1 for unrated items, the first sum has two parts. Σ_u x_u x_uᵀ is a
single table for all items; the item's raters add (c − 1) x_u x_uᵀ. So K(K+1)/2 + K numbers per
item and epoch replace K numbers in each of ten sums. The result equals the result of CF, up to
fixed-point rounding. The paper rules out eq. 9 for lack of the users' data, but sums of the
data are enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.aggregate import Aggregate
from fedmf.aggregate.vectors import Rows
from fedmf.data.blocks import Block
from fedmf.fcf.confidence import Confidence, packed_products, symmetric
from fedmf.fcf.federated import XY, FederatedRecommender, ImplicitTraining
from fedmf.models.federated import Raters
from fedmf.training.loop import LocalSteps

Floats = NDArray[np.float64]

BLOCK = 64  # users in a block; the moments of a block are computed at once


class FederatedCF(FederatedRecommender):
    """Alternating least squares on implicit feedback with one secure sum per epoch.

    With ``min_raters=1`` the result equals `CF` on all ratings. Once the x_u hardly change, the
    difference of two sums exposes a user who is in only one sum; see docs/privacy.md.

    Parameters
    ----------
    model, rounds, min_raters, dropout, seed, callbacks : see `FederatedRecommender`
    aggregation
        Sum of the users' moments; ``PlainSum(clip=256, fractional_bits=32)`` by default. With
        the default, numbers are rounded by at most 2^−33, and the sum of ten thousand users
        takes 55 bits.
    """

    def training(self, confidence: Confidence) -> ImplicitTraining[_Moments]:
        """Return the steps of users and server; see `FederatedRecommender`."""
        return _Alternating(self.model, confidence, self.seed)


class _Moments(LocalSteps):
    """Moments of the users' factors: the tables that users send."""

    def __init__(self, x: Floats, confidence: Confidence, *, weighed: bool) -> None:
        ratings, k = confidence.ratings, x.shape[1]
        width = k * (k + 1) // 2 + k + weighed
        super().__init__(ratings, (ratings.n_items + 1, width), BLOCK)
        self._x, self._confidence, self._weighed = x, confidence, weighed

    def rows(self, block: Block) -> Rows:
        return moments(self._x, self._confidence, block.users, weighed=self._weighed)


class _Alternating(ImplicitTraining[_Moments]):
    """Steps that solve for Y from the summed moments (eq. 9), and then for X."""

    clip_remedy = (
        "raise that, as in aggregation=SecAggSum(clip=4096, fractional_bits=32), or lower alpha"
    )

    def local_steps(self, state: XY, raters: Raters | None) -> _Moments:
        return _Moments(state.x, self.confidence, weighed=self.model.power > 0)

    def server_step(self, state: XY, steps: _Moments, total: Aggregate) -> XY:
        k = self.model.k
        n_products = k * (k + 1) // 2
        # the items' moments, then the moments of all users
        sums = self.of_all(total).reshape(steps.shape)
        normal = symmetric(sums[:-1, :n_products] + sums[-1, :n_products], k)
        penalty = self.model.penalty(sums[:-1, -1], self.ratings.n_users)
        normal += np.multiply.outer(penalty, np.eye(k))
        y = np.linalg.solve(normal, sums[:-1, n_products : n_products + k, None])[:, :, 0]
        return self.with_users(np.asarray(y))


def moments(
    x: Floats, confidence: Confidence, users: ArrayLike, *, weighed: bool = False
) -> Rows:
    """Return some users' summands of eq. 9, from X, shape (n_users, k), and the confidences.

    A user's table has m + 1 rows of k(k+1)/2 + k numbers. Row i < m is the upper triangle of
    (c − 1) x xᵀ, then c p x of item i. The last row is the upper triangle of x xᵀ, then zeros.
    If `weighed`, a last column has c − 1; the server computes the λ of each item from the sum.
    """
    numbers = np.asarray(users, dtype=np.int64)
    row, rated = confidence.of_users(numbers)
    mine = x[numbers]
    products = packed_products(mine)
    n_items = confidence.ratings.n_items
    n_products, k = products.shape[1], mine.shape[1]
    values = np.zeros((rated.size + numbers.size, n_products + k + weighed))
    of_items, of_all = values[: rated.size], values[rated.size :]
    of_items[:, :n_products] = confidence.excess[rated, None] * products[row]
    of_items[:, n_products : n_products + k] = confidence.weighted[rated, None] * mine[row]
    if weighed:
        of_items[:, -1] = confidence.excess[rated]
    of_all[:, :n_products] = products
    last = np.full(numbers.size, n_items, dtype=np.int32)
    return Rows(np.append(confidence.ratings.items[rated], last), values, n_items + 1)
