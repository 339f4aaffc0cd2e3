"""The door of `fedmf.flower`: nodes of a recommender, under `SecAggMod`."""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Context, Message, RecordDict

import fedmf
from fedmf.data.sets.simulated import simulate
from fedmf.errors import FedMFError
from fedmf.flower import FedSum, Node
from fedmf.flower.plan import COUNTS
from flower_nodes import registry
from lying.door import CLIENTS, Settings
from lying.flower import FlowerDoor
from lying.walk import leaves
from secagg import SecAggError
from secagg.flower import SecAgg

USERS = 12
RATINGS = simulate(USERS, 8, 60, seed=1)
MODEL = fedmf.FedMF(k=2, update="paper", rate=0.01, min_raters=1)


class RecommenderDoor(FlowerDoor):
    """Nodes whose private numbers are their users; the weight of a `Private` is their number.

    `Node` is the training here, and reads the content of its message alone.
    """

    errors = (SecAggError, FedMFError)

    def __init__(self) -> None:
        super().__init__(keyed=True, one_shot=False)
        self.name = "fedmf.flower.Node, keyed"
        self.pairs = frozenset({"weights", "weights 3+7, 5+5"})
        self.trainer = fedmf.Trainer(MODEL, rounds=1, seed=3)

    def users(self, node: int) -> np.ndarray:
        """Return a node's users; two nodes that swap their numbers swap their users."""
        world = self.training.world
        a, b = CLIENTS[:2]
        order = sorted((a, b), key=lambda u: world[u].weight)
        place = 0
        for u in [*order, *CLIENTS[2:]]:
            if u == node:
                return np.arange(place, place + world[u].weight)
            place += world[u].weight
        raise KeyError(node)

    def train(self, message: Message, context: Context) -> Message:
        node, outcome = context.node_id, self.training.outcome
        outcome.views.setdefault(node, leaves({"message": {"content": message.content}}))
        reply = Node(self.trainer, RATINGS, self.users(node)).train(message, context)
        table = reply.content["arrays"]["table"].numpy()
        outcome.trained.setdefault(node, np.asarray(table, float).ravel())
        return reply

    def strategy(self, settings: Settings, active: bool) -> tuple[Any, ArrayRecord]:
        strategy = FedSum(
            self.trainer,
            n_users=USERS,
            n_items=RATINGS.n_items,
            scale=RATINGS.scale,
            largest=settings.max_weight,
        )
        self.watch(strategy)
        more = {"registry": registry(CLIENTS), "security": "active"} if active else {}
        # numbers of users are elements of the vector, and a liar can take any clip
        sums = {**strategy.sums, "clip": float(settings.max_weight)}
        suite = settings.suite_of(keyed=self.keyed)
        secure = SecAgg(strategy, key_timeout=1e-9, suite=suite, **sums, **more)
        return secure, strategy.initial_arrays

    def note(self, content: RecordDict) -> None:
        outcome, weight = self.training.outcome, float(content["metrics"]["num-examples"])
        mean = content["arrays"]["table"].numpy()
        outcome.opened = np.asarray(mean, float).ravel() * weight
        users, *_ = content["arrays"][COUNTS].numpy() * weight
        outcome.shown = {"users": float(users)}
