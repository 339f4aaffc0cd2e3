"""The list of strategies: each agrees with its plain run, and all others name a remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import ConfigRecord, MetricRecord
from flwr.clientapp.mod import fixedclipping_mod
from flwr.serverapp import strategy as flower
from flwr.serverapp.strategy import (
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedProx,
    FedYogi,
    Result,
    Strategy,
)

from flower_helpers import Party
from flower_nodes import ERROR, configs, fedavg, make_app, model, run, secure_app, wrapped
from secagg import ParameterError, TooFewSurvivors
from secagg.flower import SecAggMod, SecureGrid
from secagg.flower.allowed import check_strategy
from secagg.flower.testing import LocalGrid
from secagg.graph import recommend
from secagg.oneshot import HelperJournal

Wrap = Callable[..., Result]
NOISE = {"noise_multiplier": 0.1, "num_sampled_clients": 50}
AVERAGING = {
    "FedAvg": lambda: FedAvg(fraction_evaluate=0.0),
    "FedProx": lambda: FedProx(fraction_evaluate=0.0, proximal_mu=0.1),
    "FedAvgM": lambda: FedAvgM(fraction_evaluate=0.0, server_momentum=0.9),
    "FedAdam": lambda: FedAdam(fraction_evaluate=0.0),
    "FedYogi": lambda: FedYogi(fraction_evaluate=0.0),
    "FedAdagrad": lambda: FedAdagrad(fraction_evaluate=0.0),
}
# errors in units of 2^-16; an adaptive strategy divides by √v + τ and has no such bound, so all
# six are compared with more fractional bits
AMPLIFIED = {"FedAvg": 3, "FedProx": 3, "FedAvgM": 6}
REJECTED = {
    "Bulyan": lambda: flower.Bulyan(),
    "DifferentialPrivacyClientSideAdaptiveClipping": (
        lambda: flower.DifferentialPrivacyClientSideAdaptiveClipping(FedAvg(), **NOISE)
    ),
    "DifferentialPrivacyClientSideFixedClipping": (
        lambda: flower.DifferentialPrivacyClientSideFixedClipping(
            FedAvg(), clipping_norm=1.0, **NOISE
        )
    ),
    "DifferentialPrivacyServerSideAdaptiveClipping": (
        lambda: flower.DifferentialPrivacyServerSideAdaptiveClipping(FedAvg(), **NOISE)
    ),
    "DifferentialPrivacyServerSideFixedClipping": (
        lambda: flower.DifferentialPrivacyServerSideFixedClipping(
            FedAvg(), clipping_norm=1.0, **NOISE
        )
    ),
    "FedMedian": lambda: FedMedian(),
    "FedTrimmedAvg": lambda: flower.FedTrimmedAvg(),
    "FedXgbBagging": lambda: flower.FedXgbBagging(),
    "FedXgbCyclic": lambda: flower.FedXgbCyclic(),
    "Krum": lambda: flower.Krum(),
    "MultiKrum": lambda: flower.MultiKrum(),
    "QFedAvg": lambda: flower.QFedAvg(client_learning_rate=0.1),
}


def test_every_strategy_of_flower_is_accepted_or_rejected():
    assert set(flower.__all__) - {"Result", "Strategy"} == set(AVERAGING) | set(REJECTED)


@pytest.fixture(params=["four exchanges", "one shot"])
def wrap(request: pytest.FixtureRequest, journals: list[HelperJournal]) -> Wrap:
    """Function that runs a strategy's rounds over the sums of a protocol."""
    party = Party(journals[:2])

    def run(strategy: Strategy, **settings: object) -> Result:
        if request.param == "one shot":
            grid = LocalGrid(party.app(), configs())
            return party.wrapped(strategy, **settings).start(grid, model())
        return wrapped(strategy, **settings).start(LocalGrid(secure_app(), configs()), model())

    return run


@pytest.mark.parametrize("name", AVERAGING)
def test_accepted_strategy_agrees_with_its_plain_run(name: str, wrap: Wrap) -> None:
    make = AVERAGING[name]
    plain = make().start(LocalGrid(make_app([]), configs()), model())
    secure = wrap(make(), fractional_bits=30)
    for array, expected in plain.arrays.items():
        found = secure.arrays[array].numpy()
        np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", ["FedAvg", "FedProx", "FedAvgM"])
def test_error_after_three_rounds_is_that_of_the_encoding(name: str, wrap: Wrap) -> None:
    make = AVERAGING[name]
    plain = make().start(LocalGrid(make_app([]), configs()), model())
    secure = wrap(make())
    for array, expected in plain.arrays.items():
        found = secure.arrays[array].numpy()
        bound = AMPLIFIED[name] * ERROR + 1e-6
        np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=bound)


@pytest.mark.parametrize("name", REJECTED)
@pytest.mark.parametrize("averaging", [False, True], ids=["default", "averaging"])
def test_rejected_strategy_names_its_remedy(name: str, averaging: bool, wrap: Wrap) -> None:
    with pytest.raises(ParameterError, match=rf"^{name}\b.*(take|sum|compute) "):
        wrap(REJECTED[name](), averaging=averaging)


