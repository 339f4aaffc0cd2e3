"""What federated recommenders of implicit feedback share: who is counted, summed and missed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate import Aggregate, Aggregation, RoundAborted
from fedmf.aggregate.vectors import Vectors
from fedmf.data import Ratings
from fedmf.errors import DataError
from fedmf.fcf.confidence import Confidence, Implicit, Recommender
from fedmf.settings import check_able, check_whole, plain_numbers
from fedmf.training import Schedule
from fedmf.training.counting import count_raters
from fedmf.training.schedule import Draw

__all__ = ["FederatedRecommender", "nothing_learnt"]

Floats = NDArray[np.float64]


class FederatedRecommender(Recommender):
    """Learns from sums over users, each of whom may vanish from any of them.

    Parameters
    ----------
    model
        The hyper-parameters that CF has too.
    aggregation
        How the users' vectors are summed.
    epochs
        How many, at least 1.
    min_raters
        Ratings of items that fewer users rated are left out of the training, as if they were
        not there: users count first, by a sum of its own. 1 leaves none out and counts
        nothing. The sums tell Σ_u (c − 1) x_u x_uᵀ and Σ_u c p x_u over an item's raters (of
        FCF those of one epoch together, where x_u is held fixed and Y is known). Over one
        rater that is x_u itself, which 3 prevents where nobody vanishes. Over fewer raters
        than K it is the space that their x_u span, and a user of several such items is found
        where the spaces meet: K and more are safe from that, which is no proof. Where users
        vanish a margin must be added as of `FedMF.min_raters`, there times the rounds, here
        times all sums, for raters are counted once.
    dropout
        The probability in [0, 1) with which a user vanishes in a sum, as of `Schedule`.
    seed
        Of the starting Y and of who vanishes, at least 0.
    progress
        Called with what was done, and how many of how many are over.

    Raises
    ------
    SettingError
        If a setting is out of range.
    """

    def __init__(
        self,
        model: Implicit,
        aggregation: Aggregation,
        *,
        epochs: int,
        min_raters: int,
        dropout: float,
        seed: int,
        progress: Callable[[str, int, int], None],
    ) -> None:
        check_able("confidence", "Implicit()", model=model)
        check_able("sum", "SecAggSum()", aggregation=aggregation)
        check_whole(epochs=epochs, min_raters=min_raters)
        self.model, self.aggregation = model, aggregation
        self.epochs, self.min_raters = epochs, min_raters
        self.dropout, self.seed, self.progress = dropout, seed, progress
        self._schedule = Schedule(seed=seed, dropout=dropout)
        plain_numbers(self)

    def _confidence(self, ratings: Ratings) -> Confidence:
        """Return what the ratings of items with raters enough say.

        A count that is lost is repeated.

        Raises
        ------
        DataError, SettingError
            As of `Implicit.confidence`; also if no item has raters enough.
        RoundAborted
            If it is lost `epochs` times.
        """
        confidence = self.model.confidence(ratings)  # of all: the checks come first
        if self.min_raters == 1:
            return confidence
        users, lost = np.arange(ratings.n_users), ""
        for number in range(1, self.epochs + 1):
            session = f"fedmf implicit count {number}".encode()
            try:
                raters, _ = count_raters(
                    self.aggregation, self._schedule, number, users, ratings, session
                )
            except RoundAborted as error:
                lost = str(error)
                continue
            enough = raters.at_least(self.min_raters)[ratings.items]
            if not enough.any():
                raise DataError(
                    f"no item of {ratings.name} was counted {self.min_raters} raters: lower "
                    "min_raters"
                )
            return self.model.confidence(ratings.take(enough))
        raise nothing_learnt(lost)

    def _sum(self, vectors: Vectors, number: int) -> tuple[Aggregate, Floats]:
        """Return sum `number` as it is, and scaled from those who stayed to all users.

        Raises
        ------
        RoundAborted
            If too few users are left.
        """
        users = np.array(list(vectors))
        total = self.aggregation.sum(
            vectors,
            dropouts=self._schedule.dropouts(Draw.DROPOUTS, number, users),
            session=f"fedmf implicit sum {number}".encode(),
        )
        return total, total.sum * (users.size / len(total.survivors))


def nothing_learnt(lost: str) -> RoundAborted:
    """Return what to raise where every sum was lost; `lost` says how the last one was."""
    return RoundAborted(
        f"no sum came about, the last one for: {lost}. Lower the aggregation's threshold, or "
        "the dropout"
    )
