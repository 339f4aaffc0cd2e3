"""Matrix factorisation, federated: the models that `fedmf.training` trains.

A `FederatedModel` has a user's and the server's step. User factors never leave the user.
`Factors` is the trained model: it predicts, recommends, and is saved to a file.
"""

from __future__ import annotations

from fedmf.models.als import FedALS
from fedmf.models.factors import Factors
from fedmf.models.federated import FederatedModel
from fedmf.models.mf import FedMF
from fedmf.models.presets import PRESETS, preset

__all__ = ["PRESETS", "Factors", "FedALS", "FedMF", "FederatedModel", "preset"]
