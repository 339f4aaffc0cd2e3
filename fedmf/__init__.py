"""Federated recommenders, trained through secure aggregation: the server learns sums only."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from secagg import Moved, __version__
from secagg._lazily import lazily

if TYPE_CHECKING:
    from fedmf.aggregate import (
        Aggregate,
        Aggregation,
        FloatSum,
        OneShotSum,
        PaillierSum,
        PlainSum,
        RoundAborted,
        SecAggSum,
    )
    from fedmf.bayes import FedBPMF, Posterior
    from fedmf.data import Catalogue, Features, Ratings, Split, from_triples, load, read_ratings
    from fedmf.dp import DPFedMF
    from fedmf.ease import DPEase, ItemWeights
    from fedmf.errors import (
        DataError,
        DataWarning,
        Diverged,
        FedMFError,
        MissingExtra,
        ModelError,
        SettingError,
    )
    from fedmf.masks import FedMMF, FMMask, LocalHead, MeanMask, NNMask, RidgeMask
    from fedmf.models import Factors, FedALS, FederatedModel, FedMF, preset
    from fedmf.training import History, RoundRecord, Trainer

__all__ = [
    "Aggregate",
    "Aggregation",
    "Catalogue",
    "DPEase",
    "DPFedMF",
    "DataError",
    "DataWarning",
    "Diverged",
    "FMMask",
    "Factors",
    "Features",
    "FedALS",
    "FedBPMF",
    "FedMF",
    "FedMFError",
    "FedMMF",
    "FederatedModel",
    "FloatSum",
    "History",
    "ItemWeights",
    "LocalHead",
    "MeanMask",
    "MissingExtra",
    "ModelError",
    "NNMask",
    "OneShotSum",
    "PaillierSum",
    "PlainSum",
    "Posterior",
    "Ratings",
    "RidgeMask",
    "RoundAborted",
    "RoundRecord",
    "SecAggSum",
    "SettingError",
    "Split",
    "Trainer",
    "__version__",
    "from_triples",
    "load",
    "preset",
    "read_ratings",
]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "aggregate": (
                "Aggregate",
                "Aggregation",
                "FloatSum",
                "OneShotSum",
                "PaillierSum",
                "PlainSum",
                "RoundAborted",
                "SecAggSum",
            ),
            "bayes": ("FedBPMF", "Posterior"),
            "data": (
                "Catalogue",
                "Features",
                "Ratings",
                "Split",
                "from_triples",
                "load",
                "read_ratings",
            ),
            "dp": ("DPFedMF",),
            "ease": ("DPEase", "ItemWeights"),
            "errors": (
                "DataError",
                "DataWarning",
                "Diverged",
                "FedMFError",
                "MissingExtra",
                "ModelError",
                "SettingError",
            ),
            "masks": ("FedMMF", "FMMask", "LocalHead", "MeanMask", "NNMask", "RidgeMask"),
            "models": ("Factors", "FedALS", "FederatedModel", "FedMF", "preset"),
            "training": ("History", "RoundRecord", "Trainer"),
        },
    )


_MOVED = {
    "fedmf.cf": "fedmf.fcf.cf",
    "fedmf.datasets": "fedmf.data.sets",
    "fedmf.features": "fedmf.data.features",
    "fedmf.federated_cf": "fedmf.fcf.moments",
    "fedmf.ratings": "fedmf.data.ratings",
    "fedmf.splits": "fedmf.data.splits",
}
sys.meta_path.insert(0, Moved(_MOVED))
