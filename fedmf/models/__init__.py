"""Matrix factorisation, federated: the models that `fedmf.training` trains.

A model says what a user computes from their ratings and how the server moves the item factors;
`FederatedModel` is that interface. User factors never leave the user. `Factors` is what a
training leaves behind: it predicts, recommends, and is saved to a file.
"""

from __future__ import annotations

from fedmf.models.als import FedALS
from fedmf.models.factors import Factors
from fedmf.models.federated import FederatedModel
from fedmf.models.mf import FedMF
from fedmf.models.presets import PRESETS, preset

__all__ = ["PRESETS", "Factors", "FedALS", "FedMF", "FederatedModel", "preset"]
