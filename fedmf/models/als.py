"""Exact federated ALS for explicit ratings: users send moments instead of gradients.

The model is alternating least squares on eq. 2 of the FedMMF paper, with λ per rating. This is
the weighted-λ method of Zhou et al. 2008, "Large-scale Parallel Collaborative Filtering for the
Netflix Prize", but λ|p − p₀|² and λ|q − q₀|² shrink to the neutral start. With P fixed, the
best q_i solves (Σ_u (p_u p_uᵀ + λ I)) q_i = Σ_u (r_ui p_u + λ q₀) over the raters u of item i.
Both sides are sums over users. So secure aggregation gives the server the exact step, with
k(k+1)/2 + k numbers per item. ALS takes some ten rounds; gradients take tens or hundreds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate.vectors import Rows
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.models.federated import Floats, Raters
from fedmf.models.mf import WIDE, FedMF
from fedmf.models.moments import lower, solved, symmetric, triangle
from fedmf.settings import Count, NotNegative, Positive, Settings


@dataclass(frozen=True, kw_only=True)
class FedALS(Settings):
    """Model for `fedmf.Trainer` that learns by exact federated alternating least squares.

    Moments reveal more than gradients: set `min_raters` to k (docs/privacy.md). The trainer
    raises SettingError if the aggregation clips a moment; a clip of 64 suits ratings up to 5.

    The defaults were chosen on ml-100k, on a fifth of the training part of splits 0 to 2: λ of
    .06 to .15 and spreads of .03 to .3, ten rounds. Together the three training parts have
    nearly all ratings, including the test ratings of any split.

    Parameters
    ----------
    k, mean, min_raters : see `FedMF`, with a neutral start
    reg : float, λ of eq. 2 per rating, > 0, well above the aggregation's 2^−fractional_bits
    spread : float, standard deviation of the starting factors; see ``start`` of `FedMF`, > 0
    """

    k: Count = 20
    reg: Positive = 0.135
    spread: Positive = 0.1
    mean: NotNegative | None = None
    min_raters: Count = 3

    solves_users: ClassVar[bool] = True
    bears_clipping: ClassVar[bool] = False  # clipped equations have another solution

    @cached_property
    def _users(self) -> FedMF:
        """FedMF with the same start and the same exact solution for p_u."""
        return FedMF().set_params(**self.get_params())

    @property
    def width(self) -> int:
        """Number of floats that a user sends per item, k (k + 1) / 2 + k."""
        return self.k * (self.k + 3) // 2

    @property
    def needs_counts(self) -> bool:
        """True if the users must count the items' raters before the first sum."""
        return self.min_raters > 1

    @property
    def needs_mean(self) -> bool:
        """True if the users must sum the mean rating first; see `FederatedModel`."""
        return self.mean is None

    def at_mean(self, mean: float) -> Self:
        """Return the model with that mean rating, on the internal scale."""
        return replace(self, mean=max(mean, 0.0))

    @property
    def remedy(self) -> str:
        """Remedy for the error message if the factors diverge."""
        wide = f", or spread = {self.spread} too wide: halve that" if self.spread > WIDE else ""
        return f"reg = {self.reg} is too low for these ratings; raise it{wide}"

    def initial(self, ratings: Ratings, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw the starting factors P (n_users, k) and Q (m, k), as `FedMF` does."""
        return self._users.initial(ratings, rng)

    def trained_items(self, raters: Raters | None, n_items: int) -> NDArray[np.bool_]:
        """Return the items with enough raters, as `FedMF` does."""
        return self._users.trained_items(raters, n_items)

    def find_users(self, q: Floats, p: Floats, block: Block) -> Floats:
        """Return the exact p_u of a block's users; see `FederatedModel`."""
        return self._users.find_users(q, p, block)

    def local_steps(
        self, q: Floats, p: Floats, block: Block, trained: NDArray[np.bool_]
    ) -> tuple[Floats, Rows]:
        """Do the users' part of a round; see `FederatedModel`.

        A row is the lower triangle of p_u p_uᵀ + λ I, row by row, and then r_ui p_u + λ q₀.
        """
        p = self.find_users(q, p, block)
        moments = lower(p) + self.reg * np.equal(*triangle(self.k))
        user = np.repeat(np.arange(block.users.size), block.counts)
        sent = np.empty((block.items.size, self.width))
        sent[:, : -self.k] = moments[user]
        sent[:, -self.k :] = block.values[:, None] * p[user] + self.reg * self._users.centre
        sent[~trained[block.items]] = 0.0
        return p, Rows(block.items, sent, q.shape[0])

    def server_step(self, q: Floats, total: Floats, raters: Raters | None) -> Floats:
        """Return the best Q for the users' P, given `total`, the sum of moments (m, width).

        Items without moments keep their factors. `raters` is unused, as the moments contain λ.
        Raises SettingError if λ is smaller than the rounding or noise of the moments.
        """
        seen = np.flatnonzero(total.any(axis=1))
        sums, k = total[seen], self.k
        moved = q.copy()
        moved[seen] = solved(symmetric(sums[:, :-k], k), sums[:, -k:], self.reg, self.reg)
        return moved
