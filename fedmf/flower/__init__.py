"""Federated recommenders on Flower: a node has one user or a shard of users.

A recommender, such as ``Trainer(FedMF())``, ``FedMMF()`` or ``FCF()``, states the training for
both sides. `Node` does the steps of a node's users. `FedSum`, a strategy, does the server's
steps. ``SecAgg(FedSum(...), ...)`` of `secagg.flower` sums the nodes' tables securely.

A node encodes each user's table as integers and sends the sum of the tables. So the sum over
all nodes has the same integers as the sum over all users in a single process, and the digests
are equal.
"""

from __future__ import annotations

from secagg.errors import needing

with needing("fedmf.flower", "'secagg[flower]'", "flwr"):
    from fedmf.flower.node import Node
    from fedmf.flower.strategy import FedSum

__all__ = ["FedSum", "Node"]
