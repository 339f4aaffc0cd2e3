"""Nodes: they return the model after an imitation of training."""

from __future__ import annotations

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from quickstart_numpy.task import train_dummy_model
from secagg.flower import SecAggMod

app = ClientApp(mods=[SecAggMod()])


@app.train()
def train(msg: Message, context: Context) -> Message:
    """Return the model that the node makes of the global one."""
    model = msg.content.array_records["arrays"].to_numpy_ndarrays()
    trained, metric = train_dummy_model(model, int(context.node_config["partition-id"]))
    metrics = MetricRecord({"random_metric": metric, "num-examples": 1})
    content = RecordDict({"arrays": ArrayRecord(trained), "metrics": metrics})
    return Message(content, reply_to=msg)
