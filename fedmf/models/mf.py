"""FedMF, federated matrix factorisation: the local step of a user and the step of the server.

Symbols and equations follow Yang et al., "Practical and Secure Federated Recommendation with
Personalized Masks" (FedMMF), sections 2.1 and 2.2. Three points differ or are open there. Here
eq. 7 is a step *against* the gradient. The λ of eq. 7 counts once per rating, as in eq. 4. And
e_ui of eq. 6 is computed from the new p_u, the result of eq. 7.

Presets are named hyper-parameters and numbers of rounds that work well.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from fedmf import _fast
from fedmf.aggregate.vectors import Rows
from fedmf.data import Ratings
from fedmf.data.blocks import Block
from fedmf.data.internal import INTERNAL
from fedmf.errors import SettingError
from fedmf.models.federated import Floats, Raters
from fedmf.settings import Count, NotNegative, Positive, Settings

NEUTRAL_PART = 0.625  # part of the scale: 3.5 on 1 to 5, about the mean of real ratings
NEUTRAL = INTERNAL[0] + NEUTRAL_PART * (INTERNAL[1] - INTERNAL[0])  # on the internal scale
WIDE = 10.0  # a spread too wide for any ratings


@dataclass(frozen=True, kw_only=True)
class FedMF(Settings):
    """Model for `fedmf.Trainer` that learns by federated matrix factorisation.

    Parameters
    ----------
    k : int, number of latent factors, ≥ 1
    reg : float, λ of eq. 2 per rating, ≥ 0
    rate : float, γ, learning rate of the server, with ``update="paper"`` also of the users, > 0
    update
        ``"paper"``: p_u takes one gradient step (eq. 7), the server subtracts γ Σ_u η_ui.
        ``"ridge"``: p_u is the exact minimiser of the user's part of eq. 2. The server divides
        the sum by the number n_i of the item's raters, so γ does not depend on the data size.
        "ridge" converges in some forty rounds, "paper" in some four hundred. "ridge" needs
        γ · |p_u|² < 2; after a neutral start |p_u|² is about the mean rating.
    start
        ``"zero-mean"``: factors are drawn from N(0, spread²), and λ shrinks them to 0.
        ``"neutral"``: factors are drawn around p₀ = q₀ = √(mean/k) · (1, …, 1), so that the
        first predictions are about `mean`. The penalties are λ|p − p₀|² and λ|q − q₀|².
    mean
        Rating on the internal scale 1 to 5, ≥ 0: the first prediction of a neutral start, and
        the target of the shrinkage. None lets the trainer sum the mean rating securely before
        the first round; without a trainer None stands for 3.5.
    spread : float, standard deviation of the starting factors, > 0
    biases
        True for r̂_ui = b_i + b_u + q_i · p_u. Then p_u is stored as (1, p_u, b_u) and q_i as
        (b_i, q_i, 1), in k + 2 columns. b_u stays with the user, b_i is summed like q_i, and λ
        shrinks both to 0.
    min_raters
        Least number of raters of a trained item in a cohort, ≥ 1. Items with fewer raters are
        not trained, as a sum over one rater is that user's gradient. **3 is not enough if users
        drop out between the count and the sum**; docs/privacy.md has the number to take.
    """

    k: Count = 20
    reg: NotNegative = 0.12
    rate: Positive = 0.45
    update: Literal["paper", "ridge"] = "ridge"
    start: Literal["zero-mean", "neutral"] = "neutral"
    mean: NotNegative | None = None
    spread: Positive = 0.05
    biases: bool = False
    min_raters: Count = 3

    # a clipped gradient is a shorter step, not a wrong step
    bears_clipping: ClassVar[bool] = True

    @property
    def width(self) -> int:
        """Number of floats that a user sends per item: k, or k + 1 with biases."""
        return self.k + self.biases

    @property
    def remedy(self) -> str:
        """Remedy for the error message if the factors diverge."""
        wide = "" if self.spread <= WIDE else f", or spread = {self.spread} too wide"
        return f"rate = {self.rate} is too high for these ratings{wide}; halve it"

    @property
    def needs_counts(self) -> bool:
        """True if the users must count the items' raters first; see `FederatedModel`."""
        return self.update == "ridge" or self.min_raters > 1

    @property
    def needs_mean(self) -> bool:
        """True if the users must sum the mean rating first; see `FederatedModel`."""
        return self.start == "neutral" and self.mean is None

    @property
    def solves_users(self) -> bool:
        """True if users compute p_u from Q and their ratings alone; see `FederatedModel`."""
        return self.update == "ridge"

    @property
    def centre(self) -> Floats:
        """Centre of the shrinkage of the rows of P and Q, shape (columns,); zero in biases."""
        return np.pad(np.full(self.k, self._height), int(self.biases))

    @property
    def _height(self) -> float:
        """Element of p₀ and q₀."""
        mean = NEUTRAL if self.mean is None else self.mean
        return math.sqrt(mean / self.k) if self.start == "neutral" else 0.0

    def at_mean(self, mean: float) -> Self:
        """Return the model with that mean rating, on the internal scale."""
        return replace(self, mean=max(mean, 0.0))

    def initial(self, ratings: Ratings, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw P (n_users, k) and Q (n_items, k), Q first; biases start at zero.

        The result depends on `mean` and the numbers of users and items, not on ratings.
        """
        q = rng.normal(self._height, self.spread, size=(ratings.n_items, self.k))
        p = rng.normal(self._height, self.spread, size=(ratings.n_users, self.k))
        if not self.biases:
            return p, q
        return (
            np.pad(p, ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0))),
            np.pad(q, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1))),
        )

    def find_users(self, q: Floats, p: Floats, block: Block) -> Floats:
        """Return the new factors of a block's users; see `FederatedModel`.

        With ``update="paper"`` users take a step of eq. 7. With ``"ridge"`` users solve
        (QᵀQ + λ n_u I) p_u = Qᵀ r + λ n_u p₀. At the solution the gradient of eq. 2 by p_u is
        zero. A diverged p_u is NaN.
        """
        p = p.copy()
        fixed = int(self.biases)  # the leading 1 of p_u
        ratings, centre = (block.indptr, block.items, block.values), self.centre
        if self.update == "paper":  # eq. 7 with the sign set right
            _fast.descend(*ratings, q, p, fixed, self.rate, self.reg)
            if centre.any():
                p += (self.rate * self.reg * block.counts)[:, None] * centre
            return p
        solved = _fast.solve(*ratings, q, p, fixed, self.reg, centre)
        for u in np.flatnonzero(~solved):  # λ = 0 and fewer ratings than factors, or overflow
            row = slice(block.indptr[u], block.indptr[u + 1])
            rated = q[block.items[row]]
            # `centre` is 0 in the fixed columns, so no column counts twice
            expected = rated[:, :fixed] @ p[u, :fixed] + rated @ centre
            p[u, fixed:] = centre[fixed:]
            p[u, fixed:] += _shortest(rated[:, fixed:], block.values[row] - expected)
        return p

    def local_steps(
        self, q: Floats, p: Floats, block: Block, trained: NDArray[np.bool_]
    ) -> tuple[Floats, Rows]:
        """Do the users' part of a round (steps 2 and 3 of section 2.2.1); see `FederatedModel`.

        A user's message has m · k elements: η_ui = λ (q_i − q₀) − e_ui p_u (eq. 6) in the rows
        of trained items that the user rated, and zero in all other rows.
        """
        p = self.find_users(q, p, block)
        eta, ratings = np.empty((block.items.size, self.width)), (block.items, block.values)
        _fast.gradients(block.indptr, *ratings, q, p, eta, self.reg, self.centre)
        if not trained.all():
            eta[~trained[block.items]] = 0.0
        return p, Rows(block.items, eta, q.shape[0])

    def trained_items(self, raters: Raters | None, n_items: int) -> NDArray[np.bool_]:
        """Return True for items with enough raters, or for all if `raters` is None."""
        if raters is None:
            return np.ones(n_items, dtype=np.bool_)
        return raters.at_least(self.min_raters)

    def server_step(self, q: Floats, total: Floats, raters: Raters | None) -> Floats:
        """Do the server's part of a round: q_i ← q_i − γ Σ_u η_ui (step 5).

        Raises SettingError if ``update="ridge"`` has no raters to divide by.
        """
        step = self.rate * total
        if self.update == "ridge":
            if raters is None:
                raise SettingError(
                    "update = 'ridge' divides by the raters of each item: pass their counts"
                )
            step /= raters.bound[:, None]
        moved = q.copy()
        moved[:, : self.width] -= step
        return moved


def neutral(ratings: Ratings) -> float:
    """Return the public constant for an unknown rating: 3.5 on 1 to 5, 5/8 up any scale."""
    low, high = ratings.scale
    return low + NEUTRAL_PART * (high - low)


def _shortest(rated: Floats, rest: Floats) -> Floats:
    """Return the least-squares solution of least norm, or NaN if no solution is computable."""
    # not left to LAPACK, which prints errors on infinite numbers
    if np.isfinite(rated).all() and np.isfinite(rest).all():
        try:
            return np.asarray(np.linalg.lstsq(rated, rest)[0])
        except np.linalg.LinAlgError:
            pass
    return np.full(rated.shape[1], np.nan)


@dataclass(frozen=True)
class Preset:
    """Model with hyper-parameters, number of rounds, and a line about the preset for help."""

    model: FedMF
    rounds: int
    about: str


_FOUND = {
    "fast": Preset(
        FedMF(), 36, "exact local solves and normalised steps: few rounds, for secure sums"
    ),
    "large": Preset(
        FedMF(reg=0.08, rate=0.5), 90, "as fast, for a million ratings: weaker regularisation"
    ),
    "paper": Preset(
        FedMF(
            k=10,
            reg=0.05,
            rate=0.001,
            update="paper",
            start="zero-mean",
            spread=0.3,
            min_raters=1,
        ),
        450,
        "reproduces the FedMF row of the FedMMF paper on ml-100k; leaves no item out",
    ),
}


class _Presets(Mapping[str, Preset]):
    """Mapping of names to presets; a look-up returns a copy, which the caller may change."""

    def __getitem__(self, name: str) -> Preset:
        return replace(_FOUND[name], model=copy.copy(_FOUND[name].model))

    def __iter__(self) -> Iterator[str]:
        return iter(_FOUND)

    def __len__(self) -> int:
        return len(_FOUND)

    def __repr__(self) -> str:
        return repr(_FOUND)


PRESETS = _Presets()
"""Presets by name, chosen on validation parts of training ratings; each look-up is a copy.

On ml-100k the test ratings of seed 0 were never used for the choice; four fifths of the test
ratings of any other split were. ``paper`` was not chosen by validation. That preset reproduces
the RMSE of the paper's FedMF; the paper names no hyper-parameters. The steps of ``paper`` are
not divided by the raters, so the rate suits data of that size alone. ``large`` was chosen in
the same way as ``fast``, on ml-1m: a fifth of the training part of split 0, k = 20, λ of .05 to
.09, γ of .45 and .5, up to 90 rounds. The settings were chosen with shrinkage to zero and from
a start at 3.5, before `FedMF` had a mean, and were kept.
"""


def preset(name: str) -> Preset:
    """Return a copy of the named preset; raises SettingError for an unknown name."""
    if name not in PRESETS:
        raise SettingError(f"preset {name!r} is unknown: choose from {', '.join(PRESETS)}")
    return PRESETS[name]
