"""Arguments of a wrong kind, and runs that would wait for ever, are errors of the project."""

from __future__ import annotations

import logging
import time
import warnings
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg

from flower_nodes import (
    NODES,
    Meddler,
    assert_mean,
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
from secagg import ParameterError, PrecisionWarning, TooFewSurvivors
from secagg.flower import SecAggMod
from secagg.flower.testing import LocalGrid

ARRAY = np.zeros(3)
KINDS: list[tuple[str, Any]] = [
    *(("grid", value) for value in (None, 3, "grid", LocalGrid, [1])),
    *(("initial_arrays", value) for value in (None, [ARRAY], ARRAY, {"w": ARRAY}, ArrayRecord)),
    *(("initial_arrays", value) for value in (MetricRecord(), b"", RecordDict())),
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
@pytest.mark.parametrize("shot", ["four", "one"])
def test_an_argument_of_start_of_a_wrong_kind_is_named(name, value, shot, semi_honest):
    grid = LocalGrid(secure_app(), configs())
    given = {"grid": grid, "initial_arrays": model(), "timeout": 0.0, name: value}
    strategy = wrapped() if shot == "four" else semi_honest.wrapped()
    with pytest.raises(ParameterError, match=rf"^{name} "):
        strategy.start(**given)
    assert not grid.replies


KEYS: dict[str, tuple[Any, str]] = {
    "number": ({1: 2}, "1"),
    "numbers and texts": ({"lr": 1, 2: 2}, "2"),
    "nothing": ({None: 2}, "None"),
    "pair": ({("a", "b"): 2}, "'a', 'b'"),
    "bytes": ({b"lr": 2}, "b'lr'"),
    "key in a table": ({"train": {1: 2}}, "'train'"),
    "surrogate": ({"\ud800": 1}, "ud800"),
    "large": ({"lr": 2**70}, "lr"),
    "63 bits": ({"lr": 2**63}, "lr"),
    "below": ({"lr": -(2**63) - 1}, "lr"),
    "large in a table": ({"train": {"lr": 2**64}}, "train"),
    "complex": ({"lr": 1j}, "lr"),
    "set": ({"lr": {1}}, "lr"),
    "none": ({"lr": None}, "lr"),
    "integer of numpy": ({"lr": np.int64(1)}, "lr"),
    "text": ({"lr": "\udcff"}, "lr"),
}


@pytest.mark.parametrize(("given", "key"), KEYS.values(), ids=list(KEYS))
@pytest.mark.parametrize("place", ["run", "node"])
def test_a_configuration_names_the_wrong_key(given, key, place):
    nodes, config = (configs(), given) if place == "run" else ({11: given}, None)
    with pytest.raises(ParameterError) as caught:
        LocalGrid(secure_app(), nodes, run_config=config)
    assert key in str(caught.value)
    assert ("run_config" if place == "run" else "node 11") in str(caught.value)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0, True, 0.5, float("inf"), "é", ""])
def test_all_values_of_flower_are_sent(value):
    assert run(LocalGrid(secure_app(), configs(), run_config={"v": value})).arrays


@pytest.mark.parametrize("fractional_bits", range(10, 16))
@pytest.mark.parametrize("shot", ["four", "one"])
def test_a_clip_of_few_steps_warns_once(fractional_bits, shot, semi_honest):
    app = secure_app() if shot == "four" else semi_honest.app()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        given = {"clip": 0.002, "fractional_bits": fractional_bits}
        strategy = wrapped(**given) if shot == "four" else semi_honest.wrapped(**given)
        assert run(LocalGrid(app, configs()), strategy).arrays
    assert [one.category for one in caught] == [PrecisionWarning]


