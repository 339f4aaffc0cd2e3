"""Arguments of a wrong kind, and runs that cannot go well, are errors before any message."""

from __future__ import annotations

import logging
import time
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord
from flwr.serverapp.strategy import FedAvg

from flower_helpers import Door, Party
from flower_nodes import (
    NODES,
    assert_mean,
    configs,
    evaluate,
    model,
    run,
    secure_app,
    train,
    wrapped,
)
from secagg import ClientPolicy, ParameterError, PrecisionWarning, TooFewSurvivors
from secagg.flower.config import strictest, strictest_one_shot
from secagg.flower.testing import LocalGrid
from secagg.oneshot import OneShotPolicy
from wrong_values import AMOUNTS, COUNTS, FLAGS, IN_TOML

ARRAY = np.zeros(3)
KINDS: list[tuple[str, Any]] = [
    *(("grid", value) for value in (None, 3, "grid", LocalGrid, [1])),
    *(("initial_arrays", value) for value in (None, [ARRAY], ARRAY, {"w": ARRAY}, ArrayRecord)),
    *(("num_rounds", value) for value in (-1, 1.0, "3", None, True, 1 << 60)),
    *(("timeout", value) for value in (-1.0, "60", float("nan"), [1], True, 1j)),
    *(
        ("train_config", value)
        for value in ({"lr": 1}, "lr=1", 3, ConfigRecord, MetricRecord())
    ),
    *(("evaluate_config", value) for value in ({"lr": 1}, "lr=1", 3, [])),
    *(("evaluate_fn", value) for value in (3, "fn", {}, [])),
]


@pytest.mark.parametrize(("name", "value"), KINDS)
def test_an_argument_of_start_of_a_wrong_kind_is_named(name, value, door):
    grid = door.grid()
    given = {"grid": grid, "initial_arrays": model(), "timeout": 0.0, name: value}
    with pytest.raises(ParameterError, match=rf"^{name} "):
        door.strategy().start(**given)
    assert not grid.replies


KEYS: dict[str, tuple[Any, str]] = {
    "number": ({1: 2}, "1"),
    "key in a table": ({"train": {1: 2}}, "'train'"),
    "surrogate": ({"\ud800": 1}, "ud800"),
    "63 bits": ({"lr": 2**63}, "lr"),
    "below": ({"lr": -(2**63) - 1}, "lr"),
    "large in a table": ({"train": {"lr": 2**64}}, "train"),
    "integer of numpy": ({"lr": np.int64(1)}, "lr"),
    "text": ({"lr": "\udcff"}, "lr"),
}


@pytest.mark.parametrize(("given", "key"), KEYS.values(), ids=list(KEYS))
def test_a_configuration_names_the_wrong_key(given, key):
    for nodes, config in ((configs(), given), ({11: given}, None)):
        with pytest.raises(ParameterError) as caught:
            LocalGrid(secure_app(), nodes, run_config=config)
        assert key in str(caught.value)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0, True, 0.5, float("inf"), "é", ""])
def test_all_values_of_flower_are_sent(value):
    assert run(LocalGrid(secure_app(), configs(), run_config={"v": value})).arrays


def test_a_clip_of_few_steps_warns_once(door):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert run(door.grid(), door.strategy(clip=0.002, fractional_bits=12)).arrays
    assert [one.category for one in caught] == [PrecisionWarning]


FEW: list[tuple[int, dict[str, Any], str]] = [
    (0, {}, "min_available_nodes=2"),
    *((n, {"min_available_nodes": 9}, "min_available_nodes=9") for n in (0, 8)),
    (5, {"min_train_nodes": 6}, "min_train_nodes=6"),
    (5, {"min_evaluate_nodes": 6, "fraction_evaluate": 1.0}, "min_evaluate_nodes=6"),
]


@pytest.mark.parametrize(("nodes", "given", "argument"), FEW)
def test_a_local_grid_of_too_few_nodes_is_an_error(nodes, given, argument):
    strategy = FedAvg(**({"fraction_evaluate": 0.0} | given))
    grid = LocalGrid(secure_app(), configs(range(11, 11 + nodes)))
    with pytest.raises(ParameterError) as caught:
        wrapped(strategy, evaluate={"eval-loss": 4.0}).start(grid, model())
    assert argument in str(caught.value)
    assert f"{nodes} nodes" in str(caught.value)


