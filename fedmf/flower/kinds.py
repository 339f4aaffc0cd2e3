"""Kinds of recommenders that train on Flower, and the plan of each kind."""

from __future__ import annotations

from fedmf.errors import SettingError
from fedmf.flower.explicit import Explicit
from fedmf.flower.plan import Plan
from fedmf.masks import FedMMF
from fedmf.models.estimator import Estimator
from fedmf.training import Trainer


def plan_of(recommender: Estimator) -> Plan:
    """Return the plan of a `Trainer`, FedMMF, FCF or FederatedCF; else raise SettingError."""
    if isinstance(recommender, Trainer):
        return Explicit(recommender)
    if isinstance(recommender, FedMMF):
        return Explicit(recommender.trainer, recommender)
    from fedmf.fcf.federated import FederatedRecommender  # needs scipy
    from fedmf.flower.implicit import ImplicitPlan

    if isinstance(recommender, FederatedRecommender):
        return ImplicitPlan(recommender)
    raise SettingError(
        f"{type(recommender).__name__} does not train on Flower: pass a Trainer, FedMMF, FCF "
        "or FederatedCF"
    )
