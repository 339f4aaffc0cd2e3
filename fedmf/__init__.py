"""Federated recommenders, trained through secure aggregation: the server learns sums only."""

from __future__ import annotations

from fedmf.aggregate import Aggregation, FloatSum, PaillierSum, PlainSum, SecAggSum
from fedmf.als import FedALS
from fedmf.data import Ratings, Split, load
from fedmf.errors import DataError, FedMFError, ModelError, SettingError
from fedmf.federated import FederatedModel
from fedmf.head import LocalHead
from fedmf.history import History, RoundRecord
from fedmf.masks import FMMask, MeanMask, NNMask, RidgeMask
from fedmf.mf import FedMF
from fedmf.mmf import FedMMF
from fedmf.model import Factors
from fedmf.presets import preset
from fedmf.sums.vectors import Aggregate
from fedmf.trainer import Trainer

__all__ = [
    "Aggregate",
    "Aggregation",
    "DataError",
    "FMMask",
    "Factors",
    "FedALS",
    "FedMF",
    "FedMFError",
    "FedMMF",
    "FederatedModel",
    "FloatSum",
    "History",
    "LocalHead",
    "MeanMask",
    "ModelError",
    "NNMask",
    "PaillierSum",
    "PlainSum",
    "Ratings",
    "RidgeMask",
    "RoundRecord",
    "SecAggSum",
    "SettingError",
    "Split",
    "Trainer",
    "load",
    "preset",
]
