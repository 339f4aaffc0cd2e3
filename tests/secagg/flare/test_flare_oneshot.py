"""One-shot sums in whole jobs of FLARE: exact means, sites and helpers that fail or lie."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

pytest.importorskip("nvflare")
pytest.importorskip("httpx")

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable

from flare_helpers import Helpers, helpers
from flare_network import Adding, Network, Site
from secagg import Identity, ParameterError, Registry
from secagg.flare import OneShotFedAvg, SecAggFilter, SitePolicy
from secagg.protocol.key_files import registry_to_json
from secagg.session import Clock, Session
from secagg.session.wire import encode, read_task
from secagg.testing import make_identity

NAMES = [f"site-{i}" for i in range(1, 5)]
KEYS: dict[int | str, bytes] = {name: make_identity(i).public for i, name in enumerate(NAMES)}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with helpers(tmp_path_factory.mktemp("helpers"), 3, Registry(KEYS)) as made:
        yield made


@pytest.fixture
def make(served, tmp_path):
    return Make(served, tmp_path)


@pytest.fixture
def own(make, tmp_path):
    """Helpers without a registry, for a single semi-honest job."""
    with helpers(tmp_path, 3) as made:
        make.served = made
        yield made


@pytest.fixture
def expired(monkeypatch):
    """Seconds of the deadlines that expired in sessions."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)
        found.append(seconds)

    session = partial(Session, clock=Clock(sleep=sleep))
    monkeypatch.setattr("secagg.flare.oneshot.Session", session)
    return found


class Make:
    """Parts of a job whose sites trust all helpers; its sums are active by default."""

    def __init__(self, served: Helpers, folder: Path) -> None:
        self.served, self.folder = served, folder
        self.registry = folder / "sites.json"
        self.registry.write_text(registry_to_json(KEYS))

    def sites(self, *, steps: bool = False, **policy: Any) -> list[Site]:
        return [self.site(i, 10 * i if steps else None, **policy) for i in range(1, 5)]

    def site(self, i: int, steps: int | None = None, **policy: Any) -> Site:
        trainer = Adding(i / 8, steps, relative=i % 2 == 0)
        root = self.folder / f"site-{i}"
        root.mkdir(exist_ok=True)
        key = root / "identity.pem"
        key.write_bytes(make_identity(i - 1).to_pem())
        policy = {"helpers": self.served.trusted, "identity": str(key)} | policy
        filters = {"data_filters": [SecAggFilter()], "result_filters": [SecAggFilter()]}
        operator = SitePolicy(**policy)
        return Site(f"site-{i}", trainer, operator, root=root, executor=trainer, **filters)

    def controller(self, **more: Any) -> OneShotFedAvg:
        model = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "batches": np.array(7)}
        settings = {"num_clients": 4, "num_rounds": 1, "model": model, "clip": 2.0}
        settings |= {"exclude_vars": "batches", "train_timeout": 20.0, "helper_timeout": 20.0}
        if more.setdefault("security", "active") == "active":
            settings["registry"] = str(self.registry)
        return OneShotFedAvg(**self.served.options | settings | more)

    def added(self, network: Network, **more: Any) -> float:
        """Run a job; return what it added to each element."""
        model = network.run(self.controller(**more))
        assert model["batches"] == 7
        assert model["w"].dtype == np.float32
        added = model["w"] - np.arange(6).reshape(2, 3)
        assert np.ptp(added) < 2**-15
        return float(added[0, 0])


def mean(*sites: int) -> float:
    return sum(sites) / 8 / len(sites)


def too_few(make: Make, sites: list[Site], **more: Any) -> None:
    """Run a job in which no site trains."""
    network = Network(sites)
    with pytest.raises(AssertionError, match="TooFewSurvivors"):
        make.added(network, **more)
    assert network.codes["train"] == [ReturnCode.TASK_DATA_FILTER_ERROR] * 4
    assert not any(site.trainer.rounds for site in sites)


