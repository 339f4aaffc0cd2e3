"""Federated context models, which predict ratings from features of users and items.

A `ContextModel` has one vector of parameters θ for all users and no factors. The server has θ.
In each round every user sends a sum of gradients and a number of ratings.
"""

from __future__ import annotations

from fedmf.context.model import ContextModel, FedFM, FedLR, FedNN
from fedmf.context.trainer import ContextTrainer

__all__ = ["ContextModel", "ContextTrainer", "FedFM", "FedLR", "FedNN"]
