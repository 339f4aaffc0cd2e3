"""`FederatedCF`: CF from secure sums of moments, of a block of factors at a time.

For y_i in eq. 9 (Ammad-ud-din et al. 2019) two sums are enough: Σ_u c_ui x_u x_uᵀ and
Σ_u c_ui p_ui x_u. As c = 1 for unrated items, the first sum has two parts. Σ_u x_u x_uᵀ is a
single table for all items; the item's raters add (c − 1) x_u x_uᵀ. The paper rules out eq. 9
for lack of the users' data, but sums of the data are enough.

A sum may be of b of the k factors alone (Rendle et al., "iALS++: speeding up matrix
factorization with subspace optimization", 2021). The server then minimises eq. 5 over these
coordinates of all y_i, a Newton step that needs b(b+1)/2 + b numbers per item: messages do not
grow with k². The users solve for the whole x_u after each sum, which costs no message. With
b = k a sum gives the Y of eq. 9, and the result equals the result of CF, up to fixed-point
rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated

import numpy as np

from fedmf.aggregate import Aggregate
from fedmf.aggregate.vectors import Rows
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.fcf.choice import EPOCHS, MOST, REGS, choose
from fedmf.fcf.confidence import Confidence, Implicit
from fedmf.fcf.federated import XY, FederatedRecommender, ImplicitTraining
from fedmf.models.federated import Raters
from fedmf.models.moments import lower, solved, symmetric
from fedmf.settings import BelowOne, Count, Has, Seed
from fedmf.training.history import RoundRecord
from fedmf.training.schedule import Callbacks, Summing
from fedmf.training.steps import LocalSteps

VIEWS: Mapping[str, float | int] = MappingProxyType({"clip": 256.0, "fractional_bits": 8})
"""Settings for short sums; the table `ranking-settings` has the accuracy at fewer bits."""
USERS = 64  # users in a block; the moments of a block are computed at once
SMALL = 2000  # items of a small catalogue
MANY, FEW = 32, 8  # factors in a sum of a small and of a larger catalogue


class FederatedCF(FederatedRecommender):
    """Alternating least squares on implicit feedback, by secure sums of moments.

    With ``min_raters=1`` and a block of all factors the result equals `CF` on all ratings. Once
    the x_u hardly change, the difference of two sums exposes a user who is in only one sum; see
    docs/privacy.md.

    Parameters
    ----------
    model, rounds, min_raters, dropout, seed, callbacks
        See `FederatedRecommender`. If λ is None, λ is chosen first; see `fedmf.fcf.choice`.
    aggregation
        Sum of the users' moments; ``PlainSum(clip=256, fractional_bits=32)`` by default, which
        is exact to seven digits. Sums with `VIEWS` are half as long and rank as well.
    block
        Number of factors in a sum, ≥ 1, at most k. A round, which updates all factors, has
        k / block sums, rounded up. None for 32 factors in a catalogue of up to 2,000 items, and
        for 8 in a larger one: a user then sends 561 or 45 numbers for each item. All of 64
        factors would be 2,145 numbers.

    Attributes
    ----------
    model_ : Factors, X and Y; ``model_.implicit.reg`` is λ
    history_ : History, a record of each sum, the sums of the choice first
    """

    def __init__(
        self,
        model: Annotated[Implicit, Has("confidence", "Implicit()")] | None = None,
        aggregation: Summing | None = None,
        *,
        rounds: Count = 20,
        min_raters: Count = 3,
        dropout: BelowOne = 0.0,
        seed: Seed = 0,
        callbacks: Callbacks = (),
        block: Count | None = None,
    ) -> None:
        super().__init__(
            model,
            aggregation,
            rounds=rounds,
            min_raters=min_raters,
            dropout=dropout,
            seed=seed,
            callbacks=callbacks,
        )
        self.block = block
        self.__post_init__()

    def at_once(self, n_items: int) -> int:
        """Return the number of factors in a sum for a catalogue of `n_items`."""
        return min(self.model.k, self.block or (MANY if n_items <= SMALL else FEW))

    def sums(self, n_items: int) -> int:
        """Return the number of sums of a training, also to choose λ, without the counts."""
        k, block = self.model.k, self.at_once(n_items)
        each, tried = -(-k // block), -(-min(k, MOST) // block)
        choice = 0 if self.model.reg else sum(EPOCHS) * tried + len(REGS)
        return choice + self.rounds * each

    def training(self, confidence: Confidence) -> ImplicitTraining[_Moments]:
        """Return the steps of users and server; see `FederatedRecommender`."""
        return _Alternating(self, confidence)

    def chosen(self, train: Ratings) -> tuple[FederatedRecommender, Sequence[RoundRecord]]:
        """Return the recommender with λ, and the records of the sums of the choice."""
        return (self, ()) if self.model.reg else choose(self, train)


class _Moments(LocalSteps):
    """Users' summands of a Newton step along the first b factors of each y_i, 1 ≤ b ≤ k.

    A user's table has rows of b(b+1)/2 + b + 1 numbers. With z the first b numbers of x, row
    i < m is the lower triangle of (c − 1) z zᵀ, then ((c − 1) x·y − c p) z, then c − 1, of item
    i. The server computes the λ of each item from the sum of the last. The rows from m on are
    the lower triangle of x xᵀ, x, and zeros, read as one vector.
    """

    def __init__(self, state: XY, confidence: Confidence, block: int) -> None:
        k, width = state.x.shape[1], block * (block + 1) // 2 + block + 1
        self._whole = -(-(k * (k + 1) // 2 + k) // width)
        m = confidence.ratings.n_items
        super().__init__(confidence.ratings, (m + self._whole, width), USERS)
        self._state, self._confidence, self._block = state, confidence, block

    def rows(self, block: Block) -> Rows:
        row, rated = self._confidence.of_users(block.users)
        mine, items = self._state.x[block.users], self.ratings.items[rated]
        excess = self._confidence.excess[rated, None]
        # summed row by row, so that a user's numbers are the same alone and in a block
        scores = (mine[row] * self._state.y[items]).sum(axis=1, keepdims=True)
        error = excess * scores - self._confidence.weighted[rated, None]
        part = mine[:, : self._block]
        own = np.hstack((excess * lower(part)[row], error * part[row], excess))
        n_rows, width = self.shape
        rest = np.zeros((len(mine), self._whole * width))
        whole = np.hstack((lower(mine), mine))
        rest[:, : whole.shape[1]] = whole
        last = np.arange(n_rows - self._whole, n_rows, dtype=np.int32)
        values = np.vstack((own, rest.reshape(-1, width)))
        return Rows(np.append(items, np.tile(last, len(mine))), values, n_rows)


class _Alternating(ImplicitTraining[_Moments]):
    """Steps that solve for a block of Y from the summed moments (eq. 9), and then for X."""

    clip_remedy = (
        "raise that, as in aggregation=SecAggSum(clip=16384, fractional_bits=12), or lower "
        "alpha"
    )

    def __init__(self, system: FederatedCF, confidence: Confidence) -> None:
        super().__init__(system.model, confidence, system.seed)
        self._block = system.at_once(self.ratings.n_items)

    def local_steps(self, state: XY, raters: Raters | None) -> _Moments:
        return _Moments(state, self.confidence, self._block)

    def server_step(self, state: XY, steps: _Moments, total: Aggregate) -> XY:
        (m, k), b = state.y.shape, self._block
        sums = self.of_all(total).reshape(steps.shape)
        products, towards = b * (b + 1) // 2, b * (b + 1) // 2 + b
        # after the items' moments, the products and the sum of all users' factors
        rest, n_whole = sums[m:].reshape(-1), k * (k + 1) // 2
        gram = symmetric(rest[:n_whole], k)
        # only of items with raters: the λ of all others may be less than the rounding
        rated = sums[:m, -1] > 0
        own, y = sums[:m][rated], np.where(rated[:, None], state.y, 0.0)
        penalty = self.model.penalty(own[:, -1])
        normal = symmetric(own[:, :products], b) + gram[:b, :b]
        normal += np.multiply.outer(penalty, np.eye(b))
        slope = own[:, products:towards] + y[rated] @ gram[:, :b]
        slope += penalty[:, None] * y[rated, :b]
        y[rated, :b] -= solved(normal, slope, self.model.reg or 0.0, penalty)
        centre = rest[n_whole : n_whole + k] / self.ratings.n_users * self.model.centred
        if b < k:  # the next sum is of the next factors, whose order has no meaning
            y, centre = np.roll(y, -b, axis=1), np.roll(centre, -b)
        return self.with_users(y, centre)
