"""Nodes: they train the network on their own points."""

from __future__ import annotations

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from rings.task import accuracy, load_data, new_net, train
from secagg.flower import SecAggMod

app = ClientApp(mods=[SecAggMod()])


@app.train()
def train_net(message: Message, context: Context) -> Message:
    """Return the network after training."""
    net = new_net()
    net.load_state_dict(message.content.array_records["arrays"].to_torch_state_dict())
    points, ring = load_data(int(context.node_config["partition-id"]))
    train(net, points, ring)
    arrays = ArrayRecord(net.state_dict())
    metrics = MetricRecord({"num-examples": len(ring)})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


@app.evaluate()
def evaluate_net(message: Message, context: Context) -> Message:
    """Return the accuracy on points of the node that are not trained on."""
    net = new_net()
    net.load_state_dict(message.content.array_records["arrays"].to_torch_state_dict())
    points, ring = load_data(1000 + int(context.node_config["partition-id"]))
    found = accuracy(net, points, ring)
    metrics = MetricRecord({"accuracy": found, "num-examples": len(ring)})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