def test_job_adds_the_mean_of_all_sites(make):
    network = Network(make.sites())
    assert make.added(network, num_rounds=2) == 2 * mean(1, 2, 3, 4)
    assert network.codes == {
        "configure": [ReturnCode.OK] * 4,
        "train": [ReturnCode.OK] * 8,
    }


def test_failed_training_has_no_weight_in_its_round(make):
    sites = make.sites(steps=True)

    def fail(number: int) -> None:
        if number == 0:
            raise ValueError

    sites[1].trainer.before = fail
    network = Network(sites)
    added = make.added(network, num_rounds=2, max_weight=100)
    means = [sum(i * i / 8 for i in there) / sum(there) for there in ((1, 3, 4), (1, 2, 3, 4))]
    assert added == pytest.approx(sum(means), abs=2**-14)
    assert network.codes["train"] == [ReturnCode.OK] * 8


def test_site_whose_result_is_lost_is_not_in_the_sum(make, expired, caplog):
    network = Network(make.sites())
    network.lost = {"site-2"}
    with caplog.at_level("INFO"):
        assert make.added(network) == pytest.approx(mean(1, 3, 4), abs=2**-14)
    assert "the sum has 3 of 4 sites; missing: ['site-2']" in caplog.text
    assert "Aggregated 3/4 results" in caplog.text
    assert not expired


def test_sites_may_come_and_go_and_are_sampled(make):
    sites = make.sites()
    network = Network(sites)

    def change(number: int) -> None:
        if number == 0:
            network.sites["site-5"] = make.site(5)
            del network.sites["site-4"]

    sites[3].trainer.before = change
    added = make.added(network, num_rounds=2)
    assert added == pytest.approx(mean(1, 2, 3, 4) + mean(1, 2, 3), abs=2**-14)
    sites = make.sites()
    make.added(Network(sites, job="job 2"), num_clients=3)
    assert sum(len(site.trainer.rounds) for site in sites) == 3


@pytest.mark.parametrize("what", ["garbage", "text", "code", "replayed", "of another site"])
def test_wrong_report_is_not_in_the_sum(make, expired, what):
    network, seen = Network(make.sites()), dict[str, list[bytes]]()
    done = threading.Event()  # site-1 has reported in this round

    def altered(site: str, reply: Shareable) -> Shareable:
        answer = reply.get("answer")
        if answer is None:
            return reply  # of its configuration
        seen.setdefault(site, []).append(answer)
        if site == "site-1":
            done.set()
        if site != "site-3":
            return reply
        assert done.wait(20)
        if what == "code":
            reply.set_return_code(ReturnCode.EXECUTION_EXCEPTION)
        reply["answer"] = {
            "garbage": b"garbage",
            "text": "text",
            "code": answer,
            "replayed": seen[site][0],
            "of another site": seen["site-1"][-1],
        }[what]
        return reply

    network.altered = altered
    rounds = 2 if what == "replayed" else 1
    added = make.added(network, num_rounds=rounds)
    first = mean(1, 2, 3, 4) if what == "replayed" else 0
    assert added == pytest.approx(first + mean(1, 2, 4), abs=2**-14)
    assert not expired


def test_below_the_minimum_nothing_is_opened(make, monkeypatch):
    opened: list[object] = []
    monkeypatch.setattr("secagg.oneshot.Helper.check", opened.append)
    network = Network(make.sites())
    network.lost = {"site-1", "site-2"}
    with pytest.raises(AssertionError, match="TooFewSurvivors"):
        make.added(network)
    assert not opened


def test_site_that_is_shown_another_model_does_not_train(make):
    sites = make.sites()
    network = Network(sites)

    def meddle(site: str, data: Shareable) -> Shareable:
        if site == "site-1" and "task" in data:
            task = read_task(data["task"])
            message = task.message.replace(b"\x00\x00\x80?", b"\x00\x00\x00\x00")  # 1.0 by 0.0
            assert message != task.message
            data["task"] = encode(msgspec.structs.replace(task, message=message))
        return data

    network.meddle = meddle
    assert make.added(network) == pytest.approx(mean(2, 3, 4), abs=2**-14)
    assert sites[0].trainer.rounds == []
    assert ReturnCode.TASK_DATA_FILTER_ERROR in network.codes["train"]


