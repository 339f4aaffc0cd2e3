"""Recommender that all parties train, and the ratings of a node."""

from __future__ import annotations

import numpy as np
from flwr.app import Context
from numpy.typing import NDArray

from fedmf import FedMF, FedMMF, Split, Trainer, load
from fedmf.data.splits import random_split
from fedmf.fcf import FCF, views
from fedmf.models.estimator import Estimator


def recommender(context: Context) -> Estimator:
    """Return the recommender that the run configures, the same for the server and all nodes."""
    rounds = int(context.run_config["rounds"])
    match context.run_config["model"]:
        case "fedmf":
            return Trainer(FedMF(), rounds=rounds)
        case "fedmmf":
            return FedMMF(trainer=Trainer(FedMF(), rounds=rounds))
        case "fcf":
            return FCF(rounds=rounds)
    raise ValueError("model must be fedmf, fedmmf or fcf")


def load_split(context: Context) -> Split:
    """Return all ratings. A real node reads its own users' alone, on the same items."""
    ratings = load(str(context.run_config["data"]))
    if context.run_config["model"] == "fcf":
        ratings = views(ratings)
    return random_split(ratings)


def users_of(context: Context, n_users: int) -> NDArray[np.int64]:
    """Return the numbers of a node's users."""
    config = context.node_config
    return np.arange(int(config["partition-id"]), n_users, int(context.run_config["nodes"]))