@pytest.mark.parametrize("name", ["ServerSideFixed", "ServerSideAdaptive", "ClientSideFixed"])
def test_remedy_of_clipping_strategies_works(name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        wrapped(REJECTED[f"DifferentialPrivacy{name}Clipping"]())
    key = re.search(r'"(\w+)": \.\.\.', str(caught.value))
    assert key is not None, "the remedy has no setting"
    config = ConfigRecord({key[1]: 0.01})
    norms = []
    for mods in ([SecAggMod(), fixedclipping_mod], [SecAggMod()]):
        grid = LocalGrid(make_app(mods), configs())
        start = model(w=np.zeros(4))
        found = wrapped().start(grid, start, num_rounds=1, timeout=0.0, train_config=config)
        norms.append(np.linalg.norm(found.arrays["w"].numpy()))
    assert norms[0] <= 0.01 + 4 * ERROR < norms[1]


class Own(FedAvg):
    pass


class OwnMedian(FedMedian):
    pass


def test_own_strategy_is_accepted_if_it_is_declared():
    with pytest.raises(ParameterError, match="averaging=True"):
        wrapped(Own())
    result = run(
        LocalGrid(secure_app(), configs()), wrapped(Own(fraction_evaluate=0.0), averaging=True)
    )
    assert result.arrays
    with pytest.raises(ParameterError, match="FedMedian"):
        wrapped(OwnMedian(), averaging=True)


def test_own_strategy_may_have_the_name_of_a_rejected_one():
    class Krum(FedAvg):
        pass

    assert wrapped(Krum(), averaging=True)


def test_own_strategy_may_inherit_from_none_of_flower():
    class Bare(Strategy):
        configure_train = configure_evaluate = aggregate_train = aggregate_evaluate = None
        summary = None

    assert wrapped(Bare(), averaging=True)
    with pytest.raises(ParameterError, match="averaging=True"):
        wrapped(Bare())


def test_own_function_for_metrics_is_accepted_if_it_is_declared():
    def largest(records, weight):
        return MetricRecord({"loss": max(one["metrics"]["train-loss"] for one in records)})

    train, evaluate = {"train_metrics_aggr_fn": largest}, {"evaluate_metrics_aggr_fn": largest}
    with pytest.raises(ParameterError, match="train_metrics_aggr_fn"):
        wrapped(fedavg(**train))
    with pytest.raises(ParameterError, match="evaluate_metrics_aggr_fn"):
        wrapped(FedAvg(**evaluate), evaluate={"eval-loss": 4.0})
    assert wrapped(FedAvg(**evaluate))  # gets the nodes' own replies
    assert wrapped(FedAvg(**train), averaging=True)
    assert wrapped(FedAvg(**evaluate), evaluate={"eval-loss": 4.0}, averaging=True)


def test_what_is_no_strategy_is_rejected():
    with pytest.raises(ParameterError):
        check_strategy("FedAvg", averaging=True)


def test_wrapper_must_be_outermost():
    outer = flower.DifferentialPrivacyClientSideFixedClipping(
        wrapped(), clipping_norm=1.0, **NOISE
    )
    with pytest.raises(ParameterError, match="outermost"):
        outer.start(LocalGrid(secure_app(), configs()), model())
    with pytest.raises(ParameterError):
        wrapped(wrapped())


@pytest.mark.parametrize(
    "settings",
    [
        {"clip": 0.0},
        {"clip": 2.0**60},
        {"max_weight": 0},
        {"max_weight": 1.5},
        {"fractional_bits": 60},
        {"key_timeout": 0.0},
        {"poll": 0.0},
        {"on_failure": "retry"},
        {"neighbours": 4},
        {"exclude": "bias"},
        {"metrics": {"loss": 0.0}},
        {"metrics": {"loss": "10"}},
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
        ({"waves": np.ones(3, dtype=complex), "w": np.ones(2)}, {}),
    ],
    ids=["integer", "unknown", "none left", "bool", "complex"],
)
def test_model_with_other_arrays_than_floats_is_rejected(
    arrays: dict[str, np.ndarray], settings: dict[str, object]
) -> None:
    with pytest.raises(ParameterError):
        wrapped(**settings).start(LocalGrid(secure_app(), configs()), model(**arrays))


def test_excluded_arrays_keep_the_servers_value():
    start = model(steps=np.array(3), w=np.ones(2, dtype=np.float16))
    grid = LocalGrid(secure_app(), configs())
    result = wrapped(exclude=["steps"]).start(grid, start, num_rounds=1)
    assert list(result.arrays) == ["steps", "w"]
    assert result.arrays["steps"].numpy() == 3
    assert result.arrays["w"].numpy().dtype == np.float16
    assert (result.arrays["w"].numpy() != 1).all()


@pytest.mark.parametrize(
    ("settings", "least"),
    [({}, 3), ({"threshold": 4}, 4), ({"neighbours": 4, "threshold": 3}, 5)],
)
def test_too_few_nodes_for_a_sum_are_an_error_or_skipped(settings, least):
    grid = LocalGrid(secure_app(), configs(nodes=range(11, 10 + least)))
    with pytest.raises(TooFewSurvivors) as caught:
        run(grid, wrapped(**settings))
    assert (caught.value.survivors, caught.value.needed) == (least - 1, least)
    assert not run(grid, wrapped(**settings, on_failure="skip")).arrays
    assert not grid.replies


@pytest.mark.parametrize(("nodes", "threshold"), [(3, 3), (8, 6), (100, 70)])
def test_threshold_is_by_default_70_percent(nodes: int, threshold: int) -> None:
    params = wrapped()._summing.params(nodes, 10, b"")
    assert (params.threshold, params.neighbours) == (threshold, None)


@pytest.mark.parametrize(
    ("length", "settings"),
    [
        (1, {"max_weight": 1, "fractional_bits": 0}),  # needs R > 2^3
        (16, {"max_weight": 1, "fractional_bits": 0}),  # and R > 2^6 for the clipped elements
        (1, {"clip": 2.0**-9}),
        (1000, {"clip": 8.0, "max_weight": 10_000}),
    ],
    ids=["weights", "clipped", "small", "usual"],
)
def test_modulus_is_the_smallest_with_headroom(length: int, settings: dict[str, float]) -> None:
    params = wrapped(**settings)._summing.params(4, length, b"")
    with pytest.raises(ParameterError):
        replace(params, modulus_bits=params.modulus_bits - 1)


def test_error_of_settings_without_a_modulus_names_the_settings():
    with pytest.raises(ParameterError, match="clip"):
        wrapped(clip=2.0**10, max_weight=1 << 53)._summing.params(4, 1, b"")


def test_more_than_a_hundred_nodes_are_a_graph():
    params = wrapped()._summing.params(101, 10, b"")
    assert (params.neighbours, params.threshold) == tuple(recommend(101, 0.2, 0.1))


def test_neighbours_are_those_that_are_given():
    params = wrapped(threshold=4, neighbours=8)._summing.params(50, 10, b"")
    assert (params.neighbours, params.threshold) == (8, 4)


def test_threshold_is_the_one_that_is_given():
    grid = LocalGrid(secure_app(), configs(nodes=range(11, 15)))
    grid.drop(11, 2)
    assert run(grid, wrapped(threshold=3)).arrays
    grid = LocalGrid(secure_app(), configs(nodes=range(11, 15)))
    grid.drop(11, 2)
    assert not run(grid, wrapped(threshold=4, on_failure="skip")).arrays


def test_metrics_of_evaluation_are_averaged_securely():
    grid = LocalGrid(secure_app(), configs())
    result = run(grid, wrapped(FedAvg(), evaluate={"eval-loss": 4.0}))
    plain = run(LocalGrid(make_app([]), configs()), FedAvg())
    found, mean = (r.evaluate_metrics_clientapp[1]["eval-loss"] for r in (result, plain))
    assert found == pytest.approx(mean, abs=4 * ERROR)
    assert all(set(reply.content) == {"secagg"} for reply in grid.replies)


def test_evaluation_that_is_not_summed_is_refused_or_public():
    refused = run(LocalGrid(secure_app(), configs()), wrapped(FedAvg(), evaluate={}))
    assert not refused.evaluate_metrics_clientapp
    mod = SecAggMod(public=["num-examples", "eval-loss"])
    public = run(LocalGrid(make_app([mod]), configs()), wrapped(FedAvg(), evaluate={}))
    assert set(public.evaluate_metrics_clientapp[1]) == {"eval-loss"}


def test_two_starts_in_one_run_are_two_sums():
    grid = LocalGrid(secure_app(), configs())
    assert run(grid).arrays
    assert run(grid).arrays


def test_config_of_training_reaches_the_nodes():
    seen = []

    def train(message, context):
        from flower_nodes import train as known

        seen.append(dict(message.content["config"]))
        assert set(message.content) == {"arrays", "config"}
        return known(message, context)

    grid = LocalGrid(secure_app(train=train), configs())
    wrapped().start(grid, model(), num_rounds=1, train_config=ConfigRecord({"lr": 0.1}))
    assert seen == [{"lr": 0.1, "server-round": 1}] * 5


def test_other_methods_of_the_grid_pass():
    class Wide(LocalGrid):
        def shout(self) -> str:
            return "loud"

    seen: list[SecureGrid] = []

    class Spy(FedAvg):
        def configure_train(self, server_round, arrays, config, grid):
            seen.append(grid)
            return []

    inner = Wide(secure_app(), configs())
    run(inner, wrapped(Spy(fraction_evaluate=0.0), averaging=True))
    (grid,) = seen
    assert isinstance(grid, SecureGrid)
    assert (grid.shout(), grid.run, list(grid.get_node_ids())) == (
        "loud",
        inner.run,
        list(inner.get_node_ids()),
    )
    with pytest.raises(AttributeError):
        grid.whisper()
