"""Federated training, round by round: cohort, local steps, secure sum, server step.

All trainers share the training loop, `loop`. It also counts the raters of each item by a secure
sum if a model needs the counts. A trainer defines the steps of a user and of the server.
`Schedule` draws the cohort and dropouts of each round from the seed alone, and `History`
records every round.
"""

from __future__ import annotations

from fedmf.training.history import History, RoundRecord, mae, rmse
from fedmf.training.optimisers import Adam, Descent
from fedmf.training.schedule import Schedule
from fedmf.training.trainer import Trainer

__all__ = ["Adam", "Descent", "History", "RoundRecord", "Schedule", "Trainer", "mae", "rmse"]