def test_a_strategy_that_does_not_evaluate_needs_no_nodes_for_it():
    strategy = FedAvg(fraction_evaluate=0.0, min_evaluate_nodes=9)
    assert_mean(run(LocalGrid(secure_app(), configs()), wrapped(strategy)).arrays, NODES)


@pytest.mark.parametrize("lost", [1, 5])
def test_a_reply_that_never_comes_ends_the_exchange(lost, door, monkeypatch):
    def never(seconds: float) -> None:
        raise AssertionError("the server waits")

    monkeypatch.setattr(time, "sleep", never)
    grid = door.grid()
    grid.meddle = lambda message, answer: (
        None if message.metadata.dst_node_id in NODES[:lost] else answer(message)
    )
    strategy = door.strategy(**{"key_timeout": 60.0} if door.name == "four" else {})
    if lost == 1:
        assert_mean(strategy.start(grid, model(), num_rounds=1).arrays, NODES[1:])
    else:
        with pytest.raises(TooFewSurvivors, match="5 without a reply in time"):
            strategy.start(grid, model(), num_rounds=1)


def test_a_run_without_any_message_is_an_error(door):
    with pytest.raises(ParameterError):
        run(door.grid(), door.strategy(FedAvg(fraction_train=0.0, fraction_evaluate=0.0)))


def test_a_run_that_only_evaluates_says_so(caplog):
    strategy = wrapped(FedAvg(fraction_train=0.0), evaluate={"eval-loss": 4.0})
    with caplog.at_level(logging.WARNING, "flwr.secagg"):
        result = run(LocalGrid(secure_app(), configs()), strategy)
    assert result.evaluate_metrics_clientapp[1]["eval-loss"] > 0
    own = [one.getMessage() for one in caplog.records if one.name == "flwr.secagg"]
    assert any("fraction_train" in line for line in own)


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


ARGUMENTS: list[tuple[str, list[Any]]] = [
    ("averaging", FLAGS),
    ("max_weight", COUNTS),
    ("fractional_bits", COUNTS),
    ("threshold", COUNTS),
    ("clip", AMOUNTS),
    ("poll", AMOUNTS),
]
CONFIG: list[tuple[str, str]] = [
    ("secagg-require-active", "flags"),
    ("secagg-require-hybrid", "flags"),
    ("secagg-min-clients", "counts"),
    ("secagg-min-cohort", "counts"),
    ("secagg-min-threshold", "counts"),
    ("secagg-min-helper-threshold", "counts"),
]


@pytest.mark.parametrize(("name", "values"), ARGUMENTS, ids=[name for name, _ in ARGUMENTS])
def test_arguments_of_strategies_are_strict(
    name: str, values: list[Any], semi_honest: Party
) -> None:
    for value in values:
        for strategy in (wrapped, semi_honest.wrapped):
            with pytest.raises(ParameterError):
                strategy(**{name: value})


@pytest.mark.parametrize(
    ("name", "values"), [("key_timeout", AMOUNTS), ("neighbours", COUNTS)], ids=str
)
def test_arguments_of_rounds_are_strict(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ParameterError):
            wrapped(**{"threshold": 3, name: value})


@pytest.mark.parametrize("value", ["HYBRID", "mlkem", "", b"hybrid", 1, True, ["hybrid"]])
def test_suite_is_strict(value: Any) -> None:
    with pytest.raises(ParameterError):
        wrapped(suite=value)


@pytest.mark.parametrize("value", AMOUNTS, ids=repr)
@pytest.mark.parametrize("name", ["metrics", "evaluate"])
def test_bounds_of_metrics_are_numbers(name: str, value: Any) -> None:
    with pytest.raises(ParameterError):
        wrapped(**{name: {"loss": value}})


@pytest.mark.parametrize(("key", "kind"), CONFIG)
def test_values_of_a_node_are_strict(key: str, kind: str) -> None:
    for text in IN_TOML[kind]:
        config = tomllib.loads(f"{key} = {text}")
        with pytest.raises(ParameterError, match=key):
            strictest(ClientPolicy(), config)
        with pytest.raises(ParameterError, match=key):
            strictest_one_shot(OneShotPolicy(helpers=frozenset()), config)
