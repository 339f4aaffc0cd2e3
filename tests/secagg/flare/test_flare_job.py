"""Whole jobs of FLARE without its processes: sums, dropouts, policies, messages of sites."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvflare")

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable
from nvflare.fuel.utils.fobs.decomposers.via_downloader import LazyDownloadRef

from flare_network import Adding, Network, Site, _SiteEngine, leaves
from secagg.errors import ParameterError
from secagg.flare import SecAggFedAvg, SitePolicy

TEXT = "patient 4711 has no diagnosis"


def start() -> dict[str, np.ndarray]:
    return {
        "layer.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
        "layer.bias": np.array([0.5, -0.5]),
        "batches": np.array(7),
    }


def sites(count: int = 4, *, steps: bool = False, **policy: Any) -> list[Site]:
    return [
        Site(
            f"site-{i}",
            Adding(i / 8, 10 * i if steps else None, relative=i % 2 == 0),
            SitePolicy(**policy),
        )
        for i in range(1, count + 1)
    ]


def controller(**more: Any) -> SecAggFedAvg:
    settings = {"num_clients": 4, "num_rounds": 2, "model": start(), "clip": 2.0}
    settings |= {"exclude_vars": "batches", "exchange_timeout": 5.0, "train_timeout": 5.0}
    return SecAggFedAvg(**settings | more)


def added(network: Network, **more: Any) -> Any:
    """Run a job; return what it added to one array."""
    return network.run(controller(**more))["layer.bias"] - start()["layer.bias"]


def test_job_adds_the_mean_of_all_sites_and_keeps_excluded_arrays():
    excluded: dict[str, np.ndarray] = {
        f"batches.{dtype}": np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
        for dtype in ("int8", "int64", "uint64")
    }
    for kind in (np.float16, np.float64):
        excluded[f"batches.{kind.__name__}"] = np.array([0.1, -np.inf], kind)
    excluded |= {"batches.bool": np.array([True, False]), "batches.odd": np.array(2**60 + 1)}
    model = Network(sites()).run(controller(model=start() | excluded))
    for name, array in (start() | excluded).items():
        if name.startswith("layer"):
            # 2 rounds, mean of 1/8 … 4/8
            np.testing.assert_array_equal(model[name], array + 2 * 0.3125)
        else:
            assert model[name].tobytes() == array.tobytes(), name
        assert (model[name].dtype, model[name].shape) == (array.dtype, array.shape)


def test_job_weights_sites_by_their_steps():
    mean = sum(10 * i * i / 8 for i in range(1, 5)) / 100
    found = added(Network(sites(steps=True)), max_weight=100, num_rounds=1)
    np.testing.assert_allclose(found, mean, atol=2**-16)


def test_result_that_another_process_has_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """FLARE leaves a trainer's large arrays in its own process until they are asked for."""
    four, lazy = sites(), LazyDownloadRef("site-1.trainer", "batch", "N0", 0)
    monkeypatch.setattr(_SiteEngine, "get_cell", lambda engine: "cell", raising=False)

    def fetched(data: Any, cell: object, signal: object) -> Any:
        assert cell == "cell"
        assert data["DXO"]["data"].pop("layer.bias") is lazy
        data["DXO"]["data"]["layer.bias"] = np.full(2, 0.25)
        return data

    monkeypatch.setattr("secagg.flare.executor.materialize_lazy_download_refs", fetched)
    train = four[1].trainer.execute

    def execute(*args: Any) -> Shareable:
        reply = train(*args)
        reply["DXO"]["data"]["layer.bias"] = lazy
        return reply

    four[1].trainer.execute = execute
    np.testing.assert_array_equal(added(Network(four), num_rounds=1), 0.3125)


def test_failed_training_has_no_weight_and_nothing_but_the_protocol_leaves(caplog):
    four = sites()
    for site in four:
        site.trainer.steps = 1

    def fail(number: int) -> None:
        if number == 0:
            raise ValueError(TEXT)

    four[1].trainer.before = fail
    network = Network(four)
    mean = (1 + 3 + 4) / 8 / 3 + 0.3125
    np.testing.assert_allclose(added(network, max_weight=10), mean, atol=2**-15)
    assert four[1].trainer.rounds == [0, 1]
    assert network.codes["take_part"] == [ReturnCode.OK] * 4  # at the end of the job, too
    assert "ValueError" in caplog.text  # in the site's log, which FLARE can send to the server
    assert TEXT not in caplog.text
    assert {site for site, _ in network.sent} == set(network.sites)
    update = np.full(8, 3 / 8)
    for _, message in network.sent:
        for value in leaves(message):
            assert isinstance(value, str | bytes | bool | int | None)
            assert TEXT not in str(value)
            if isinstance(value, bytes):  # neither the updates nor the weights
                assert update.tobytes()[:16] not in value
                assert update.astype(np.float32).tobytes()[:16] not in value


