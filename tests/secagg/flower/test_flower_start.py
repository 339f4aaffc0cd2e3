"""Runs that cannot go well are errors of the server, before any node gets a message."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg

from flower_helpers import Door
from flower_nodes import (
    configs,
    evaluate,
    logged_errors,
    make_app,
    model,
    run,
    secure_app,
    train,
    wrapped,
)
from secagg import ParameterError, RemoteProtocolError, TooFewSurvivors
from secagg.flower import SecAggMod
from secagg.flower.testing import LocalGrid

NAN, INF = np.nan, np.inf


def spoiled(bad: float, dtype: Any = np.float64) -> ArrayRecord:
    return model(w=np.zeros(3), causal=np.array([[0, bad], [0, 0]], dtype), n=np.array(3))


@pytest.mark.parametrize("bad", [INF, -INF, NAN])
def test_an_excluded_array_may_be_infinite(bad):
    grid = LocalGrid(secure_app(), configs())
    strategy = wrapped(exclude=["n", "causal"])
    if np.isnan(bad):
        with pytest.raises(ParameterError, match="'causal'") as caught:
            strategy.start(grid, spoiled(bad), num_rounds=1, timeout=0.0)
        assert "exclude" not in str(caught.value)
        return
    found = strategy.start(grid, spoiled(bad), num_rounds=1, timeout=0.0)
    assert found.arrays["causal"].numpy()[0, 1] == bad


@pytest.mark.parametrize("summed", [{"eval-loss": 4.0}, {}], ids=["summed", "public"])
@pytest.mark.parametrize("bad", [INF, -INF, NAN])
def test_a_model_that_a_strategy_spoiled_is_not_sent_to_be_evaluated(bad, summed):
    class Diverging(FedAvg):
        def aggregate_train(self, server_round, replies):
            found, metrics = super().aggregate_train(server_round, replies)
            found["bias"] = model(bias=np.full(5, bad))["bias"]
            return found, metrics

    evaluated: list[int] = []

    def noting(message: Message, context: Context) -> Message:
        evaluated.append(context.node_id)
        return evaluate(message, context)

    app = make_app([SecAggMod(public=["num-examples", "eval-loss"])], evaluate=noting)
    strategy = wrapped(Diverging(), averaging=True, evaluate=summed)
    with pytest.raises(ParameterError):
        run(LocalGrid(app, configs()), strategy)
    assert not evaluated


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"min_train_nodes": 2, "fraction_train": 0.1}, "min_train_nodes=3"),
        ({"min_available_nodes": 5, "fraction_train": 0.5}, "min_train_nodes=3"),
        ({"min_evaluate_nodes": 2, "fraction_evaluate": 0.5}, "min_evaluate_nodes=3"),
    ],
)
def test_too_few_sampled_nodes_name_the_argument(given, argument):
    strategy = wrapped(
        FedAvg(**({"fraction_evaluate": 0.0} | given)), evaluate={"eval-loss": 4.0}
    )
    with pytest.raises(TooFewSurvivors) as caught:
        run(LocalGrid(secure_app(), configs()), strategy)
    assert argument in str(caught.value)
    other = {"min_train_nodes", "min_evaluate_nodes"} - {argument.partition("=")[0]}
    assert other.pop() not in str(caught.value)


def bare(message: Message, context: Context) -> RecordDict:
    return RecordDict({"arrays": model(), "metrics": MetricRecord({"num-examples": 1})})


RETURNED = {
    "None": lambda message, context: None,
    "records": bare,
    "class": lambda message, context: Message,
}


@pytest.mark.parametrize("returned", RETURNED.values(), ids=list(RETURNED))
@pytest.mark.parametrize("kind", ["train", "evaluate"])
def test_an_app_that_returns_no_message_is_told_what_to_return(returned, kind, caplog):
    """The node's own log has it; the server sees zeros, or the class of the error."""
    caplog.set_level(logging.ERROR, "flwr.secagg")
    functions = {"train": train, "evaluate": evaluate} | {kind: returned}
    app = make_app([SecAggMod(public=["num-examples"])], **functions)
    grid = LocalGrid(app, configs())
    if kind == "train":
        with pytest.raises(RemoteProtocolError) as caught:
            run(grid)
        assert caught.value.check == "weight"
    else:
        run(grid, wrapped(FedAvg(), evaluate={}))
    texts = {str(one) for one in logged_errors(caplog.records)}
    assert len(texts) == 1
    assert "return Message(" in texts.pop()


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
    "by name": {"local-epochs": 2},
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


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[project]\nname = 1",
        "not toml [",
        TOML.replace("2", "[1]"),
        TOML.replace("flwr", "x"),
    ],
    ids=["empty", "no app", "no toml", "list", "other tool"],
)
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
