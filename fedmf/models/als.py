"""Exact federated ALS for explicit ratings: users sum moments where FedMF sums gradients.

Alternating least squares on eq. 2 of the FedMMF paper, its λ once per rating (weighted-λ, Zhou
et al. 2008, "Large-scale Parallel Collaborative Filtering for the Netflix Prize"). With P held
fixed, the best q_i solves (Σ_u (p_u p_uᵀ + λ I)) q_i = Σ_u r_ui p_u over its raters u. Both
sides are sums over users, so secure aggregation gives the server the exact step, in
k (k + 1) / 2 + k numbers per item. It takes some ten rounds where gradients take tens or
hundreds.

Where users drop out of a round, the step is that of those who stayed. A sum of moments tells
more of few raters than a sum of gradients: take a `min_raters` of k (docs/privacy.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate.vectors import Rows
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.errors import SettingError
from fedmf.models.federated import Raters
from fedmf.models.mf import WIDE, FedMF
from fedmf.settings import Count, Positive, Settings

__all__ = ["FedALS"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class FedALS(Settings):
    """The hyper-parameters of exact federated ALS, and its two steps.

    A clipped moment is a wrong one, which the trainer refuses. Ratings up to 5 were
    seen to give elements up to 10; a clip of 64 in the aggregation leaves room, and takes a
    larger modulus by itself where there are many users. λ must be well above the
    aggregation's resolution, 2^-16 by default, or rounding takes it away; that is refused, too.

    The defaults were chosen on ml-100k, on a fifth of the training part of splits 0 to 2: λ of
    .06 to .15 and spreads of .03 to .3, ten rounds. Together the three training parts hold
    nearly all ratings, those included that any split tests by.

    Parameters
    ----------
    k
        The number of latent factors, k ≥ 1.
    reg
        λ of eq. 2, per rating, reg > 0.
    spread
        The standard deviation of the starting factors around the neutral start of `FedMF`,
        spread > 0.
    min_raters
        Items with fewer raters in a cohort than this are left out, as of `FedMF`.
    """

    k: Count = 20
    reg: Positive = 0.135
    spread: Positive = 0.1
    min_raters: Count = 3

    @cached_property
    def _users(self) -> FedMF:
        """The exact local solution and the start, which are FedMF's."""
        return FedMF(k=self.k, reg=self.reg, spread=self.spread, min_raters=self.min_raters)

    @property
    def width(self) -> int:
        """Numbers that a user sends per item: k (k + 1) / 2 + k."""
        return self.k * (self.k + 3) // 2

    @property
    def needs_counts(self) -> bool:
        """True if the users must count the items' raters before the first sum."""
        return self.min_raters > 1

    @property
    def solves_users(self) -> bool:
        """True: p_u follows from Q alone."""
        return True

    @property
    def bears_clipping(self) -> bool:
        """False: what solves clipped equations is no solution."""
        return False

    @property
    def remedy(self) -> str:
        """Remedy if the factors grow beyond all bounds."""
        wide = (
            "" if self.spread <= WIDE else f", or spread = {self.spread} too wide: halve that"
        )
        return f"reg = {self.reg} is too low for these ratings; raise it{wide}"

    def initial(self, ratings: Ratings, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw the starting factors P (n_users, k) and Q (m, k), as `FedMF` does."""
        return self._users.initial(ratings, rng)

    def trained_items(self, raters: Raters | None, n_items: int) -> NDArray[np.bool_]:
        """Return which items have raters enough, as `FedMF` does."""
        return self._users.trained_items(raters, n_items)

    def find_users(self, q: Floats, p: Floats, block: Block) -> Floats:
        """Return the exact p_u of a block's users; see `FederatedModel`."""
        return self._users.find_users(q, p, block)

    def local_steps(
        self, q: Floats, p: Floats, block: Block, trained: NDArray[np.bool_]
    ) -> tuple[Floats, Rows]:
        """Do the users' part of a round; see `FederatedModel`.

        A row is the lower triangle of p_u p_uᵀ + λ I, row by row, and then r_ui p_u.
        """
        p = self.find_users(q, p, block)
        a, b = np.tril_indices(self.k)
        moments = p[:, a] * p[:, b] + self.reg * (a == b)
        user = np.repeat(np.arange(block.users.size), block.counts)
        sent = np.empty((block.items.size, self.width))
        sent[:, : a.size] = moments[user]
        sent[:, a.size :] = block.values[:, None] * p[user]
        sent[~trained[block.items]] = 0.0
        return p, Rows(block.items, sent, q.shape[0])

    def server_step(self, q: Floats, total: Floats, raters: Raters | None) -> Floats:
        """Return the best Q for the P behind the moments; items that nobody sent keep theirs.

        Parameters
        ----------
        q
            Shape (m, k).
        total
            Shape (m, width): the summed moments.
        raters
            Not needed: λ comes with the moments.

        Raises
        ------
        SettingError
            If the moments were rounded such that λ is lost.
        """
        a, b = np.tril_indices(self.k)
        seen = np.flatnonzero(total.any(axis=1))
        normal = np.empty((seen.size, self.k, self.k))
        normal[:, a, b] = normal[:, b, a] = total[seen, : a.size]
        moved = q.copy()
        try:
            # Of exact sums Σ (p pᵀ + λ I) no eigenvalue is below λ: half of it must be left
            np.linalg.cholesky(normal - self.reg / 2 * np.eye(self.k))
            moved[seen] = np.linalg.solve(normal, total[seen, a.size :, None])[:, :, 0]
        except np.linalg.LinAlgError as error:
            raise SettingError(
                f"reg = {self.reg} is lost where the moments are rounded or noisy: raise it, "
                "or the aggregation's fractional_bits if it has any"
            ) from error
        return moved