def test_site_that_vanishes_in_training_is_not_in_the_sum():
    four = sites()
    four[3].trainer.before = lambda number: four[3].signal.trigger(True)
    found = added(Network(four), train_timeout=0.5, num_rounds=1)
    np.testing.assert_allclose(found, (1 + 2 + 3) / 8 / 3, atol=2**-15)


@pytest.mark.parametrize("name", ["train", "validate", "secagg"])
def test_site_rejects_tasks_without_the_protocol(name):
    site = sites(1)[0]
    steps = [] if name == "secagg" else [{"step": "identify"}, {"step": "take_part"}]
    for fields in ({}, {"step": "train"}, {"DXO": {"w": [1.0]}}, *steps):
        reply = Network([site]).perform(site, name, Shareable(fields))
        assert reply.get_return_code() == ReturnCode.TASK_UNSUPPORTED
    assert site.trainer.rounds == []


@pytest.mark.parametrize(
    "policy",
    [{"require_active": True}, {"require_hybrid": True}, {"min_clients": 5}, {"clip": 1.0}],
    ids=str,
)
def test_sites_decline_rounds_below_their_policy(policy: dict[str, Any]) -> None:
    four = sites(**policy)
    network = Network(four)
    with pytest.raises(AssertionError, match="TooFewSurvivors"):
        network.run(controller(attempts=1))
    assert network.codes["take_part"] == [ReturnCode.EXECUTION_EXCEPTION] * 4
    assert not any(site.trainer.rounds for site in four)


def test_sites_that_require_hybrid_are_in_a_sum_of_it():
    found = added(Network(sites(require_hybrid=True)), num_rounds=1, suite="hybrid")
    np.testing.assert_allclose(found, 10 / 8 / 4, atol=2**-15)


def test_first_round_fixes_the_bounds_of_all_jobs():
    for job, (clip, works) in enumerate([(2.0, True), (3.0, False), (2.0, True)]):
        four = sites()
        network = Network(four, job=f"job {job}")
        with nullcontext() if works else pytest.raises(AssertionError, match="TooFewSurvivors"):
            network.run(controller(clip=clip, num_rounds=1, attempts=1))
        assert [len(site.trainer.rounds) for site in four] == [int(works)] * 4


def test_other_sites_token_or_none_is_rejected():
    network = Network(sites())
    network.meddle = lambda site, data: (
        Shareable(data | {"token": bytes(16)}) if site == "site-1" else data
    )
    found = added(network, exchange_timeout=0.5, num_rounds=1)
    np.testing.assert_allclose(found, 9 / 24, atol=2**-15)


WRONG = [{"aggregator": object()}, {"aggregation_weights": {"site-1": 2.0}}, {"clip": -1.0}]
WRONG += [{"fedprox_mu": 0.1}, {"threshold": 2}, {"num_clients": 2}, {"train_timeout": 0}]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: next(iter(one)))
def test_settings_that_no_sum_allows_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        controller(**wrong)


BAD = {
    "integers": ({}, None),
    "NaN": ({"causal": np.array([[0, np.nan], [0, 0]], np.float32)}, "batches"),
    "NaN, excluded": ({"causal": np.array([np.nan])}, "batches|causal"),
    "infinity": ({"causal": np.array([0.5, -np.inf])}, "batches"),
}


@pytest.mark.parametrize(("more", "excluded"), BAD.values(), ids=list(BAD))
def test_spoiled_array_of_the_server_is_named_before_a_site_trains(more, excluded):
    network = Network(sites())
    with pytest.raises(AssertionError, match="'causal'" if more else "'batches'") as caught:
        network.run(controller(model=start() | more, exclude_vars=excluded))
    helps = not any(np.isnan(array).any() for array in more.values())
    assert ("exclude_vars" in str(caught.value)) == helps
    assert not any(site.trainer.rounds for site in network.sites.values())
