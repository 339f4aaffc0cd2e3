"""Federated context models: one shared model of profiles and item features, no factors."""

from __future__ import annotations

from fedmf.context.factorisation import FedFM
from fedmf.context.linear import FedLR
from fedmf.context.model import ContextModel
from fedmf.context.network import FedNN
from fedmf.context.trainer import ContextTrainer

__all__ = ["ContextModel", "ContextTrainer", "FedFM", "FedLR", "FedNN"]
