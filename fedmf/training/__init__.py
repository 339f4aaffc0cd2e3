"""Federated training, round by round: cohort, local steps, secure sum, server step.

All trainers share the training loop, `loop`. The loop also counts the raters of each item by a
secure sum if a model needs the counts. A trainer defines the steps of a user and of the server.
`Schedule` draws the cohort and dropouts of each round from the seed alone, and `History`
records every round. `ranking` measures the items that any recommender recommends first.
"""

from __future__ import annotations

from fedmf.training.history import History, RoundRecord, mae, rmse
from fedmf.training.measures import Ranking, ranking
from fedmf.training.optimisers import Adam, Descent
from fedmf.training.schedule import Schedule
from fedmf.training.trainer import Trainer

__all__ = [
    "Adam",
    "Descent",
    "History",
    "Ranking",
    "RoundRecord",
    "Schedule",
    "Trainer",
    "mae",
    "ranking",
    "rmse",
]
