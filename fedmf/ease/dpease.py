"""`DPEase`, the estimator: settings, two noised secure sums, and the server's step."""

from __future__ import annotations

from time import perf_counter
from types import MappingProxyType
from typing import Self, Unpack

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.data import Ratings
from fedmf.data.checks import check_parts
from fedmf.ease import shallow
from fedmf.ease.weights import ItemWeights
from fedmf.models.estimator import not_continued
from fedmf.models.moments import symmetric
from fedmf.models.recommender import all_users
from fedmf.settings import Count, Positive
from fedmf.training.history import History, RoundRecord
from fedmf.training.loop import record_of
from fedmf.training.private import Private, PrivateSettings
from fedmf.training.schedule import Draw, Summing

Floats = NDArray[np.float64]

# Chosen on validation ratings of ml-1m, which user_split(·, 0.25, 2000) takes from the training
# part of user_split(views, 0.2, 1000), at ε = 8, 2 and 1, with one or two draws each.
# Tried: ITEMS .02, .05, .1, .2 and REG .25, .5, 1, 2, 4.
ITEMS = 0.05
"""Part of the squared norm, and so of ρ, for a user's message for the choice of items."""
REG = 1.0
"""λ in units of σ√m, half the largest eigenvalue of the noise: a function of public numbers."""


class DPEase(Private):
    """EASE from noised secure sums, (ε, δ)-differentially private for whole users.

    See `fedmf.ease`. A user sends two messages. The first has a number for each item, and from
    the sum the server chooses the items to keep. The second has m (m + 1) / 2 numbers for the m
    kept items. Both messages together have an L2 norm of at most 1. The sums have noise for the
    same σ. λ depends on σ, m and the number of users in the sum alone. So the sums, and all
    numbers computed from the sums, cost (ε, δ). If all items are kept, the first sum is left
    out, and the second sum has the whole norm.

    Ratings count as views, whatever their values. Never publish the rated items of a saved
    model; see docs/privacy.md.

    Parameters
    ----------
    aggregation, epsilon, delta, where, honest, entropy, seed, dropout
        See `Private`. Take "central" for many users: shares of 6,040 users for 1,000 items are
        3 · 10⁹ draws, minutes.
    items
        Number m of kept items, ≥ 1: the items with the largest noised sums. The more noise, the
        fewer items are best: 500 on ml-1m at ε = 2.
    reg
        λ > 0. None for √m times `sigma_`, in units of the norm bound. A value that was chosen
        on the users' ratings is not covered by ε.

    Attributes
    ----------
    model_ : ItemWeights, the trained model
    gram_ : the released sum as a symmetric table, float64, shape (m, m)
    sigma_
        Standard deviation of the noise in a cell of `gram_`: above σ if more users stayed than
        `honest` requires. The number of these users is public.
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
        items: Count = 1000,
        reg: Positive | None = None,
        **settings: Unpack[PrivateSettings],
    ) -> None:
        super().__init__(aggregation, **settings)
        self.items, self.reg = items, reg
        self.__post_init__()

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
        check_parts(train)
        self.schedule.size(train.n_users)
        # Σ Δ² = 1 for both sums together, so the noise is that of a single sum of norm 1
        noisy, records = self.noisy(1), list[RoundRecord]()
        everyone = np.arange(train.n_users)

        def summed(vectors: Vectors) -> Floats:
            """Return the sum over the users who do not drop out, and record the sum."""
            number, start = len(records) + 1, perf_counter()
            total = noisy.sum(
                vectors,
                dropouts=self.schedule.dropouts(Draw.DROPOUTS, number, everyone),
                session=f"fedmf ease {number}".encode(),
            )
            seconds = perf_counter() - start
            records.append(record_of(number, train.n_users, total, seconds=seconds))
            return total.sum

        kept, part = np.arange(train.n_items, dtype=np.int32), 1.0
        if self.items < train.n_items:
            totals = summed(_marks(train, ITEMS))
            largest = np.argsort(-totals, kind="stable")[: self.items]
            kept, part = np.sort(largest).astype(np.int32), 1 - ITEMS
        column = summed(_triangles(train, kept, part))
        self.gram_ = symmetric(column, kept.size)
        last = records[-1]
        self.sigma_ = noisy.deviation(last.survivors, last.cohort)
        reg = float(self.reg or REG * self.sigma_ * np.sqrt(kept.size))
        weights = shallow.closed_form(shallow.denoised(self.gram_, self.sigma_), reg)
        self.model_ = ItemWeights(weights, kept, **all_users(train))
        self.history_ = History(tuple(records))
        return self


def _marks(ratings: Ratings, part: float) -> Vectors:
    def rows(user: int) -> Rows:
        return shallow.marks(ratings.of_user(user)[0], ratings.n_items, np.sqrt(part))

    return Vectors(range(ratings.n_users), rows, (ratings.n_items, 1))


def _triangles(ratings: Ratings, kept: NDArray[np.int32], part: float) -> Vectors:
    m = kept.size
    place = np.full(ratings.n_items, -1, dtype=np.int64)
    place[kept] = np.arange(m)

    def rows(user: int) -> Rows:
        places = place[ratings.of_user(user)[0]]
        return shallow.triangle(np.sort(places[places >= 0]), m, np.sqrt(part))

    return Vectors(range(ratings.n_users), rows, (m * (m + 1) // 2, 1))
