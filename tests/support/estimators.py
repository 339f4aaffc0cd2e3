"""Every estimator of fedmf with small settings, and the ratings that each takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fedmf
from fedmf.context import ContextTrainer, FedLR
from fedmf.fcf import CF, FCF, FederatedCF, Implicit, views

WIDE = fedmf.PlainSum(clip=4096.0, fractional_bits=32)
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "cf": lambda: CF(Implicit(k=2), rounds=1),
    "fcf": lambda: FCF(Implicit(k=2), rounds=1),
    "federated cf": lambda: FederatedCF(Implicit(k=2), WIDE, rounds=1),
    "fedmf": lambda: fedmf.Trainer(fedmf.FedMF(k=2), rounds=1),
    "one-shot": lambda: fedmf.Trainer(
        fedmf.FedMF(k=2), fedmf.OneShotSum(), rounds=1, cohort=10
    ),
    "fedbpmf": lambda: fedmf.FedBPMF(k=2, rounds=2, burn_in=1),
    "fedmmf": lambda: fedmf.FedMMF(fedmf.MeanMask(), fedmf.Trainer(fedmf.FedMF(k=2), rounds=1)),
    "dpease": lambda: fedmf.DPEase(where="central"),
    "dpfedmf": lambda: fedmf.DPFedMF(where="central", rounds=2),
    "fedlr": lambda: ContextTrainer(FedLR(), rounds=1),
}


def fit(model: Any, ratings: fedmf.Ratings) -> Any:
    """Fit a model on ratings, or on views if the model takes implicit feedback."""
    takes_views = isinstance(model, CF | FCF | FederatedCF | fedmf.DPEase)
    return model.fit(views(ratings) if takes_views else ratings)
