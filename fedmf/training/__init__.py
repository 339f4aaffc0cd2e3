"""Federated training: cohort, local steps, secure sum, server step, round by round.

`Schedule` draws each round's cohort and dropouts from the seed alone, `counting` counts the
raters of each item by a secure sum, and `History` records every round.
"""

from __future__ import annotations

from fedmf.training.history import History, RoundRecord
from fedmf.training.metrics import mae, rmse
from fedmf.training.optimisers import Adam, Descent
from fedmf.training.schedule import Schedule
from fedmf.training.trainer import Trainer

__all__ = ["Adam", "Descent", "History", "RoundRecord", "Schedule", "Trainer", "mae", "rmse"]
