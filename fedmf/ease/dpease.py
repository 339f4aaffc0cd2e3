"""`DPEase`, the estimator: settings, two noised secure sums, and the server's step."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter
from types import MappingProxyType
from typing import Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate import Aggregate, NoisySum
from fedmf.aggregate.aggregation import IntegerSum
from fedmf.aggregate.noisy import check_honest
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.data import Ratings
from fedmf.data.checks import check_parts
from fedmf.ease import shallow
from fedmf.ease.weights import ItemWeights
from fedmf.errors import SettingError
from fedmf.models.dp import noise_multiplier
from fedmf.models.estimator import not_continued
from fedmf.models.recommender import all_users
from fedmf.settings import BelowOne, Count, Positive, ProperFraction, Seed, UpToOne, part_of
from fedmf.training.history import History, RoundRecord
from fedmf.training.loop import record_of
from fedmf.training.schedule import Draw, Scheduled, Summing

Floats = NDArray[np.float64]

# Chosen on validation ratings of ml-1m, which user_split(·, 0.25, 2000) takes from the training
# part of user_split(views, 0.2, 1000), at ε = 8, 2 and 1, with one or two draws each.
# Tried: ITEMS .02, .05, .1, .2 and REG .25, .5, 1, 2, 4; EXACT_REG from 100 to 3200.
ITEMS = 0.05
"""Part of the squared norm, and so of ρ, for a user's message for the choice of items."""
REG = 1.0
"""λ in units of σ√m, half the largest eigenvalue of the noise: a function of public numbers."""
EXACT_REG = 1200.0
Where = Literal["central", "distributed"]


