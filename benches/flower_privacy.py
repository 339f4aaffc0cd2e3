"""Accuracy of noised sums on Flower, beside a trusted server that adds the noise itself.

500 nodes in one process train the example ``examples/flower/privacy`` for 20 rounds.

    python -m benches.flower_privacy            # some minutes; --json for JSON
    python -m benches.flower_privacy --choose   # the settings, on the validation pictures
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import tomllib
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
from flwr.app import UserConfig

from secagg.flower.testing import LocalGrid
from secagg.privacy import Budget

FOLDER = Path(__file__).parents[1] / "examples" / "flower" / "privacy"
EPSILONS = (2.0, 8.0, math.inf)
_NORMS, _RATES, _STEPS = (0.25, 0.5, 1.0), (0.3, 1.0), (2.0, 4.0, 8.0)
"""Settings that `choose` compares."""
_RUNS = 5
"""Runs of the trusted server for each setting, with different noise."""


def settings() -> UserConfig:
    """Return the configuration of the example."""
    read = tomllib.loads((FOLDER / "pyproject.toml").read_text())
    return dict(read["tool"]["flwr"]["app"]["config"])


def task() -> ModuleType:
    """Return the module with the model and the data of the example."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return import_module("private_digits.task")


def distributed(epsilon: float, **given: int | float) -> float:
    """Return the accuracy of the example on the test pictures, with noise of the nodes."""
    config = {**settings(), **given, "epsilon": 0.0 if math.isinf(epsilon) else epsilon}
    task()  # the path of the example's modules
    server, client = (
        import_module(f"private_digits.{part}_app") for part in ("server", "client")
    )
    nodes = int(config["num-nodes"])
    with TemporaryDirectory() as folder:
        own: dict[int, UserConfig] = {
            node + 1: {
                "secagg-state-dir": folder,
                "partition-id": node,
                "num-partitions": nodes,
            }
            for node in range(nodes)
        }
        with redirect_stdout(sys.stderr):  # the accuracy after each round
            return float(server.run(LocalGrid(client.app, own, run_config=config), config))


def central(
    epsilon: float, part: str, seed: int, *, norm: float, step: float, rate: float
) -> float:
    """Return the accuracy if a trusted server adds exact Gaussian noise to the exact sum."""
    given, model = settings(), task()
    nodes, rounds = int(given["num-nodes"]), int(given["rounds"])
    sigma = 0.0
    if math.isfinite(epsilon):
        budget = Budget(epsilon, float(given["delta"]))
        sigma = norm * math.sqrt(rounds / budget.squares)
    drawn, pictures, found = np.random.default_rng(seed), model.load("train"), model.start()
    parts = [model.of_node(pictures, node, nodes) for node in range(nodes)]
    for _ in range(rounds):
        total = drawn.normal(0, sigma, found.shape)
        for own in parts:
            update = model.trained(found, own, rate) - found
            total += update * min(1.0, norm / float(np.linalg.norm(update)))
        found = found + step * total / nodes
    return float(model.accuracy(found, model.load(part)))


def centrals(epsilon: float, part: str, **chosen: float) -> list[float]:
    """Return the accuracies of a trusted server in some runs; without noise all are equal."""
    runs = range(_RUNS if math.isfinite(epsilon) else 1)
    return [central(epsilon, part, seed, **chosen) for seed in runs]


def choose() -> None:
    """Print the settings with the best accuracies on the validation pictures."""
    found = {}
    for norm, rate, step in itertools.product(_NORMS, _RATES, _STEPS):
        chosen = {"norm": norm, "rate": rate, "step": step}
        found[norm, rate, step] = [fmean(centrals(e, "validation", **chosen)) for e in EPSILONS]
        shown = " ".join(f"{one:.3f}" for one in found[norm, rate, step])
        print(f"norm {norm:g}, rate {rate:g}, step {step:g}: {shown}", flush=True)
    best = max(found, key=lambda key: sum(found[key]))
    print(f"best: norm {best[0]:g}, rate {best[1]:g}, step {best[2]:g}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or the settings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="JSON in place of the table")
    parser.add_argument("--choose", action="store_true", help="search for settings")
    given = parser.parse_args(arguments)
    if given.choose:
        choose()
        return
    config = settings()
    chosen = {"norm": float(config["norm"]), "step": float(config["step"])}
    rows: list[dict[str, Any]] = [
        {
            "epsilon": "inf" if math.isinf(epsilon) else epsilon,
            "distributed": distributed(epsilon),
            "central": centrals(epsilon, "test", rate=task().RATE, **chosen),
        }
        for epsilon in EPSILONS
    ]
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    print("epsilon: accuracy with noise of the nodes; of a trusted server, least and most")
    for row in rows:
        found = row["central"]
        shown = f"{fmean(found):.3f} ({min(found):.3f} to {max(found):.3f})"
        print(f"{row['epsilon']}: {row['distributed']:.3f}; {shown}")


if __name__ == "__main__":
    main()
