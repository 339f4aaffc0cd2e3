"""Client and server of the variants on the Message API."""

from __future__ import annotations

import numpy as np
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Strategy

from .meter import metered
from .work import trained


def train(message: Message, context: Context) -> Message:
    """Return a node's model and weight."""
    arrays, config = message.content["arrays"], message.content["config"]
    assert isinstance(arrays, ArrayRecord)
    assert isinstance(config, ConfigRecord)
    number = int(str(config["server-round"]))
    model, weight = trained(arrays["model"].numpy(), number, context.node_config)
    record = ArrayRecord({"model": Array(model)})
    measured = MetricRecord({"num-examples": weight})
    return Message(RecordDict({"arrays": record, "metrics": measured}), reply_to=message)


def fedavg(context: Context) -> FedAvg:
    """Return the strategy of all variants: all nodes train, and none evaluates."""
    nodes = int(context.run_config["nodes"])
    return FedAvg(fraction_evaluate=0.0, min_train_nodes=nodes, min_available_nodes=nodes)


def run(strategy: Strategy, grid: Grid, context: Context) -> None:
    """Run the rounds of a strategy and measure them."""
    config = context.run_config
    start = np.zeros(int(config["length"]), np.float32)
    with metered(grid, context) as meter:

        def evaluate(number: int, arrays: ArrayRecord) -> None:
            meter.after_round(number, arrays["model"].numpy())

        result = strategy.start(
            grid,
            ArrayRecord({"model": Array(start)}),
            num_rounds=int(config["rounds"]),
            timeout=float(config["timeout"]),
            evaluate_fn=evaluate,
        )
        meter.reported = result.train_metrics_clientapp
