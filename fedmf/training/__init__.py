"""Federated training: cohort, local steps, secure sum, server step, round by round.

`loop` is the one training loop; it counts the raters of each item by a secure sum where a model
needs that. A trainer defines a user's and the server's step. `Schedule` draws the cohort and
dropouts of each round from the seed alone, and `History` records every round.
"""

from __future__ import annotations

from fedmf.training.history import History, RoundRecord, mae, rmse
from fedmf.training.optimisers import Adam, Descent
from fedmf.training.schedule import Schedule
from fedmf.training.trainer import Trainer

__all__ = ["Adam", "Descent", "History", "RoundRecord", "Schedule", "Trainer", "mae", "rmse"]
