"""Nodes: they train on their own pictures; the mod clips the update and adds the noise."""

from __future__ import annotations

from flwr.app import ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from private_digits.task import load, of_node, trained
from secagg.flower import SecAggMod

app = ClientApp(mods=[SecAggMod()])
PICTURES = load("train")


@app.train()
def train(message: Message, context: Context) -> Message:
    """Return the model after training."""
    config = context.node_config
    mine = of_node(PICTURES, int(config["partition-id"]), int(config["num-partitions"]))
    (model,) = message.content.array_records["arrays"].to_numpy_ndarrays()
    content = RecordDict({"arrays": ArrayRecord([trained(model, mine)])})
    return Message(content, reply_to=message)