@pytest.mark.parametrize("policy", [{"helpers": None}, {"min_clients": 4}], ids=str)
def test_sites_decline_sums_below_their_policy(make, policy):
    too_few(make, make.sites(**policy))


@pytest.mark.parametrize("policy", [{}, {"identity": None, "require_active": True}], ids=str)
def test_site_with_a_key_is_in_active_sums_only(make, own, policy):
    too_few(make, make.sites(**policy), security="semi-honest")


def test_active_sites_without_their_keys_are_not_in_the_sum(make):
    """No key, and a key that the registry lacks."""
    sites = make.sites()
    sites[0] = make.site(1, identity=None)
    assert make.added(Network(sites)) == pytest.approx(mean(2, 3, 4), abs=2**-14)
    assert not sites[0].trainer.rounds
    sites = make.sites()
    Path(sites[0].policy.identity).write_bytes(Identity.generate().to_pem())
    added = make.added(Network(sites, job="job 2"))
    assert added == pytest.approx(mean(2, 3, 4), abs=2**-14)


def test_dead_helper_is_no_loss_after_its_endorsement_of_a_semi_honest_sum(make, own):
    sites = make.sites(identity=None)
    sites[0].trainer.before = lambda number: own.end(2)
    settings = {"security": "semi-honest", "helper_timeout": 5.0}
    assert make.added(Network(sites), **settings) == mean(1, 2, 3, 4)


def test_dead_helper_ends_the_job_before_training(make, own):
    sites = make.sites(identity=None)
    own.end(2)
    with pytest.raises(AssertionError, match="does not endorse"):
        make.added(Network(sites), security="semi-honest", helper_timeout=0.1)
    assert not any(site.trainer.rounds for site in sites)


@pytest.mark.parametrize("name", ["identity", "registry"])
def test_job_without_its_key_files_ends_before_training(make, name):
    network = Network(make.sites())
    controller = make.controller()
    setattr(controller, name, str(make.folder / "none.pem"))
    with pytest.raises(AssertionError, match=r"ParameterError: .*none\.pem"):
        network.run(controller)
    assert not network.codes


def test_site_reports_once_in_a_round_also_after_a_restart(make):
    first = Network(make.sites())
    seen: list[Shareable] = []
    first.meddle = lambda site, data: (seen.append(data), data)[1]
    make.added(first, num_rounds=2)
    again = Network([make.site(1)])  # another process, with the folder of the first
    requests = [data for data in seen if "task" in data]
    for data in (requests[0], requests[-1]):
        reply = again.perform(again.sites["site-1"], "train", data)
        assert reply.get_return_code() == ReturnCode.TASK_DATA_FILTER_ERROR
        assert "answer" not in reply
    assert again.sites["site-1"].trainer.rounds == []
    # other parameters of the same round, and another job
    too_few(make, make.sites())
    assert make.added(Network(make.sites(), job="job 2")) == mean(1, 2, 3, 4)


def test_addresses_of_helpers_may_be_interchanged(make):
    first, second, *others = make.served.entries
    entries = [first | {"url": second["url"]}, second | {"url": first["url"]}, *others]
    assert make.added(Network(make.sites()), helpers=entries) == mean(1, 2, 3, 4)
    with pytest.raises(ParameterError):
        make.controller(helpers=[first | {"suite": "hybrid"}, second, *others])


WRONG = [{"helpers": []}, {"helpers": [b"no JSON"]}, {"threshold": 4}, {"registry": None}]
WRONG += [{"security": "semi-honest", "registry": "sites.json"}, {"stop_cond": "loss < 1"}]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_settings_of_no_sum_are_rejected(make, wrong):
    with pytest.raises(ParameterError):
        make.controller(**wrong)
