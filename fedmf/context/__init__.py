"""Federated context models: one shared model of profiles and item features, no factors."""

from __future__ import annotations

from fedmf.context.model import ContextModel, FedFM, FedLR, FedNN
from fedmf.context.trainer import ContextTrainer

__all__ = ["ContextModel", "ContextTrainer", "FedFM", "FedLR", "FedNN"]
