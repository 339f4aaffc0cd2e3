"""Noise in the sums of FLARE's jobs, and budgets of sites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvflare")
pytest.importorskip("dp_accounting")

from nvflare.apis.fl_constant import ReturnCode

from flare_network import Adding, Network, Site
from secagg import ParameterError
from secagg.flare import OneShotFedAvg, SecAggFedAvg, SitePolicy
from secagg.privacy import Budget, PrivacyLedger, plan

LENGTH, DELTA = 4000, 1e-5
NOISE = {"epsilon": 8, "delta": DELTA}


def sites(add: float = 0.0, **policy: Any) -> list[Site]:
    return [Site(f"site-{i}", Adding(add), SitePolicy(**policy)) for i in range(1, 5)]


def controller(**more: Any) -> SecAggFedAvg:
    settings = {"num_clients": 4, "num_rounds": 1, "model": {"w": np.zeros(LENGTH)}}
    settings |= {"exchange_timeout": 5.0, "train_timeout": 5.0, "attempts": 1}
    return SecAggFedAvg(**{"noise": NOISE, "norm": 1.0} | settings | more)


def fails(network: Network, why: str, **more: Any) -> None:
    """Run a job in which no site trains."""
    with pytest.raises(AssertionError, match=why):
        network.run(controller(**more))
    assert not any(site.trainer.rounds for site in network.sites.values())


def sums() -> list[int]:
    """Number of sums in the ledger of each site, in the test's folder."""
    files = sorted(Path("sites").glob("*/secagg/privacy.json"))
    return [PrivacyLedger(path, Budget(8, DELTA)).sums for path in files]


def test_sites_add_the_noise_of_the_plan() -> None:
    found = Network(sites()).run(controller())["w"]
    planned = plan(4, LENGTH, norm=1.0, epsilon=8, delta=DELTA)
    assert np.std(found) == pytest.approx(planned.error(), rel=0.08)


def test_updates_are_cut_to_the_norm() -> None:
    four = sites(add=3.0)
    found = Network(four).run(controller(noise=None))["w"]
    assert np.linalg.norm(found) == pytest.approx(1.0, abs=0.01)


def test_check30_the_budget_of_a_site_outlives_the_job() -> None:
    own = {"epsilon": 8.0, "delta": DELTA}
    Network(sites(**own)).run(controller())
    assert sums() == [1] * 4
    network = Network(sites(**own), job="job 2")
    fails(network, "TooFewSurvivors")
    assert network.codes["take_part"] == [ReturnCode.EXECUTION_EXCEPTION] * 4
    assert sums() == [1] * 4


def test_a_site_with_a_budget_declines_exact_sums() -> None:
    four = sites(epsilon=8.0, delta=DELTA)
    fails(Network(four), "TooFewSurvivors", noise=None, norm=None, clip=1.0)
    assert sums() == [0] * 4


def test_the_budget_of_a_job_ends_the_job() -> None:
    network = Network(sites())
    with pytest.raises(AssertionError, match="BudgetSpent"):
        network.run(controller(num_rounds=2, noise={**NOISE, "rounds": 1}))
    assert all(len(site.trainer.rounds) == 1 for site in network.sites.values())


WRONG: list[dict[str, Any]] = [
    {"clip": 1.0},
    {"max_weight": 10},
    {"norm": None},
    {"noise": None, "norm": None},
    {"noise": {}},
    {"noise": {"epsilon": 2}},
    {"noise": {**NOISE, "sigma": 3}},
    {"noise": {**NOISE, "beta": 3}},
    {"noise": {"epsilon": 0, "delta": DELTA}},
    {"noise": {"sigma": 1e5, "colluders": 3}},
    {"noise": 2.0},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_arguments_that_do_not_go_with_noise(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        controller(**wrong)


@pytest.mark.parametrize("wrong", [{"noise": NOISE}, {"noise": {"sigma": 3}, "max_weight": 1}])
def test_noise_of_helpers_is_a_sigma_alone(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="noise"):
        OneShotFedAvg(num_clients=4, clip=1.0, helpers=[], identity="key.pem", **wrong)


@pytest.mark.parametrize("budget", [{"epsilon": 2.0}, {"epsilon": -1.0, "delta": DELTA}])
def test_wrong_budgets_of_sites(budget: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        SitePolicy(**budget)
