"""Nodes: they continue the regression on their own pictures."""

from __future__ import annotations

from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from digits.task import Regression, load_part
from secagg import ClientPolicy
from secagg.flower import SecAggMod

app = ClientApp(mods=[SecAggMod(ClientPolicy(min_clients=5))])


@app.train()
def train(message: Message, context: Context) -> Message:
    """Return the coefficients after training."""
    pictures, digits = load_part(context, test=False)
    model = Regression(message.content.array_records["arrays"])
    model.fit(pictures, digits)
    metrics = MetricRecord({"num-examples": len(digits)})
    content = RecordDict({"arrays": model.arrays(), "metrics": metrics})
    return Message(content, reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Return the accuracy on pictures of the node that are not trained on."""
    pictures, digits = load_part(context, test=True)
    model = Regression(message.content.array_records["arrays"])
    found = model.accuracy(pictures, digits)
    metrics = MetricRecord({"accuracy": found, "num-examples": len(digits)})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
