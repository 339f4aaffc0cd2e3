"""The application in one process, on a `LocalGrid`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
from flwr.app import Context, RecordDict, UserConfig
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

from benches.flower_rounds.app.meter import RESULT
from benches.flower_rounds.app.work import F64, trained
from secagg.flower.testing import LocalGrid

NODES = range(11, 19)
LENGTH = 20_000
Configs = dict[int, UserConfig]


@dataclass(frozen=True)
class Finished:
    """Model after one round, the round's figures, and the metrics that it reported."""

    model: F64
    figures: Mapping[str, float]
    reported: Mapping[str, float]

    def error(self, nodes: Sequence[int], configs: Configs) -> float:
        """Return the largest error, compared with the mean of some nodes."""
        start = np.zeros(LENGTH, np.float32)
        models, weights = zip(*(trained(start, 1, configs[u]) for u in nodes), strict=True)
        due = np.average(np.array(models, np.float64), axis=0, weights=weights)
        return float(np.abs(self.model - due).max())


def client_app(variant: str) -> ClientApp:
    """Return the nodes' app of a variant."""
    app = import_module(f"benches.flower_rounds.app.{variant}_client").app
    assert isinstance(app, ClientApp)
    return app


def configurations(folder: Path) -> Configs:
    """Return the configurations of all nodes by their ids."""
    return {
        node: {"partition-id": partition, "secagg-state-dir": str(folder)}
        for partition, node in enumerate(NODES)
    }


def run(variant: str, grid: LocalGrid, folder: Path) -> Finished:
    """Run the server's app of a variant for one round."""
    server = import_module(f"benches.flower_rounds.app.{variant}_server").app
    assert isinstance(server, ServerApp)
    config: UserConfig = {"nodes": len(NODES), "length": LENGTH, "rounds": 1}
    config |= {"folder": str(folder), "poll": 0.01, "timeout": 60.0}
    server(grid, Context(1, 1, {}, RecordDict(), config))
    found = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    (figures,) = found["rounds"]
    return Finished(np.load(folder / "model-1.npy"), figures, found["reported"].get("1", {}))
