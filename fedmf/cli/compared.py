"""Comparison of a trained model with the start of the training."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedmf.bayes import Posterior
from fedmf.cli.models import Saved, ranked
from fedmf.cli.start import numbered, places, seen
from fedmf.data import Ratings, Split
from fedmf.models import Factors
from fedmf.models.recommender import Recommender
from fedmf.models.warm import warm
from fedmf.training import rmse

NOT_COMPARED = (
    "not compared with the start, which has seen all test ratings that it can predict"
)


class Compared(NamedTuple):
    """Measure of a start and of the trained model, on the same `ratings` test ratings.

    `measure` is "RMSE", or "precision" for models that rank.
    """

    measure: str
    start: float
    now: float
    ratings: int

    @property
    def worse(self) -> bool:
        """True if the model is worse than the start in the digits that are shown."""
        start, now = round(self.start, 4), round(self.now, 4)
        return now < start if self.measure == "precision" else now > start

    def __str__(self) -> str:
        return (
            f"started from {self.measure} {self.start:.4f}, now {self.now:.4f}, on the "
            f"{self.ratings:,} test ratings that the start has not seen"
        )


def compared(
    start: Saved, fitted: Recommender, ratings: Ratings, parts: Split
) -> Compared | None:
    """Compare a model with the start; None if the start has seen all predictable ratings.

    A test rating counts if the start knows the user and the item, and was not trained on the
    rating. The start predicts the other ratings too well, or not at all.

    Parameters
    ----------
    start, fitted : model before and model after the training
    ratings, parts : all ratings, and the training and test part
    """
    if not isinstance(start, Factors | Posterior):
        return None
    users = places(ratings.user_ids, start.user_ids)
    items = places(ratings.item_ids, start.item_ids)
    test = numbered(parts.test)
    fair = (users[parts.test.users] >= 0) & (items[parts.test.items] >= 0)
    fair &= ~np.isin(test, seen(start, ratings))
    rest = parts.test.take(fair)
    if not rest.n_ratings:
        return None
    if isinstance(start, Factors) and start.ranks:
        hidden = ratings.take(~np.isin(numbered(ratings), test[fair]))
        models = (_renumbered(start, ratings), fitted)
        before, now = (ranked(one, Split(hidden, rest))["precision"] for one in models)
        return Compared("precision", before, now, rest.n_ratings)
    guesses = start.predict(users[rest.users], items[rest.items])
    now = rmse(rest.values, fitted.predict(rest.users, rest.items))
    return Compared("RMSE", rmse(rest.values, guesses), now, rest.n_ratings)


def _renumbered(start: Factors, ratings: Ratings) -> Factors:
    """Return a model that ranks, for the users and items of `ratings`; new rows score 0."""
    p, q = (np.zeros((number, start.k)) for number in (ratings.n_users, ratings.n_items))
    return Factors.of(*warm(p, q, start, ratings, ranks=True), ratings, ranks=True)
