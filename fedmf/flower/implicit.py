"""Plan of `FCF` and FederatedCF: users solve for their factors."""

from __future__ import annotations

from typing import Any

from fedmf.data import Features, Ratings
from fedmf.errors import DataError
from fedmf.fcf.federated import XY, FederatedRecommender, ImplicitTraining
from fedmf.flower.plan import ITEMS, Arrays, Plan
from fedmf.models.federated import Raters
from fedmf.models.recommender import Recommender
from fedmf.training.steps import Users

Rounds = ImplicitTraining[Any]

EPOCH = "epoch-item-factors"
"""Name of the public array with the Y that the users' factors are exact for."""
CENTRE = "centre"
"""Name of the public array with the mean of the factors of all users, zeros without a use."""


class ImplicitPlan(Plan):
    """Plan of a training on implicit feedback; a node keeps nothing between two rounds.

    Parameters
    ----------
    recommender : FCF or FederatedCF, with a number for λ
    n_items : int, number of items
    """

    names = (ITEMS, EPOCH, CENTRE)

    def __init__(self, recommender: FederatedRecommender, n_items: int) -> None:
        needs_counts = recommender.min_raters > 1
        super().__init__(recommender, recommender.sums(n_items), needs_counts=needs_counts)
        self._recommender = recommender

    def prepared(self, ratings: Ratings, features: Features | None) -> Arrays:
        """Validate the ratings, unless the node has no ratings; nothing is kept."""
        if ratings.n_ratings:
            self._recommender.model.confidence(ratings)
        return {}

    def training(self, ratings: Ratings, raters: Raters | None, private: Arrays) -> Rounds:
        """Return the steps of a round on the items with enough raters; see `Plan`."""
        if raters is not None:
            enough = raters.at_least(self._recommender.min_raters)
            ratings = ratings.take(enough[ratings.items])
        return self._recommender.training(self._recommender.model.weigh(ratings))

    def start(self, training: Rounds) -> XY:  # type: ignore[override]
        """Return the Y that the recommender draws in one process."""
        return training.start

    def public(self, state: XY, number: int, before: Arrays) -> Arrays:
        """Return Y, Y at the beginning of the epoch, and x̄."""
        begins = (number - 1) % self._recommender.steps == 0
        epoch = state.y if begins else before[EPOCH]
        return {ITEMS: state.y, EPOCH: epoch, CENTRE: state.centre}

    def local(  # type: ignore[override]
        self, training: Rounds, public: Arrays, private: Arrays, users: Users
    ) -> XY:
        """Return X of the epoch, Y and x̄."""
        return training.with_users(public[EPOCH], public[CENTRE])._replace(y=public[ITEMS])

    def trained(self, raters: Raters, n_items: int) -> int | None:
        """Return None, as in one process; DataError if no item has enough raters."""
        least = self._recommender.min_raters
        if not raters.at_least(least).any():
            raise DataError(f"no item has {least} raters: lower min_raters")
        return None

    def fitted(  # type: ignore[override]
        self, training: Rounds, state: XY, ratings: Ratings, features: Features | None
    ) -> Recommender:
        """Return X, exact for Y, and Y."""
        return self._recommender.model.factors(*training.with_users(*state[1:]), ratings)
