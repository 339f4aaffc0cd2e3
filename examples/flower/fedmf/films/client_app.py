"""Nodes: their users' ratings and factors stay here."""

from __future__ import annotations

import numpy as np
from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedmf.flower import Node
from films.task import load_split, recommender, users_of
from secagg import ClientPolicy
from secagg.flower import SecAggMod

app = ClientApp(mods=[SecAggMod(ClientPolicy(min_clients=5))])


@app.train()
def train(message: Message, context: Context) -> Message:
    """Return the sum of the users' tables."""
    ratings = load_split(context).train
    node = Node(recommender(context), ratings, users_of(context, ratings.n_users))
    return node.train(message, context)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Return the mean squared error of the trained model on the users' test ratings."""
    split = load_split(context)
    users = users_of(context, split.train.n_users)
    node = Node(recommender(context), split.train, users)
    model = node.model(message.content.array_records["arrays"], context)
    test = split.test.take(np.isin(split.test.users, users))
    error = np.mean((test.values - model.predict(test.users, test.items)) ** 2)
    metrics = MetricRecord({"squared-error": float(error), "num-examples": len(test)})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
