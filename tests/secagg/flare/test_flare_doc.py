"""The job on the page of FLARE, and the settings of a site there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from nvflare.fuel.utils.class_utils import instantiate_class
from nvflare.job_config.api import FedJob

from flare_parts import StepTrainer
from secagg.flare import SitePolicy

PAGE = (Path(__file__).parents[3] / "docs/flare.md").read_text(encoding="utf-8")


def blocks(language: str) -> str:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return text


def test_job_of_the_page_has_no_code_and_all_settings(tmp_path: Path) -> None:
    names: dict[str, object] = {"trainer": StepTrainer()}
    exec(blocks("python"), names)  # noqa: S102
    job = names["job"]
    assert isinstance(job, FedJob)
    job.set_app_packages(["secagg", "flare_parts"])
    job.export_job(str(tmp_path))
    assert not list(tmp_path.rglob("*.py"))
    (server,) = tmp_path.rglob("config_fed_server.json")
    (workflow,) = json.loads(server.read_text())["workflows"]
    assert workflow["path"] == "secagg.flare.controller.SecAggFedAvg"
    wanted = {"clip": 1.0, "max_weight": 10_000, "num_clients": 4, "num_rounds": 10}
    assert workflow["args"].items() >= wanted.items()
    (client, *_) = tmp_path.rglob("config_fed_client.json")
    (executor,) = json.loads(client.read_text())["executors"]
    assert executor["tasks"] == ["secagg"]
    assert executor["executor"]["args"]["trainer"]["path"] == "flare_parts.StepTrainer"


def test_policy_of_the_page_is_valid() -> None:
    (component,) = json.loads(blocks("json"))["components"]
    policy = instantiate_class(component["path"], component["args"])
    assert isinstance(policy, SitePolicy)
    assert policy.rounds.require_active
    assert policy.rounds.min_clients == len(component["args"]["sites"]) == 4
