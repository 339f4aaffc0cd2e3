"""Runs that cannot go well are errors of the server, before any node gets a message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, Message
from flwr.serverapp.strategy import FedAvg

from flower_helpers import Door
from flower_nodes import (
    configs,
    evaluate,
    model,
    run,
    secure_app,
    train,
)
from secagg import ParameterError
from secagg.flower.testing import LocalGrid


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_an_excluded_array_may_be_infinite(bad: float, door: Door) -> None:
    start = model(w=np.zeros(3), causal=np.array([[0, bad], [0, 0]]), n=np.array(3))
    found = door.strategy(exclude=["n", "causal"]).start(door.grid(), start, num_rounds=1)
    assert found.arrays["causal"].numpy()[0, 1] == bad


@pytest.mark.parametrize("summed", [{"eval-loss": 4.0}, {}], ids=["summed", "public"])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_model_that_a_strategy_spoiled_is_not_sent_to_be_evaluated(bad, summed, door):
    class Diverging(FedAvg):
        def aggregate_train(self, server_round, replies):
            found, metrics = super().aggregate_train(server_round, replies)
            found["bias"] = model(bias=np.full(5, bad))["bias"]
            return found, metrics

    grid = door.grid(evaluate=evaluate, public=["num-examples", "eval-loss"])
    strategy = door.strategy(Diverging(), averaging=True, evaluate=summed)
    with pytest.raises(ParameterError):
        run(grid, strategy)
    assert {reply.metadata.message_type for reply in grid.replies} == {"train"}


TOML = """
[project]
name = "app"
version = "1"
[tool.flwr.app]
publisher = "me"
[tool.flwr.app.components]
serverapp = "a:app"
clientapp = "a:app"
[tool.flwr.app.config]
local-epochs = 2
"""
CONFIGS: dict[str, Any] = {
    "a float of numpy": {"local-epochs": np.float64(2)},
    "tables": {"local-epochs": 2, "train": {"lr": 0.1, "warm": {"up": True}}},
    "folder": TOML,
}


@pytest.mark.parametrize("given", CONFIGS.values(), ids=list(CONFIGS))
def test_local_grid_has_the_runs_configuration(given, tmp_path: Path):
    seen: list[dict[str, Any]] = []

    def noting(message: Message, context: Context) -> Message:
        seen.append(dict(context.run_config))
        return train(message, context)

    if isinstance(given, str):
        (tmp_path / "pyproject.toml").write_text(given)
        given = str(tmp_path)
    assert run(LocalGrid(secure_app(train=noting), configs(), run_config=given)).arrays
    assert seen[0]["local-epochs"] == 2
    if "train" in given:
        assert (seen[0]["train.lr"], seen[0]["train.warm.up"]) == (0.1, True)


WRONG: dict[str, Any] = {
    "nothing": {"lr": None},
    "list": {"lr": [1, 2]},
    "class": {"lr": int},
    "argument of flwr run": "lr=0.1",
    "no folder": "/nonexistent",
    "pairs": [("lr", 0.1)],
    "number": 3,
}


@pytest.mark.parametrize("given", WRONG.values(), ids=list(WRONG))
def test_other_configurations_are_errors(given):
    with pytest.raises(ParameterError):
        LocalGrid(secure_app(), configs(), run_config=given)


@pytest.mark.parametrize("content", ["", "not toml [", TOML.replace("2", "[1]")])
def test_a_folder_without_an_application_is_an_error(content, tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(content)
    with pytest.raises(ParameterError):
        LocalGrid(secure_app(), configs(), run_config=tmp_path)


@pytest.mark.parametrize("fraction", [None, 1, 0.2])
def test_a_strategy_that_evaluates_needs_bounds(fraction: Any, door: Door) -> None:
    given = {} if fraction is None else {"fraction_evaluate": fraction}
    grid = door.grid()
    with pytest.raises(ParameterError):
        run(grid, door.strategy(FedAvg(**given)))
    assert not grid.replies
    assert run(grid, door.strategy(FedAvg(**given), evaluate={})).arrays
