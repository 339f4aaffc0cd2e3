"""`Explicit`, the plan of `Trainer` and FedMMF, and `plan_of`, the plan of any recommender."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from fedmf.data import Features, Ratings
from fedmf.data.internal import internal
from fedmf.errors import DataError, SettingError
from fedmf.fcf.federated import FederatedRecommender
from fedmf.flower.implicit import ImplicitPlan
from fedmf.flower.plan import ITEMS, Arrays, Plan
from fedmf.masks import FedMMF
from fedmf.masks.combined import around
from fedmf.models import Factors
from fedmf.models.estimator import Estimator
from fedmf.models.federated import Raters
from fedmf.models.recommender import Recommender
from fedmf.training import Trainer
from fedmf.training.loop import Training
from fedmf.training.schedule import Draw
from fedmf.training.steps import LocalSteps, Users
from fedmf.training.trainer import FactorSteps, FactorTraining

Rounds = Training[Factors, FactorSteps]
USERS = "user-factors"
MASKED = "masked-ratings"


class Explicit(Plan):
    """Plan of a training of factors.

    A node keeps P of the node's users, unless the users solve for P, and the masked ratings of
    FedMMF.

    Parameters
    ----------
    trainer : Trainer
    mmf : FedMMF, optional, the owner of the trainer
    """

    def __init__(self, trainer: Trainer, mmf: FedMMF | None = None) -> None:
        model = trainer.model if mmf is None else mmf.model
        super().__init__(
            trainer,
            trainer.rounds,
            needs_counts=model.needs_counts,
            needs_mean=getattr(model, "needs_mean", False),
        )
        self._model, self._mmf = model, mmf

    def at_mean(self, mean: float) -> Self:
        """Return the plan of the model at the mean rating."""
        plan = copy(self)
        plan._model = self._model.at_mean(mean)
        return plan

    def prepared(self, ratings: Ratings, features: Features | None) -> Arrays:
        """Return the masked ratings of FedMMF."""
        if self._mmf is None:
            return {}
        return {MASKED: self._mmf.rest(ratings, self._mmf.fit_mask(ratings, features)).values}

    def training(
        self, ratings: Ratings, raters: Raters | None, private: Arrays
    ) -> FactorTraining:
        """Return the steps of a round, on the internal scale; see `Plan`."""
        if self._mmf is not None:
            scale = around(self._mmf.centre)
            ratings = ratings.with_values(private.get(MASKED, np.empty(0)), scale)
            return FactorTraining(self._model, ratings)
        return FactorTraining(self._model, internal(ratings))

    def start(self, training: Rounds) -> Factors:
        """Return the factors that the recommender draws in one process."""
        rng = self.schedule.rng(Draw.START)
        return Factors.of(*self._model.initial(training.ratings, rng), training.ratings)

    def public(self, state: Factors, number: int, before: Arrays) -> Arrays:
        """Return Q."""
        return {ITEMS: state.item_factors}

    def local(self, training: Rounds, public: Arrays, private: Arrays, users: Users) -> Factors:
        """Return P and Q; see `Plan`."""
        p = self.start(training).user_factors.copy()
        if USERS in private:
            p[users] = private[USERS]
        return Factors.of(p, public[ITEMS], training.ratings)

    def kept(self, steps: LocalSteps, users: Users) -> Arrays:
        """Return the new p_u of the users, unless they follow from Q."""
        if self._model.solves_users or not isinstance(steps, FactorSteps):
            return {}
        return {USERS: steps.moved(users.tolist())[users]}

    def trained(self, raters: Raters, n_items: int) -> int | None:
        """Return the number of trained items; DataError if no item has enough raters."""
        found = int(self._model.trained_items(raters, n_items).sum())
        if not found:
            raise DataError("no item has min_raters raters: lower min_raters")
        return found

    def fitted(
        self, training: Rounds, state: Factors, ratings: Ratings, features: Features | None
    ) -> Recommender:
        """Return the factors, or with the masks the `Combined` of FedMMF."""
        p, q = state.user_factors, state.item_factors
        if self._model.solves_users:
            p = training.local_steps(state, None).solved(q)
        factors = Factors.of(p, q, ratings, scale=ratings.scale)
        if self._mmf is None:
            return factors
        return self._mmf.combined(factors, self._mmf.fit_mask(ratings, features), ratings)


def plan_of(recommender: Estimator, n_items: int) -> Plan:
    """Return the plan of a `Trainer`, FedMMF, FCF or FederatedCF; else raise SettingError."""
    if isinstance(recommender, Trainer):
        return Explicit(recommender)
    if isinstance(recommender, FedMMF):
        return Explicit(recommender.trainer, recommender)
    if isinstance(recommender, FederatedRecommender):
        return ImplicitPlan(recommender, n_items)
    raise SettingError(
        f"{type(recommender).__name__} does not train on Flower: pass a Trainer, FedMMF, FCF "
        "or FederatedCF"
    )
