"""FedMF: what a user computes from their ratings, and how the server moves the item factors.

Symbols and equations are those of Yang et al., "Practical and Secure Federated Recommendation
with Personalized Masks" (FedMMF), sections 2.1 and 2.2, with what the paper leaves open or gets
wrong decided as follows: eq. 7 must step *against* the gradient; its λ counts once per rating,
as in eq. 4; and e_ui of eq. 6 is computed anew from the p_u that eq. 7 gave.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedmf import _fast
from fedmf.aggregate.vectors import Rows
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.errors import SettingError
from fedmf.models.federated import Raters
from fedmf.settings import Count, NotNegative, Positive, Settings

__all__ = ["NEUTRAL_PART", "WIDE", "FedMF"]

Floats = NDArray[np.float64]

NEUTRAL_PART = 0.625  # of the scale: 3.5 on 1 to 5, about where people's ratings average
WIDE = 10.0  # a spread that no ratings want


@dataclass(frozen=True, kw_only=True)
class FedMF(Settings):
    """The hyper-parameters of federated matrix factorisation, and its two steps.

    Parameters
    ----------
    k
        The number of latent factors, k ≥ 1.
    reg
        λ of eq. 2, per rating, reg ≥ 0.
    rate
        γ, the step of the server (and with ``update="paper"`` of the users), rate > 0.
    update
        ``"paper"``: p_u takes one gradient step (eq. 7), the server subtracts γ Σ_u η_ui.
        ``"ridge"``: p_u is the exact minimiser of the user's part of eq. 2, and the server
        divides the sum by the number n_i of the item's raters, so that γ does not depend on
        the size of the data. It converges in some forty rounds instead of some four hundred;
        it needs γ · |p_u|² < 2, and |p_u|² is about the mean rating after a neutral start.
    start
        ``"zero-mean"``: all factors from N(0, spread²). ``"neutral"``: around √(v/k), such
        that every first prediction is about v, a public constant at 5/8 of the scale.
    spread
        The standard deviation of the starting factors, spread > 0.
    biases
        Whether users and items have biases: r̂_ui = b_i + b_u + q_i · p_u. Then p_u is held as
        (1, p_u, b_u) and q_i as (b_i, q_i, 1), of k + 2 columns, of which the constants are
        never moved. b_u stays with the user as p_u does, b_i is summed as q_i is, and λ holds
        for both.
    min_raters
        Items with fewer raters in a cohort are not trained: the exact sum over an item with
        one rater *is* that user's gradient, which gives the rating away. 1 leaves no item out.
        **Where users drop out between the count and the sum, 3 does not prevent that**;
        docs/privacy.md has the number to take.
    """

    k: Count = 20
    reg: NotNegative = 0.12
    rate: Positive = 0.45
    update: Literal["paper", "ridge"] = "ridge"
    start: Literal["zero-mean", "neutral"] = "neutral"
    spread: Positive = 0.05
    biases: bool = False
    min_raters: Count = 3

    @property
    def width(self) -> int:
        """Numbers that a user sends per item: k, and one more with biases."""
        return self.k + self.biases

    @property
    def bears_clipping(self) -> bool:
        """True: a clipped gradient is a shorter step in the right direction."""
        return True

    @property
    def remedy(self) -> str:
        """Remedy if the factors grow beyond all bounds."""
        wide = "" if self.spread <= WIDE else f", or spread = {self.spread} too wide"
        return f"rate = {self.rate} is too high for these ratings{wide}; halve it"

    @property
    def needs_counts(self) -> bool:
        """True if the users must count the items' raters before the first sum."""
        return self.update == "ridge" or self.min_raters > 1

    @property
    def solves_users(self) -> bool:
        """True if p_u follows from Q alone, so that users can find it without a round."""
        return self.update == "ridge"

    def initial(self, ratings: Ratings, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw the starting factors P (n_users, k) and Q (n_items, k), biases being zero.

        Parameters
        ----------
        ratings
            Only their scale and the numbers of users and items matter. A scale whose neutral
            point is negative has no neutral start: then that is around zero, too.
        rng
            What the start is drawn with: the items' factors first, then the users'.

        Returns
        -------
        p, q
            With biases of k + 2 columns, laid out as the class says.
        """
        low, high = ratings.scale
        neutral = max(low + NEUTRAL_PART * (high - low), 0.0)
        centre = math.sqrt(neutral / self.k) if self.start == "neutral" else 0.0
        q = rng.normal(centre, self.spread, size=(ratings.n_items, self.k))
        p = rng.normal(centre, self.spread, size=(ratings.n_users, self.k))
        if not self.biases:
            return p, q
        return (
            np.pad(p, ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0))),
            np.pad(q, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1))),
        )

    def user_factors(self, q: Floats, p_u: Floats, values: Floats) -> Floats:
        """Return one user's new factors p_u.

        Parameters
        ----------
        q
            Shape (n_u, k): q_i of the items the user rated.
        p_u
            Shape (k,): the user's factors so far; returned as they are if n_u = 0.
        values
            Shape (n_u,): the ratings r_ui.
        """
        block = Block.of_one(np.arange(values.size, dtype=np.int32), values)
        return np.asarray(self.find_users(q, p_u[None], block)[0])

    def find_users(self, q: Floats, p: Floats, block: Block) -> Floats:
        """Return the new factors of a block's users; see `FederatedModel`.

        They take a step of eq. 7, or solve (QᵀQ + λ n_u I) p_u = Qᵀ r, where the gradient of
        eq. 2 with respect to p_u is zero. Where the numbers have grown beyond all bounds, p_u
        is NaN.
        """
        p = p.copy()
        fixed = int(self.biases)  # the leading 1 of p_u
        ratings = block.indptr, block.items, block.values
        if self.update == "paper":  # eq. 7 with its sign set right
            _fast.descend(*ratings, q, p, fixed, self.rate, self.reg)
            return p
        solved = _fast.solve(*ratings, q, p, fixed, self.reg)
        for u in np.flatnonzero(~solved):  # λ = 0 and fewer ratings than factors, or beyond
            row = slice(block.indptr[u], block.indptr[u + 1])
            rated = q[block.items[row]]
            rest = block.values[row] - rated[:, :fixed] @ p[u, :fixed]
            p[u, fixed:] = _shortest(rated[:, fixed:], rest)
        return p

    def local_step(
        self,
        q: Floats,
        p_u: Floats,
        items: NDArray[np.int32],
        values: Floats,
        trained: NDArray[np.bool_],
    ) -> tuple[Floats, Rows]:
        """Do one user's part of a round: `local_steps` of a block of one.

        Parameters
        ----------
        q
            Shape (m, k): all item factors, as downloaded from the server.
        p_u
            Shape (k,).
        items, values
            Shape (n_u,): what the user rated, and how.
        trained
            Shape (m,): whether the item has raters enough to be trained.
        """
        p, rows = self.local_steps(q, p_u[None], Block.of_one(items, values), trained)
        return p[0], rows

    def local_steps(
        self, q: Floats, p: Floats, block: Block, trained: NDArray[np.bool_]
    ) -> tuple[Floats, Rows]:
        """Do the users' part of a round (steps 2 and 3 of section 2.2.1).

        What they send is η_ui = λ q_i − e_ui p_u (eq. 6) in the rows of the rated items that
        are trained and zero in all others: m · k elements whatever a user rated. Parameters
        and returns are those of `FederatedModel`.
        """
        p = self.find_users(q, p, block)
        eta = np.empty((block.items.size, self.width))
        _fast.gradients(block.indptr, block.items, block.values, q, p, eta, self.reg)
        if not trained.all():
            eta[~trained[block.items]] = 0.0
        return p, Rows(block.items, eta, q.shape[0])

    def trained_items(self, raters: Raters | None, n_items: int) -> NDArray[np.bool_]:
        """Return which items have raters enough; all of them where nothing was counted.

        Parameters
        ----------
        raters
            Of each item, or None.
        n_items
            m, the shape of what is returned.
        """
        if raters is None:
            return np.ones(n_items, dtype=np.bool_)
        return raters.at_least(self.min_raters)

    def server_step(self, q: Floats, total: Floats, raters: Raters | None) -> Floats:
        """Do the server's part of a round (step 5): q_i ← q_i − γ Σ_u η_ui.

        Parameters
        ----------
        q
            The item factors.
        total
            Shape (m, width): the securely summed gradients Σ_u η_ui.
        raters
            Of each item; ``update="ridge"`` divides by them and needs them.

        Raises
        ------
        SettingError
            If it needs them and there are none.
        """
        step = self.rate * total
        if self.update == "ridge":
            if raters is None:
                raise SettingError(
                    "update = 'ridge' divides by the raters of each item: count them"
                )
            step /= raters.bound[:, None]
        moved = q.copy()
        moved[:, : self.width] -= step
        return moved


def _shortest(rated: Floats, rest: Floats) -> Floats:
    """Return the shortest least-squares solution, or NaN if there is none in floating point."""
    if np.isfinite(rated).all() and np.isfinite(rest).all():  # LAPACK prints what it refuses
        try:
            return np.asarray(np.linalg.lstsq(rated, rest)[0])
        except np.linalg.LinAlgError:
            pass
    return np.full(rated.shape[1], np.nan)
