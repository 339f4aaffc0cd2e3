"""The list of strategies: each agrees with its plain run, and all others name a remedy."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import ConfigRecord, MetricRecord, RecordDict
from flwr.serverapp import strategy as flower
from flwr.serverapp.strategy import (
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedProx,
    FedYogi,
    Strategy,
)
from flwr.supercore.run import Run

from flower_helpers import Door
from flower_nodes import (
    configs,
    evaluate,
    fedavg,
    make_app,
    model,
    run,
    secure_app,
    train,
    wrapped,
)
from secagg import ParameterError, TooFewSurvivors
from secagg.flower import SecureGrid
from secagg.flower.testing import LocalGrid

NOISE = {"noise_multiplier": 0.1, "num_sampled_clients": 50}
AVERAGING = {
    **{kind.__name__: (kind, {}) for kind in (FedAvg, FedAdam, FedYogi, FedAdagrad)},
    "FedProx": (FedProx, {"proximal_mu": 0.1}),
    "FedAvgM": (FedAvgM, {"server_momentum": 0.9}),
}
CLIPPING = ("ServerSideAdaptive", "ServerSideFixed", "ClientSideAdaptive", "ClientSideFixed")
REJECTED = {
    **dict.fromkeys(f"DifferentialPrivacy{kind}Clipping" for kind in CLIPPING),
    **dict.fromkeys(("Bulyan", "FedMedian", "FedTrimmedAvg", "FedXgbBagging", "FedXgbCyclic")),
    **dict.fromkeys(("Krum", "MultiKrum")),
    "QFedAvg": {"client_learning_rate": 0.1},
}
"""Arguments of strategies without a secure form."""


def rejected(name: str) -> Strategy:
    given = dict(REJECTED[name] or {})
    if name.endswith("FixedClipping"):
        given["clipping_norm"] = 1.0
    if name.endswith("Clipping"):
        given |= {"strategy": FedAvg(), **NOISE}
    return getattr(flower, name)(**given)


def test_every_strategy_of_flower_is_accepted_or_rejected():
    assert set(flower.__all__) - {"Result", "Strategy"} == set(AVERAGING) | set(REJECTED)


@pytest.mark.parametrize("name", AVERAGING)
def test_accepted_strategy_agrees_with_its_plain_run(name: str, door: Door) -> None:
    kind, given = AVERAGING[name]
    plain, own = (kind(fraction_evaluate=0.0, **given) for _ in range(2))
    plain = plain.start(LocalGrid(make_app([]), configs()), model())
    secure = door.strategy(own, fractional_bits=30).start(door.grid(), model())
    for array, expected in plain.arrays.items():
        found = secure.arrays[array].numpy()
        np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", REJECTED)
@pytest.mark.parametrize("averaging", [False, True], ids=["default", "averaging"])
def test_rejected_strategy_is_named(name: str, averaging: bool, door: Door) -> None:
    with pytest.raises(ParameterError, match=rf"^{name}\b"):
        door.strategy(rejected(name), averaging=averaging)


def test_own_strategy_is_accepted_if_it_is_declared():
    class Bare(Strategy):
        configure_train = configure_evaluate = aggregate_train = aggregate_evaluate = None
        summary = None

    for kind in (type("Own", (FedAvg,), {}), Bare):
        assert wrapped(kind(), averaging=True)
        with pytest.raises(ParameterError):
            wrapped(kind())
    with pytest.raises(ParameterError):
        wrapped(type("OwnMedian", (FedMedian,), {})(), averaging=True)


def test_own_function_for_metrics_is_accepted_if_it_is_declared():
    def largest(records, weight):
        return MetricRecord({"loss": max(one["metrics"]["train-loss"] for one in records)})

    train, evaluate = {"train_metrics_aggr_fn": largest}, {"evaluate_metrics_aggr_fn": largest}
    with pytest.raises(ParameterError):
        wrapped(fedavg(**train))
    with pytest.raises(ParameterError):
        wrapped(FedAvg(**evaluate), evaluate={"eval-loss": 4.0})
    assert wrapped(FedAvg(**evaluate))  # gets the nodes' own replies
    assert wrapped(FedAvg(**train), averaging=True)
    assert wrapped(FedAvg(**evaluate), evaluate={"eval-loss": 4.0}, averaging=True)


def test_application_may_start_the_same_strategy_within_a_start():
    strategy, grid = wrapped(), LocalGrid(secure_app(), configs())

    def again(number, _):
        if number == 0:
            strategy.start(grid, model(), 1)

    assert len(strategy.start(grid, model(), 1, evaluate_fn=again).arrays) == len(model())
    assert "aggregate_train" not in vars(strategy._strategy)


def test_wrapper_must_be_outermost():
    kind = flower.DifferentialPrivacyClientSideFixedClipping
    outer = kind(wrapped(), clipping_norm=1.0, **NOISE)
    with pytest.raises(ParameterError):
        outer.start(LocalGrid(secure_app(), configs()), model())
    with pytest.raises(ParameterError):
        wrapped(wrapped())


@pytest.mark.parametrize(
    "settings",
    [
        {"clip": 2.0**60},
        {"on_failure": "retry"},
        {"neighbours": 4},
        {"exclude": "bias"},
        {"metrics": {"loss": 0.0}},
        {"metrics": ["loss"]},
        {"metrics": {"num-examples": 100.0}},
        {"metrics": {"secagg-clipped": 100.0}},
        {"evaluate": {"secagg-clipped-nodes": 1.0}},
        {"evaluate": {"loss": 1.0, "secagg-missing-loss": 1.0}},
        {"evaluate": {"loss": float("inf")}},
    ],
    ids=str,
)
def test_settings_out_of_range_are_rejected(settings: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        wrapped(**settings)


@pytest.mark.parametrize(
    ("arrays", "settings"),
    [
        ({"steps": np.array(3)}, {}),
        ({"w": np.ones(2)}, {"exclude": ["other"]}),
        ({"steps": np.array(3)}, {"exclude": ["steps"], "metrics": {"train-loss": 1.0}}),
        ({"flags": np.ones(3, dtype=bool), "w": np.ones(2)}, {}),
        ({}, {"exclude": ["weights", "bias", "scale"]}),
    ],
    ids=["integer", "unknown", "metric", "bool", "none left"],
)
def test_model_with_other_arrays_than_floats_is_rejected(
    arrays: dict[str, np.ndarray], settings: dict[str, object]
) -> None:
    with pytest.raises(ParameterError):
        wrapped(**settings).start(LocalGrid(secure_app(), configs()), model(**arrays))


@pytest.mark.parametrize(
    ("settings", "least"),
    [({}, 3), ({"threshold": 4}, 4), ({"neighbours": 4, "threshold": 3}, 5)],
)
def test_too_few_nodes_for_a_sum_are_an_error_or_skipped(settings, least, door):
    if door.name == "one" and settings:
        settings = {"min_clients": least}
    grid = door.grid(nodes=configs(range(11, 10 + least)))
    with pytest.raises(TooFewSurvivors) as caught:
        run(grid, door.strategy(**settings))
    assert (caught.value.survivors, caught.value.needed) == (least - 1, least)
    assert not run(grid, door.strategy(**settings, on_failure="skip")).arrays
    assert not grid.replies


@pytest.mark.parametrize("threshold", [3, 4])
def test_threshold_is_the_one_that_is_given(threshold: int) -> None:
    grid = LocalGrid(secure_app(), configs(nodes=range(11, 15)))
    grid.drop(11, 2)
    found = run(grid, wrapped(threshold=threshold, on_failure="skip")).arrays
    assert bool(found) == (threshold == 3)


def test_evaluation_that_is_not_summed_is_refused_or_public(door: Door) -> None:
    refused = run(door.grid(evaluate=evaluate), door.strategy(FedAvg(), evaluate={}))
    assert not refused.evaluate_metrics_clientapp
    grid = door.grid(evaluate=evaluate, public=["num-examples", "eval-loss"])
    public = run(grid, door.strategy(FedAvg(), evaluate={}))
    assert set(public.evaluate_metrics_clientapp[1]) == {"eval-loss"}


def test_config_of_training_reaches_the_nodes():
    seen = []

    def noting(message, context):
        seen.append(dict(message.content["config"]))
        assert set(message.content) == {"arrays", "config"}
        return train(message, context)

    grid = LocalGrid(secure_app(train=noting), configs())
    wrapped().start(grid, model(), num_rounds=1, train_config=ConfigRecord({"lr": 0.1}))
    assert seen == [{"lr": 0.1, "server-round": 1}] * 5


def test_other_methods_of_the_grid_pass():
    class Wide(LocalGrid):
        def shout(self) -> str:
            return "loud"

    inner = Wide(secure_app(), configs())
    grid = SecureGrid(inner, None, None)
    content = RecordDict({"a": ConfigRecord({"b": 1})})
    message = grid.create_message(content, "query", 11, "7", 9.0)
    (name,) = grid.push_messages([message])
    (reply,) = grid.pull_messages([name])
    assert reply.metadata.group_id == "7"
    assert (message.metadata.ttl, message.content) == (9.0, content)
    assert grid.shout() == "loud"
    assert list(grid.get_node_ids()) == list(inner.get_node_ids())
    grid.set_run(Run.create_empty(5))
    assert grid.run is inner.run
    assert inner.run.run_id == 5
