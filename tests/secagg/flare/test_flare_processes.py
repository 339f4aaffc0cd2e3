"""Jobs in FLARE's simulator and on its provisioned processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvflare")
pytest.importorskip("httpx")

from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.fuel.flare_api.flare_api import Session, new_secure_session
from nvflare.job_config.api import FedJob
from nvflare.job_config.defs import FilterType
from nvflare.job_config.script_runner import FrameworkType, ScriptRunner

from flare_helpers import Helpers, helpers
from flare_kits import Project
from flare_parts import FileModel, StepTrainer
from flare_processes import SITES, USER, environment, provision, running
from secagg import Registry
from secagg.flare import (
    OneShotFedAvg,
    SecAggExecutor,
    SecAggFedAvg,
    SecAggFilter,
    SitePolicy,
)
from secagg.protocol.key_files import registry_to_json
from secagg.testing import make_identity

pytestmark = [
    pytest.mark.slow,
    # by FLARE's user, whose connection such a warning would end
    pytest.mark.filterwarnings("ignore:ssl_context is deprecated:DeprecationWarning"),
]
ROUNDS = 2
KEYS: dict[int | str, bytes] = {name: make_identity(i).public for i, name in enumerate(SITES)}


def job(folder: Path, lost: str = "", kits: dict[str, Path] | None = None, **more: Any) -> Path:
    """Return the folder of an exported job."""
    settings = {"num_clients": 4, "num_rounds": ROUNDS, "clip": 2.0, "max_weight": 10}
    settings |= {"persistor_id": "model", "train_timeout": 20.0, "exchange_timeout": 60.0}
    made = FedJob(name="job", min_clients=3)
    # the provisioned sites have the trainer, and accept no code from a job
    made.set_app_packages(["secagg"] if kits else ["secagg", "flare_parts"])
    made.to_server(SecAggFedAvg(**settings | more))
    made.to_server(FileModel(str(folder)), id="model")
    for name in SITES:
        trainer = StepTrainer(lost, parent=kits is None)
        made.to(SecAggExecutor(trainer), name, tasks=["secagg"])
        if kits:
            policy = SitePolicy(
                require_active=more["security"] == "active", kit=str(kits[name])
            )
            made.to(policy, name, id="secagg_policy")
    made.export_job(str(folder / "jobs"))
    assert bool(list(folder.glob("jobs/**/*.py"))) is bool(kits)
    return folder / "jobs/job"


def one_shot_job(
    folder: Path,
    served: Helpers,
    *,
    lost: str = "",
    length: int = 1000,
    script: str | None = None,
    other: str = "",
) -> Path:
    """Return the folder of a job for the simulator, with active one-shot sums.

    Sites run a script of FLARE's client API if there is one. The site `other` has an argument
    of its own.
    """
    (folder / "sites.json").write_text(registry_to_json(KEYS))
    made = FedJob(name="job", min_clients=3)
    made.set_app_packages(["secagg"])  # the simulator takes components from a job's own code
    made.to_server(one_shot(folder, served))
    made.to_server(FileModel(str(folder), length), id="model")
    for i, name in enumerate(SITES):
        key = folder / f"{name}.pem"
        key.write_bytes(make_identity(i).to_pem())
        policy = SitePolicy(helpers=served.trusted, require_active=True, identity=str(key))
        made.to(policy, name, id="secagg_policy")
        trainer: Any = StepTrainer(lost, parent=name == other)
        if script is not None:
            trainer = ScriptRunner(script, framework=FrameworkType.NUMPY)
        made.to(trainer, name, tasks=["train"])
        for kind in (FilterType.TASK_DATA, FilterType.TASK_RESULT):
            made.to(SecAggFilter(), name, tasks=["train"], filter_type=kind)
    made.export_job(str(folder / "jobs"))
    return folder / "jobs/job"


def one_shot(folder: Path, served: Helpers, **more: Any) -> OneShotFedAvg:
    settings = {"num_clients": 4, "num_rounds": ROUNDS, "clip": 2.0, "max_weight": 10}
    settings |= {"persistor_id": "model", "train_timeout": 20.0, "helper_timeout": 20.0}
    settings |= {"security": "active", "registry": str(folder / "sites.json")}
    return OneShotFedAvg(**settings | served.options | more)


def simulate(folder: Path, app: Path) -> None:
    command = [Path(sys.executable).parent / "nvflare", "simulator", app, "-w", folder / "w"]
    subprocess.run(  # noqa: S603
        [*command, "-t", "4", "-c", ",".join(SITES)],
        env=environment(),
        check=True,
        capture_output=True,
        timeout=300,
    )


def expected(sites: list[int]) -> float:
    return sum(i * i / 8 for i in sites) / sum(sites)


def check(folder: Path, *sums: list[int]) -> None:
    total = 0.0
    for number, sites in enumerate(sums, 1):
        total += expected(sites)
        model = np.load(folder / f"round{number}.npz")
        for name in ("w", "b"):
            np.testing.assert_allclose(model[name], total, atol=number * 2**-16)


@pytest.mark.parametrize("security", ["semi-honest", "active"])
@pytest.mark.parametrize("lost", ["", "site-2"])
def test_simulator(tmp_path: Path, security: str, lost: str) -> None:
    project = Project(tmp_path / "kits")
    kits = {name: project.kit(name) for name in SITES}
    folder = job(tmp_path, lost, kits, security=security)
    simulate(tmp_path, folder)
    present = [i for i in (1, 2, 3, 4) if lost != f"site-{i}"]
    check(tmp_path, *[present] * ROUNDS)


def test_simulator_leaves_out_a_site_with_other_arguments(tmp_path: Path) -> None:
    with helpers(tmp_path, 3, Registry(KEYS)) as served:
        simulate(tmp_path, one_shot_job(tmp_path, served, other="site-3"))
    check(tmp_path, *[[1, 2, 4]] * ROUNDS)


SCRIPT = """
import nvflare.client as flare

