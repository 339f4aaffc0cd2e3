"""Model of implicit feedback that CF, FCF and exact federated CF share.

Symbols and equations are from section 3 of the FCF paper (see `fedmf.fcf`), which follows Hu,
Koren and Volinsky 2008. Here Cᵘ has the size M × M and Cⁱ the size N × N; the paper exchanges
the two sizes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedmf.data import Ratings
from fedmf.data.checks import check_parts, check_ratings
from fedmf.errors import DataError, DataWarning, SettingError
from fedmf.models import Factors
from fedmf.models.additions import ImplicitSettings
from fedmf.settings import Count, Positive, Range, Seed, Settings, check

Floats = NDArray[np.float64]
Power = Annotated[float, Range(float, 0, 1)]

POPULAR = 1000.0
"""λ for which all x_u of a centred model are close to x̄, and items are ranked by popularity."""


class Rated(NamedTuple):
    """Confidences of rated pairs, row by row in CSR form; a row is a user, or an item.

    Parameters
    ----------
    indptr, columns : int arrays, the layout of ``indptr`` and ``items`` of `Ratings`
    excess, weighted : shape (n_ratings,), c − 1 and c · p, as in `Confidence`
    """

    indptr: NDArray[np.int64]
    columns: NDArray[np.integer]
    excess: Floats
    weighted: Floats

    @property
    def sums(self) -> Floats:
        """Σ (c − 1) of each row, shape (rows,)."""
        rows = np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))
        return np.asarray(np.bincount(rows, self.excess, self.indptr.size - 1), np.float64)


def views(ratings: Ratings) -> Ratings:
    """Return the ratings as views: every value becomes 1 (section 5.2).

    A rating of 0 on a scale that starts at 0, such as the label of an item that was shown and
    not clicked, is no view: it is left out, with a warning. A rating below 0, such as −1 for a
    dislike, is a view, with a warning. Users, items, order and times stay.

    Warns
    -----
    DataWarning
        If a rating is 0 on a scale from 0, or below 0.

    Raises
    ------
    SettingError
        If the argument is not `Ratings`.
    DataError
        If every rating is left out.
    """
    check_ratings(ratings=ratings)
    unseen = (ratings.values == 0) & (ratings.scale[0] == 0)
    if unseen.any():
        if unseen.all():
            raise DataError(
                f"{ratings.name} has no view, as every rating is 0: give ratings above 0 for "
                "what was viewed"
            )
        warnings.warn(
            f"{ratings.name}: {np.count_nonzero(unseen)} of {unseen.size} ratings are 0, which "
            "is no view, and are left out: remove them from the data, or give a view a rating "
            "above 0",
            DataWarning,
            stacklevel=2,
        )
        ratings = ratings.take(~unseen)
    disliked = np.count_nonzero(ratings.values < 0)
    if disliked:
        warnings.warn(
            f"{ratings.name}: {disliked} of {ratings.n_ratings} ratings are below 0, as −1 for "
            "a dislike is, and count as views all the same: leave them out, or give them 0 on "
            "a scale from 0",
            DataWarning,
            stacklevel=2,
        )
    return replace(ratings, values=np.ones(ratings.n_ratings), scale=(0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Confidence:
    """Preferences p_ui (eq. 3) of ratings, and their confidences c_ui (eq. 4).

    Parameters
    ----------
    excess, weighted
        Shape (n_ratings,): c_ui − 1 = α r_ui and c_ui p_ui of each rating, in the order of the
        ratings. For a pair without a rating both are 0, as p = 0 and c = 1.
    ratings : the ratings
    """

    excess: Floats
    weighted: Floats
    ratings: Ratings

    def of_users(self, users: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return indices into `users` and into the ratings, one pair for each of their ratings.

        Both are int64 arrays, in any order.
        """
        first = self.ratings.indptr[users]
        counts = self.ratings.indptr[users + 1] - first
        row = np.repeat(np.arange(users.size), counts)
        within = np.arange(row.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return row, first[row] + within

    @property
    def by_users(self) -> Rated:
        """Confidences with a row for each user."""
        return Rated(self.ratings.indptr, self.ratings.items, self.excess, self.weighted)

    @property
    def by_items(self) -> Rated:
        """Confidences with a row for each item."""
        ratings = self.ratings
        order = np.argsort(ratings.items, kind="stable")
        counts = np.bincount(ratings.items, minlength=ratings.n_items)
        indptr = np.append(0, np.cumsum(counts))
        return Rated(indptr, ratings.users[order], self.excess[order], self.weighted[order])


@dataclass(frozen=True, kw_only=True)
class Implicit(Settings):
    """Hyper-parameters of a factorisation of implicit feedback.

    Parameters
    ----------
    k : int, K, number of latent factors, ≥ 1
    alpha
        α of eq. 4, > 0: a rating r has the confidence 1 + α r. For counts take logarithms, or
        an α such that α times the largest count is 10 to 50. For `FCF` with the default
        aggregation, α r should not exceed about 5.
    reg
        λ of eq. 5, per user and per item, not per rating as in FedMF, > 0. None: `FederatedCF`
        chooses λ on a part of the training ratings; see `fedmf.fcf.choice`.
    spread
        Standard deviation of the starting item factors around 0, > 0. The paper gives no value.
    power
        ν in [0, 1]. The λ of a user or item is λ (1 + α Σ r)^ν, with the sum of that user's or
        item's ratings (after Rendle et al., "Revisiting the performance of iALS", RecSys 2022,
        who add α₀ times the number of all items or users in place of 1: λ then hardly differs
        between users, if ratings are few). The paper has ν = 0; `FCF` takes no other ν.
    centred
        True for λ|x − x̄|² in place of λ|x|², where x̄ is the mean of the last X. A user without
        ratings then has x̄, which ranks items almost by popularity, in place of 0. `FCF` takes
        False alone.
    """

    k: Count = 4
    alpha: Positive = 1.0
    reg: Positive | None = 1.0
    spread: Positive = 0.1
    power: Power = 0.0
    centred: bool = False

    def start(self, ratings: Ratings, seed: int) -> Floats:
        """Draw the starting item factors Y, float64 (n_items, k); X follows from Y by eq. 7.

        Raises SettingError if the seed is not an integer of at least 0.
        """
        check(Seed, seed=seed)
        rng = np.random.default_rng(seed)
        return rng.normal(scale=self.spread, size=(ratings.n_items, self.k))

    def confidence(self, ratings: Ratings) -> Confidence:
        """Return preferences and confidences (eq. 3 and 4); a rating of 0 counts as unrated.

        Raises DataError if a rating is negative, or there is no rating. Raises SettingError if
        `ratings` is not `Ratings`, but for example a `Split`.
        """
        check_parts(ratings)
        if ratings.values.min() < 0:
            raise DataError(
                f"{ratings.name}: the rating {ratings.values.min():g} has no confidence: pass "
                "implicit ratings of at least 0, such as views(ratings)"
            )
        return self.weigh(ratings)

    def weigh(self, ratings: Ratings) -> Confidence:
        """Return the result of `confidence`, for validated ratings or for no ratings."""
        excess = self.alpha * ratings.values
        return Confidence(excess, (1.0 + excess) * (ratings.values > 0), ratings)

    def penalty(self, excess: Floats) -> Floats:
        """Return λ (1 + Σ (c − 1))^ν of each user or item, given Σ (c − 1), shape (rows,).

        Raises SettingError if λ is not chosen yet.
        """
        if self.reg is None:
            raise SettingError("reg = None is for the fit of a FederatedCF: pass a number")
        return np.asarray(self.reg * (1 + excess) ** self.power)

    def factors(self, x: Floats, y: Floats, centre: Floats, ratings: Ratings) -> Factors:
        """Return X and Y as factors that rank, with the settings for `Factors.fold_in`."""
        settings = ImplicitSettings(self.reg or 0.0, self.alpha, self.power)
        return Factors.of(x, y, ratings, ranks=True, implicit=settings, centre=centre)


def tuned(k: int = 64) -> Implicit:
    """Return the settings of ``fedmf train --model implicit``, for ten epochs of `FederatedCF`.

    α = 5 and ν = .5 were chosen on validation ratings of ml-1m, 60/20/20 for each user. λ is
    chosen in each training.
    """
    return Implicit(k=k, alpha=5.0, reg=None, power=0.5, centred=True)


def solve(fixed: Floats, rated: Rated, reg: ArrayLike, centre: ArrayLike = 0.0) -> Floats:
    """Return the exact X for a fixed Y (eq. 7), or for confidences by items Y for X (eq. 9).

    x = (Σ_i c_i y_i y_iᵀ + λI)⁻¹ (Σ_i c_i p_i y_i + λ x̄) for each row. YᵀY, the sum over *all*
    columns, is computed once; each row adds (c − 1) y yᵀ of the row's ratings (Hu et al.,
    section 4). A row without ratings becomes x̄.

    Parameters
    ----------
    fixed : the fixed factors Y, shape (columns, k)
    rated : confidences, with a row for each row of X
    reg : float, λ > 0, or a λ for each row, so that there always is a solution
    centre : x̄, shape (k,); 0 for none
    """
    indptr, columns, excess, weighted = rated
    n, whole, eye = indptr.size - 1, fixed.T @ fixed, np.eye(fixed.shape[1])
    penalty = np.broadcast_to(reg, n)
    found = np.empty((n, fixed.shape[1]))
    found[:] = centre
    # row by row, and not in blocks: of long rows only few numbers fit into the cache
    for row in np.flatnonzero(np.diff(indptr)):
        own = slice(indptr[row], indptr[row + 1])
        y = fixed[columns[own]]
        normal = whole + (y.T * excess[own]) @ y + penalty[row] * eye
        found[row] = np.linalg.solve(normal, weighted[own] @ y + penalty[row] * found[row])
    return found
