"""FLARE's own processes on loopback: provisioned server and sites; all are ended here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from flower_net import free_port

ROOT = Path(__file__).parents[2]
SITES = [f"site-{i}" for i in range(1, 5)]
ALLOWED = [
    "nvflare.app_common.workflows.fedavg.FedAvg",
    "secagg.flare.controller.SecAggFedAvg",
    "secagg.flare.executor.SecAggExecutor",
    "secagg.flare.oneshot.OneShotFedAvg",
    "flare_parts.StepTrainer",
    "flare_parts.FileModel",
]
USER = "lead@example.org"


def environment() -> dict[str, str]:
    """Return variables for processes that import this checkout."""
    return os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT}/tests/support"}


def provision(folder: Path, **demands: object) -> Path:
    """Return a folder of startup kits, in which sites let sums leave only.

    `demands` are the arguments of their `SitePolicy`.
    """
    server = {"name": "localhost", "type": "server", "org": "org"}
    server |= {"fed_learn_port": free_port()}
    user = {"name": USER, "type": "admin", "org": "org", "role": "lead"}
    clients = [{"name": name, "type": "client", "org": "org"} for name in SITES]
    builders = ("workspace.WorkspaceBuilder", "static_file.StaticFileBuilder")
    builders += ("cert.CertBuilder", "signature.SignatureBuilder")
    project: dict[str, Any] = {
        "api_version": 3,
        "name": "project",
        "participants": [server, user, *clients],
        "builders": [{"path": f"nvflare.lighter.impl.{name}"} for name in builders],
    }
    project["builders"][0]["args"] = {"template_file": ["master_template.yml"]}
    project["builders"][1]["args"] = {"config_folder": "config"}
    (folder / "project.yml").write_text(json.dumps(project))  # JSON is YAML
    subprocess.run(  # noqa: S603
        [Path(sys.executable).parent / "nvflare", "provision", "-p", "project.yml", "--force"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    (made,) = folder.glob("workspace/project/prod_00")
    for name in ["localhost", *SITES]:
        local = made / name / "local"
        resources = json.loads((local / "resources.json.default").read_text())
        resources |= {"class_allow_list": ALLOWED, "allow_log_streaming": False}
        (local / "resources.json").write_text(json.dumps(resources))
    path = "secagg.flare.policy.SitePolicy"
    policy = {"id": "secagg_policy", "path": path, "args": demands}
    guard = [{"path": "secagg.flare.filter.SecAggFilter"}]
    scope = {"name": "sums", "task_data_filters": guard, "task_result_filters": guard}
    privacy = {"scopes": [scope], "default_scope": "sums", "components": [policy]}
    for name in SITES:
        (made / name / "local/privacy.json").write_text(json.dumps(privacy))
    return made


@contextmanager
def running(kits: Path) -> Iterator[None]:
    """Run the server and all sites until the end of the block."""
    started: list[subprocess.Popen[bytes]] = []
    commands = [("localhost", "server", "fed_server.json", [])]
    commands += [(name, "client", "fed_client.json", [f"uid={name}"]) for name in SITES]
    try:
        for name, role, config, more in commands:
            module = f"nvflare.private.fed.app.{role}.{role}_train"
            options = ["-s", config, "--set", "secure_train=true", *more, "org=org"]
            options += ["config_folder=config"]
            with (kits / f"{name}.log").open("wb") as log:
                started.append(
                    subprocess.Popen(  # noqa: S603
                        [sys.executable, "-m", module, "-m", str(kits / name), *options],
                        cwd=kits / name,
                        env=environment(),
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
        yield
    finally:
        for how in (signal.SIGTERM, signal.SIGKILL):
            for one in started:
                with suppress(ProcessLookupError):
                    os.killpg(one.pid, how)
            for one in started:
                with suppress(subprocess.TimeoutExpired):
                    one.wait(5)
