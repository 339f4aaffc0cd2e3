"""Nodes: they add their known update, or commit the fault that the run has for them.

``faults`` of a run has words such as "2:1:die": the node of partition 1 dies in round 2.
"""

from __future__ import annotations

import os
import signal
import time

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
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable

from secagg import ClientPolicy
from secagg.flower import OneShotMod, SecAggMod
from sums.known import mark, update, weight


def place(message: Message, context: Context) -> str:
    """Return round and partition, with which a fault begins."""
    number = message.content["config"]["server-round"]
    return f"{number}:{context.node_config['partition-id']}:"


def fault_of(message: Message, context: Context) -> str:
    """Return the fault that is due, "" for none and where a node does not train."""
    if "config" not in message.content:
        return ""
    begin = place(message, context)
    words = str(context.run_config["faults"]).split()
    return next((w.removeprefix(begin) for w in words if w.startswith(begin)), "")


def meddle(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Return garbage in place of a masked input, or answer twice from one state."""
    fault, before = fault_of(message, context), context.state.get("secagg")
    records = dict(message.content.items())
    reply = call_next(message, context)
    if fault == "garbage":
        reply.content = RecordDict({"secagg": ConfigRecord({"data": b"garbage"})})
    elif fault == "replay":
        after = context.state.get("secagg")
        restore(context, before)
        message.content = RecordDict(records)
        second = call_next(message, context)
        restore(context, after)
        mark(context.run_config["folder"], "replayed " + second.error.reason)
    return reply


def restore(context: Context, state: ConfigRecord | None) -> None:
    """Put the state of a client back; a node of one-shot sums has none."""
    if state is not None:
        context.state["secagg"] = state


def protect(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Answer by the protocol of the run; the node's configuration names its helpers."""
    one_shot = context.run_config["one-shot"]
    mod = OneShotMod() if one_shot else SecAggMod(ClientPolicy(min_clients=3))
    return mod(message, context, call_next)


app = ClientApp(mods=[meddle, protect])


@app.train()
def train(message: Message, context: Context) -> Message:
    folder, partition = context.run_config["folder"], context.node_config["partition-id"]
    match fault_of(message, context):
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise RuntimeError("patient 4711")
        case "hang":
            mark(folder, f"hangs {partition}")
            time.sleep(600)
        case "late":
            while not os.path.exists(os.path.join(folder, "closed")):
                time.sleep(0.1)
    arrays = message.content["arrays"]
    model = arrays["model"].numpy()
    number = message.content["config"]["server-round"]
    found = model + update(partition, number, model.size).astype(np.float32)
    measured = MetricRecord({"num-examples": weight(partition)})
    record = ArrayRecord({"model": Array(found)})
    return Message(RecordDict({"arrays": record, "metrics": measured}), reply_to=message)
