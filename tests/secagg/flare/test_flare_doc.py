"""The job on the page of FLARE, and the settings of a site there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvflare")

from nvflare.apis.fl_context import FLContext
from nvflare.apis.signal import Signal
from nvflare.apis.workspace import Workspace
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.job_config.api import FedJob
from nvflare.private.fed.app.fl_conf import create_privacy_manager
from nvflare.private.privacy_manager import PrivacyService

from flare_parts import StepTrainer
from secagg.flare import SecAggFilter, SitePolicy
from secagg.simulate import temporary_journals

PAGE = (Path(__file__).parents[3] / "docs/flare.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def exported(code: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the configurations of server and site in the job of the page."""
    names: dict[str, object] = {"trainer": StepTrainer()}
    exec(code, names)  # noqa: S102
    job = names["job"]
    assert isinstance(job, FedJob)
    job.set_app_packages(["secagg", "flare_parts"])
    job.export_job(str(folder))
    assert not list(folder.rglob("*.py"))
    (server,) = folder.rglob("config_fed_server.json")
    (client, *_) = folder.rglob("config_fed_client.json")
    return json.loads(server.read_text()), json.loads(client.read_text())


def test_job_of_the_page_has_no_code_and_all_settings(tmp_path: Path) -> None:
    server, client = exported(blocks("python")[0], tmp_path)
    (workflow,) = server["workflows"]
    assert workflow["path"] == "secagg.flare.controller.SecAggFedAvg"
    wanted = {"clip": 1.0, "max_weight": 10_000, "num_clients": 4, "num_rounds": 10}
    assert workflow["args"].items() >= wanted.items()
    (executor,) = client["executors"]
    assert executor["tasks"] == ["secagg"]
    assert executor["executor"]["args"]["trainer"]["path"] == "flare_parts.StepTrainer"


def test_trainer_of_the_page_trains() -> None:
    (code,) = re.findall(r"^```{code-block} python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"train": lambda name, array: array + 1}
    exec(code, names)  # noqa: S102
    model = FLModel(params={"w": np.zeros(2)}, params_type=ParamsType.FULL)
    task = FLModelUtils.to_shareable(model)
    found = FLModelUtils.from_shareable(
        names["Trainer"]().execute("train", task, FLContext(), Signal())
    )
    assert found.params is not None
    np.testing.assert_array_equal(found.params["w"], [1, 1])


def test_one_shot_job_of_the_page_filters_the_task(tmp_path, monkeypatch):
    with temporary_journals(3) as journals:
        keys = [journal.public for journal in journals]
    helpers = [
        {"url": "https://h:1", "suite": "hybrid", "hpke": box.hex(), "ed25519": key.hex()}
        for box, key in keys
    ]
    (tmp_path / "helpers.json").write_text(json.dumps(helpers))
    monkeypatch.chdir(tmp_path)
    server, client = exported(blocks("python")[1], tmp_path / "job")
    (workflow,) = server["workflows"]
    assert workflow["path"] == "secagg.flare.oneshot.OneShotFedAvg"
    wanted = {"clip": 1.0, "num_clients": 4, "helpers": helpers}
    assert workflow["args"].items() >= wanted.items()
    path = "secagg.flare.filter.SecAggFilter"
    for chain in ("task_data_filters", "task_result_filters"):
        assert client[chain] == [{"tasks": ["train"], "filters": [{"path": path, "args": {}}]}]


def test_privacy_of_the_page_filters_all_jobs(tmp_path: Path) -> None:
    """FLARE reads the file as it does at a site."""
    for name in ("startup", "local"):
        (tmp_path / name).mkdir()
    (tmp_path / "local/privacy.json").write_text(blocks("json")[0])
    manager = create_privacy_manager(Workspace(str(tmp_path), "site-1"), names_only=False)
    PrivacyService.initialize(manager)
    try:
        assert PrivacyService.is_scope_allowed("")
        assert PrivacyService.is_scope_allowed("sums")
        assert not PrivacyService.is_scope_allowed("another")
    finally:
        PrivacyService.initialize(None)
    scope = manager.get_scope("")
    for one in (scope.task_data_filters["in"], scope.task_result_filters["out"]):
        assert [type(each) for each in one] == [SecAggFilter]
    policy = manager.components["secagg_policy"]
    assert isinstance(policy, SitePolicy)
    assert policy.rounds.require_active
    assert policy.rounds.min_clients == len(policy.sites) == 4
