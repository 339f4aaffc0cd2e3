"""Models of federated matrix factorisation, trained by `fedmf.training`.

A `FederatedModel` has the steps of a user and of the server. User factors never leave the user.
`Factors`, the trained model, predicts, recommends, and is saved to a file.
"""

from __future__ import annotations

from fedmf.models.als import FedALS
from fedmf.models.factors import Factors
from fedmf.models.federated import FederatedModel
from fedmf.models.mf import PRESETS, FedMF, preset

__all__ = ["PRESETS", "Factors", "FedALS", "FedMF", "FederatedModel", "preset"]