class DPEase(Scheduled):
    """EASE from noised secure sums, (ε, δ)-differentially private for whole users.

    See `fedmf.ease`. A user sends two messages. The first has a number for each item, and from
    the sum the server chooses the items to keep. The second has m (m + 1) / 2 numbers for the m
    kept items. Both messages together have an L2 norm of at most 1. The sums have noise for the
    same σ. λ depends on σ, m and the number of users in the sum alone. So the sums, and all
    numbers computed from the sums, cost (ε, δ). If all items are kept, the first sum is left
    out, and the second sum has the whole norm.

    Neighbouring data differ by adding or removing all ratings of a user, who takes part in
    either case. The ids of users and items are public. Ratings count as views, whatever their
    values. Never publish the rated items of a saved model; see docs/privacy.md.

    Parameters
    ----------
    epsilon
        ε > 0, of both sums together. None for exact sums, and only together with
        `reveals_profiles_to_peeling`.
    delta : float, δ, 0 < δ < 1, well below 1 / n_users
    items
        Number m of kept items, ≥ 1: the items with the largest noised sums. The more noise, the
        fewer items are best: 500 on ml-1m at ε = 2.
    reg
        λ > 0. None for √m times `sigma_` with noise, in units of the norm bound, and 1200
        without. A value that was chosen on the users' ratings is not covered by ε.
    aggregation
        Sum of integers, `PlainSum()` by default, or `SecAggSum`, `OneShotSum`, `PaillierSum`.
        The clip must leave room for the noise.
    where
        ``"distributed"``: each user adds a share of the noise before sending, so that under
        secure aggregation no party knows the exact sum. ``"central"``: a trusted party that
        knows the exact sum adds the noise. The accuracy is the same. Simulations of many users
        need "central": shares of 6,040 users for 1,000 items are 3 · 10⁹ draws, minutes.
    honest
        With "distributed": share of the users, in (0, 1], that adds enough noise alone; see
        `fedmf.aggregate.NoisySum`.
    reveals_profiles_to_peeling
        True with ``epsilon=None`` alone: users then send exact zeros and ones, and
        `fedmf.attacks.peeled` finds the whole profiles of 93 % of ml-100k's users.
    seed, dropout : see `Schedule`; the seed decides about dropouts alone
    entropy : see `fedmf.aggregate.NoisySum`

    Attributes
    ----------
    model_ : ItemWeights, the trained model
    gram_ : the released sum as a symmetric table, float64, shape (m, m)
    sigma_
        Standard deviation of the noise in a cell of `gram_`: 0 without noise, and above σ if
        more users stayed than `honest` requires. The number of these users is public.
    history_ : History, a record of each sum, without errors
    """

    model_: ItemWeights
    gram_: Floats
    sigma_: float
    model = "DPEase"
    _former = MappingProxyType({"weights_": "model_"})

    def __init__(
        self,
        aggregation: Summing | None = None,
        *,
        epsilon: Positive | None = 8.0,
        delta: ProperFraction = 1e-5,
        items: Count = 1000,
        reg: Positive | None = None,
        where: Where = "distributed",
        honest: UpToOne = 1.0,
        reveals_profiles_to_peeling: bool = False,
        seed: Seed = 0,
        dropout: BelowOne = 0.0,
        entropy: Callable[[int], bytes] = os.urandom,
    ) -> None:
        super().__init__(aggregation, seed=seed, dropout=dropout)
        self.epsilon, self.delta, self.items, self.reg = epsilon, delta, items, reg
        self.where, self.honest, self.entropy = where, honest, entropy
        self.reveals_profiles_to_peeling = reveals_profiles_to_peeling
        self.__post_init__()

    def _check(self) -> None:
        if self.epsilon is None and not self.reveals_profiles_to_peeling:
            raise SettingError(
                "epsilon = None has no noise, and fedmf.attacks.peeled reads most users' "
                "profiles from the exact sum: give an epsilon such as 8, or allow that by "
                "reveals_profiles_to_peeling=True"
            )
        if self.epsilon is not None and self.reveals_profiles_to_peeling:
            raise SettingError(
                f"epsilon = {self.epsilon!r} hides profiles, and reveals_profiles_to_peeling = "
                "True allows no noise: omit one of them"
            )
        if not isinstance(self.aggregation, IntegerSum):
            raise SettingError(
                f"aggregation = {self.aggregation!r} must sum integers, such as PlainSum() or "
                "SecAggSum()"
            )
        check_honest(self.honest, self.where)

    def fit(self, train: Ratings, test: Ratings | None = None, *, start: None = None) -> Self:
        """Learn B from the rated items; a KeyboardInterrupt leaves nothing fitted.

        Parameters
        ----------
        train : ratings of all users
        test : not used, since no error is recorded
        start : None, as `DPEase` does not continue a training

        Raises
        ------
        SettingError
            If `train` is of another type or of fewer than 3 users, or the aggregation does
            not suit the noise.
        DataError
            If there is no rating.
        RoundAborted
            If too few users are left for a sum.
        MissingExtra
            If dp-accounting is not installed.
        """
        self._forget()
        not_continued(self, start)
        self._check()  # again, as attributes can be set: no exact sum by mistake
        check_parts(train)
        self.schedule.size(train.n_users)
        sigma = None if self.epsilon is None else noise_multiplier(self.epsilon, self.delta, 1)
        summing, records = self._summing(sigma), list[RoundRecord]()
        everyone = np.arange(train.n_users)

        def summed(vectors: Vectors) -> Floats:
            """Return the sum over the users who do not drop out, and record the sum."""
            number, start = len(records) + 1, perf_counter()
            total = summing(
                vectors,
                dropouts=self.schedule.dropouts(Draw.DROPOUTS, number, everyone),
                session=f"fedmf ease {number}".encode(),
            )
            seconds = perf_counter() - start
            records.append(record_of(number, train.n_users, total, seconds=seconds))
            return total.sum

        kept, norm = np.arange(train.n_items, dtype=np.int32), 1.0
        if self.items < train.n_items:
            totals = summed(_marks(train, _norm(sigma, ITEMS)))
            largest = np.argsort(-totals, kind="stable")[: self.items]
            kept, norm = np.sort(largest).astype(np.int32), 1 - ITEMS
        column = summed(_triangles(train, kept, _norm(sigma, norm)))
        self.gram_ = shallow.from_triangle(column, kept.size)
        self.sigma_ = 0.0 if sigma is None else sigma * self._excess(records[-1])
        self.model_ = ItemWeights(self._weights(kept.size), kept, **all_users(train))
        self.history_ = History(tuple(records))
        return self

    def _summing(self, sigma: float | None) -> Callable[..., Aggregate]:
        """Return the function that adds up messages, with noise unless σ is None."""
        if sigma is None:
            return self.aggregation.count
        noised = NoisySum(
            inner=cast(IntegerSum, self.aggregation),  # as `_check` has validated
            clip_norm=1.0,
            noise_multiplier=sigma,
            where=self.where,
            honest=self.honest,
            entropy=self.entropy,
        )
        return noised.sum

    def _excess(self, last: RoundRecord) -> float:
        """Return the last sum's noise in units of σ, ≥ 1: more users may stay than needed."""
        if self.where == "central":
            return 1.0
        return float(np.sqrt(last.survivors / part_of(self.honest, last.cohort)))

    def _weights(self, m: int) -> Floats:
        """Return B, from the released sum and public numbers alone."""
        if self.sigma_ == 0:
            return shallow.closed_form(self.gram_, self.reg or EXACT_REG)
        reg = self.reg or REG * self.sigma_ * np.sqrt(m)
        return shallow.closed_form(shallow.denoised(self.gram_, self.sigma_), float(reg))


def _norm(sigma: float | None, part: float) -> float | None:
    """Return the norm of a message with `part` of the squared norm 1; None without noise."""
    return None if sigma is None else float(np.sqrt(part))


def _marks(ratings: Ratings, norm: float | None) -> Vectors:
    def rows(user: int) -> Rows:
        return shallow.marks(ratings.of_user(user)[0], ratings.n_items, norm)

    return Vectors(range(ratings.n_users), rows, (ratings.n_items, 1))


def _triangles(ratings: Ratings, kept: NDArray[np.int32], norm: float | None) -> Vectors:
    m = kept.size
    place = np.full(ratings.n_items, -1, dtype=np.int64)
    place[kept] = np.arange(m)

    def rows(user: int) -> Rows:
        places = place[ratings.of_user(user)[0]]
        return shallow.triangle(np.sort(places[places >= 0]), m, norm)

    return Vectors(range(ratings.n_users), rows, (m * (m + 1) // 2, 1))