FEW: list[tuple[int, dict[str, Any], str]] = [
    *((n, {"min_available_nodes": 9}, "min_available_nodes=9") for n in (0, 3, 4, 8)),
    *((n, {"min_train_nodes": 6}, "min_train_nodes=6") for n in (0, 1, 5)),
    *((n, {}, "min_available_nodes=2") for n in (0, 1)),
    (5, {"min_evaluate_nodes": 6, "fraction_evaluate": 1.0}, "min_evaluate_nodes=6"),
    (5, {"min_train_nodes": 7, "fraction_train": 0.1}, "min_train_nodes=7"),
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


@pytest.mark.parametrize("lost", range(1, 6))
@pytest.mark.parametrize("shot", ["four", "one"])
def test_a_reply_that_never_comes_ends_the_exchange(lost, shot, semi_honest, monkeypatch):
    def never(seconds: float) -> None:
        raise AssertionError("the server waits")

    monkeypatch.setattr(time, "sleep", never)
    app = secure_app() if shot == "four" else semi_honest.app()
    grid = Meddler(app, configs())
    grid.meddle = lambda message, answer: (
        None if message.metadata.dst_node_id in NODES[:lost] else answer(message)
    )
    strategy = wrapped(key_timeout=60.0) if shot == "four" else semi_honest.wrapped()
    if lost == 1:
        assert_mean(strategy.start(grid, model(), num_rounds=1).arrays, NODES[1:])
    else:
        with pytest.raises(TooFewSurvivors, match=f"{lost} without a reply in time"):
            strategy.start(grid, model(), num_rounds=1)


@pytest.mark.parametrize("fewest", range(5, 15))
def test_a_policy_above_the_sum_names_the_argument(fewest, semi_honest, caplog):
    """More time or nodes would not help, so the error does not advise them."""
    grid = LocalGrid(semi_honest.app(min_clients=fewest), configs())
    with (
        caplog.at_level(logging.ERROR, "flwr.secagg"),
        pytest.raises(TooFewSurvivors) as caught,
    ):
        run(grid, semi_honest.wrapped())
    assert "min_clients" in str(caught.value)
    assert "wait longer" not in str(caught.value)
    causes = {str(error) for error in logged_errors(caplog.records)}
    assert all(f"min_clients={fewest}" in cause for cause in causes)
    if fewest == 5:  # the remedy works
        given = semi_honest.wrapped(min_clients=5)
        app = semi_honest.app(min_clients=5)
        assert_mean(run(LocalGrid(app, configs()), given).arrays, NODES)


@pytest.mark.parametrize("other", [{"lr": 1.0}, {"lr": "0.5"}, {}, {"lr": 0.5, "more": True}])
def test_another_configuration_names_what_is_compared(other, caplog):
    grid = LocalGrid(secure_app(), configs(), run_config={"lr": 0.5})
    grid.contexts[NODES[0]].run_config = other
    with caplog.at_level(logging.ERROR, "flwr.secagg"):
        assert_mean(run(grid).arrays, NODES[1:])
    (cause,) = map(str, logged_errors(caplog.records))
    assert all(word in cause for word in ("message", "plan", "run_config", *other))
    assert not any(
        "lr" in str(reply.error.reason) for reply in grid.replies if reply.has_error()
    )


@pytest.mark.parametrize("number", [-1, -3, -4711, -(2**62), -3.0, -0.5, 1.5, 1e300, -1e300])
def test_a_weight_out_of_range_names_its_key_and_no_number(number, caplog):
    def reply(message: Message, context: Any) -> Message:
        found = train(message, context)
        if context.node_id == NODES[0]:
            found.content["metrics"]["num-examples"] = number
        return found

    with caplog.at_level(logging.ERROR, "flwr.secagg"):
        run(LocalGrid(secure_app(train=reply), configs()))
    causes = list(map(str, logged_errors(caplog.records)))
    assert len(causes) == (number != 1e300)  # a whole number above the largest is lowered
    assert all("num-examples" in cause and str(number) not in cause for cause in causes)


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_run_without_any_message_is_an_error(rounds, semi_honest):
    strategy = FedAvg(fraction_train=0.0, fraction_evaluate=0.0)
    for door in (wrapped, semi_honest.wrapped):
        with pytest.raises(ParameterError, match="fraction_train"):
            run(LocalGrid(secure_app(), configs()), door(strategy), rounds)


def test_a_run_that_only_evaluates_says_so(caplog):
    strategy = wrapped(FedAvg(fraction_train=0.0), evaluate={"eval-loss": 4.0})
    with caplog.at_level(logging.WARNING, "flwr.secagg"):
        result = run(LocalGrid(secure_app(), configs()), strategy)
    assert result.evaluate_metrics_clientapp[1]["eval-loss"] > 0
    own = [one.getMessage() for one in caplog.records if one.name == "flwr.secagg"]
    assert any("fraction_train" in line for line in own)


NAMES = ("accuracy", "age", "f1", "auc", "loss", "é", "a b", "%s", "secagg", "num")


@pytest.mark.parametrize("name", NAMES)
def test_an_undeclared_metric_is_named_in_the_nodes_log_alone(name, caplog):
    def reply(message: Message, context: Any) -> Message:
        found = evaluate(message, context)
        found.content["metrics"][name] = 0.5
        return found

    app = make_app([SecAggMod(public=["num-examples", "eval-loss"])], evaluate=reply)
    grid = LocalGrid(app, configs())
    with caplog.at_level(logging.WARNING, "flwr.secagg"):
        run(grid, wrapped(FedAvg(), evaluate={}))
    lines = [one.getMessage() for one in caplog.records if "refused" in one.getMessage()]
    assert len(lines) == len(NODES)
    assert all(repr(name) in line and "public=[" in line for line in lines)
    (reason,) = {one.error.reason for one in grid.replies if one.has_error()}
    assert "public=[" in reason
    assert repr(name) not in reason
