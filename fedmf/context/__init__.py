"""Federated context models: one shared model of profiles and item features, no factors.

A `ContextModel` predicts a rating from the features x of its user and its item. Its parameters
θ are the server's; in each round users send their summed gradients and numbers of ratings.
"""

from __future__ import annotations

from fedmf.context.model import ContextModel, FedFM, FedLR, FedNN
from fedmf.context.trainer import ContextTrainer

__all__ = ["ContextModel", "ContextTrainer", "FedFM", "FedLR", "FedNN"]