flare.init()
number = int(flare.get_site_name().partition("-")[2])
while flare.is_running():
    model = flare.receive()
    if model is None:
        break
    if model.current_round == 1 and number == 2:
        raise ValueError("private")
    params = {name: array + number / 8 for name, array in model.params.items()}
    flare.send(flare.FLModel(params=params, meta={"NUM_STEPS_CURRENT_ROUND": number}))
"""


def test_simulator_runs_a_script_that_fails_at_a_site(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    with helpers(tmp_path, 3, Registry(KEYS)) as served:
        simulate(tmp_path, one_shot_job(tmp_path, served, script=str(script)))
    check(tmp_path, [1, 2, 3, 4], [1, 3, 4])


@pytest.mark.parametrize(("lost", "length"), [("", 1000), ("site-2", 1000), ("", 1_000_000)])
def test_simulator_one_shot(tmp_path: Path, lost: str, length: int) -> None:
    with helpers(tmp_path, 3, Registry(KEYS)) as served:
        simulate(tmp_path, one_shot_job(tmp_path, served, lost=lost, length=length))
    present = [i for i in (1, 2, 3, 4) if lost != f"site-{i}"]
    check(tmp_path, *[present] * ROUNDS)


@pytest.mark.parametrize("lost", ["", "site-3"])
def test_provisioned_processes(tmp_path: Path, lost: str) -> None:
    kits = provision(tmp_path, require_active=True, sites=SITES)
    folder = job(tmp_path, lost, security="active")
    with running(kits):
        session = connected(kits)
        # FLARE itself waits longer for a site that is lost
        end(session, folder, tmp_path / f"round{ROUNDS}.npz")
        session.close()
    present = [i for i in (1, 2, 3, 4) if lost != f"site-{i}"]
    check(tmp_path, *[present] * ROUNDS)


def test_provisioned_processes_give_sums_only(tmp_path: Path) -> None:
    """The jobs' own executors, without any part of secagg at the sites."""
    plain, sums = tmp_path / "plain", tmp_path / "sums"
    with helpers(tmp_path, 3) as served:
        kits = provision(tmp_path, helpers=served.trusted)
        with running(kits):
            session = connected(kits)
            for folder, controller in (
                (plain, FedAvg(num_clients=4, num_rounds=ROUNDS, persistor_id="model")),
                (sums, one_shot(sums, served, security="semi-honest", registry=None)),
            ):
                folder.mkdir()
                made = FedJob(name="job", min_clients=3)
                made.set_app_packages(["secagg", "flare_parts"])
                made.to_server(controller)
                made.to_server(FileModel(str(folder)), id="model")
                for name in SITES:
                    made.to(StepTrainer(parent=True), name, tasks=["train"])
                made.export_job(str(folder / "jobs"))
                end(session, folder / "jobs/job", folder / f"round{ROUNDS}.npz")
            session.close()
    assert not list(plain.glob("round*"))
    check(sums, *[[1, 2, 3, 4]] * ROUNDS)


def end(session: Session, app: Path, model: Path) -> None:
    """Run a job until its end or its last model."""
    session.monitor_job(
        session.submit_job(str(app)),
        timeout=200,
        poll_interval=1.0,
        cb=lambda *_: not model.exists(),
    )


def connected(kits: Path) -> Session:
    """Return a session of the user, once all sites are connected."""
    session = new_secure_session(USER, str(kits / USER), timeout=60.0)
    for _ in range(1000):
        if len(session.get_system_info().client_info) == len(SITES):
            return session
    raise AssertionError("sites are missing")
