"""Server: it stores the model after each round, and waits for the test where a fault says so.

The word "2:pause" of ``faults`` lets it wait, in round 2, after the masked inputs.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context, UserConfig
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from secagg import Identity, Registry
from secagg.flower import OneShot, RemoteHelper, SecAgg
from sums.known import mark, planned

app = ServerApp()


def protected(strategy: FedAvg, folder: Path, config: UserConfig) -> SecAgg | OneShot:
    """Return the strategy over the sums of the run's protocol."""
    if config["epsilon"]:
        noise = planned(config["length"], config["epsilon"])
        return SecAgg(strategy, noise=noise, key_timeout=config["key-timeout"])
    bounds, timeout = {"clip": 1.0, "max_weight": 100}, config["key-timeout"]
    if config["one-shot"]:
        identity = Identity.from_pem((folder / "aggregator.pem").read_bytes())
        helpers = RemoteHelper.read(folder / "helpers.json", identity=identity)
        return OneShot(strategy, helpers=helpers, **bounds, helper_timeout=timeout)
    active = config["security"] == "active"
    registry = Registry.from_json((folder / "registry.json").read_bytes()) if active else None
    return SecAgg(
        strategy,
        **bounds,
        key_timeout=timeout,
        security=config["security"],
        registry=registry,
        threshold=config["threshold"] or None,
    )


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    folder, rounds = Path(config["folder"]), [0]
    push = grid.push_messages

    def pausing(messages):
        messages = list(messages)
        if messages and messages[0].content["secagg"]["phase"] == "unmasking":
            if f"{rounds[0] + 1}:pause" in config["faults"].split():
                mark(folder, "paused")
                while not os.path.exists(folder / "go"):
                    time.sleep(0.1)
            mark(folder, "closed")
        return push(messages)

    def store(number, arrays):
        rounds[0] = number
        np.save(folder / f"{number}.part", arrays["model"].numpy())
        os.replace(folder / f"{number}.part.npy", folder / f"{number}.npy")

    grid.push_messages = pausing
    strategy = FedAvg(fraction_evaluate=0.0)
    start = ArrayRecord({"model": Array(np.zeros(config["length"], dtype=np.float32))})
    protected(strategy, folder, config).start(
        grid,
        start,
        num_rounds=config["rounds"],
        timeout=config["timeout"],
        evaluate_fn=store,
    )
