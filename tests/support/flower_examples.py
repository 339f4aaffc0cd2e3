"""Examples for Flower on a grid in one process."""

from __future__ import annotations

import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, RecordDict
from flwr.serverapp.strategy import FedAvg, Result

from flower_nodes import configs
from secagg.flower.testing import LocalGrid

EXAMPLES = Path(__file__).parents[2] / "examples" / "flower"


def run_example(
    folder: Path, patch: pytest.MonkeyPatch, nodes: int, **config: Any
) -> tuple[LocalGrid, Result]:
    """Run an application and return its grid and the last result of its strategy."""
    app = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    config = {**app["config"], **config}
    package = app["components"]["serverapp"].partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        patch.delitem(sys.modules, name)
    patch.syspath_prepend(folder)
    server, client = (
        import_module(app["components"][part].partition(":")[0]).app
        for part in ("serverapp", "clientapp")
    )
    own = configs(range(1, nodes + 1))
    for node, given in own.items():
        given.update({"partition-id": node - 1, "num-partitions": nodes})
    grid = LocalGrid(client, own, run_config=config)
    results, start = [], FedAvg.start

    def recorded(*arguments: Any, **named: Any) -> Result:
        results.append(start(*arguments, **named))
        return results[-1]

    patch.setattr(FedAvg, "start", recorded)
    server(grid, Context(1, 1, {}, RecordDict(), config))
    patch.undo()
    return grid, results[-1]
