"""Nodes: they answer the steps of the plan, with a ledger in ``secagg-state-dir``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from hospitals.task import PLAN, table
from secagg.flower import SecAggMod
from secagg.statistics import Ledger, Site

app = ClientApp(mods=[SecAggMod()])


@app.train()
def train(message: Message, context: Context) -> Message:
    """Return the vector of the step that the message asks for."""
    number = int(context.node_config["partition-id"])
    folder = Path(str(context.node_config["secagg-state-dir"]))
    # each message can be in a process of its own, so the ledger is a file
    ledger = Ledger(folder / f"hospital-{number}.ledger")
    study = message.content.config_records["config"]["study"]
    assert isinstance(study, bytes), "the server's config has the message"
    vector = Site(table(number), PLAN, ledger=ledger)(study)
    arrays = ArrayRecord({"sums": Array(vector.astype(np.float64))})
    content = RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 1})})
    return Message(content, reply_to=message)
