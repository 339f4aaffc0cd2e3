"""Jobs in FLARE's simulator and on its provisioned processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvflare")

from nvflare.fuel.flare_api.flare_api import Session, new_secure_session
from nvflare.job_config.api import FedJob

from flare_kits import Project
from flare_parts import FileModel, StepTrainer
from flare_processes import SITES, USER, environment, provision, running
from secagg.flare import SecAggExecutor, SecAggFedAvg, SitePolicy

pytestmark = pytest.mark.slow
ROUNDS = 2


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
    command = [
        Path(sys.executable).parent / "nvflare",
        "simulator",
        folder,
        "-w",
        tmp_path / "w",
    ]
    subprocess.run(  # noqa: S603
        [*command, "-t", "4", "-c", ",".join(SITES)],
        env=environment(),
        check=True,
        capture_output=True,
        timeout=300,
    )
    present = [i for i in (1, 2, 3, 4) if lost != f"site-{i}"]
    check(tmp_path, *[present] * ROUNDS)


@pytest.mark.parametrize("lost", ["", "site-3"])
def test_provisioned_processes(tmp_path: Path, lost: str) -> None:
    kits = provision(tmp_path)
    folder = job(tmp_path, lost, security="active")
    with running(kits):
        session = connected(kits)
        identifier = session.submit_job(str(folder))
        # FLARE itself waits longer for a site that is lost
        session.monitor_job(
            identifier,
            timeout=200,
            poll_interval=1.0,
            cb=lambda *_: not (tmp_path / f"round{ROUNDS}.npz").exists(),
        )
        session.close()
    present = [i for i in (1, 2, 3, 4) if lost != f"site-{i}"]
    check(tmp_path, *[present] * ROUNDS)


def connected(kits: Path) -> Session:
    """Return a session of the user, once all sites are connected."""
    session = new_secure_session(USER, str(kits / USER), timeout=60.0)
    for _ in range(1000):
        if len(session.get_system_info().client_info) == len(SITES):
            return session
    raise AssertionError("sites are missing")
