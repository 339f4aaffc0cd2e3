"""Agreement of sites on their configuration of a job, before any of them trains."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvflare")

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.widgets.widget import WidgetID

from flare_network import Adding, Network, Site
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.flare import SecAggExecutor, SecAggFedAvg, SitePolicy
from secagg.flare.configuration import check_configuration, digest_configuration
from secagg.flare.model import Model


def app_of(folder: Path, lr: float = 0.1, **more: Any) -> Path:
    """Return the app of a job as FLARE deploys it to a site."""
    (folder / "config").mkdir(parents=True, exist_ok=True)
    trainer = {"path": "package.Trainer", "args": {"lr": lr, "data": "/data/{SITE_NAME}"}}
    config = {"format_version": 2, "executors": [{"tasks": ["train"], "executor": trainer}]}
    (folder / "config/config_fed_client.json").write_text(json.dumps(config | more))
    return folder


def context_of(app: Path | None) -> FLContext:
    context = FLContext()
    context.set_prop(FLContextKey.APP_ROOT, None if app is None else str(app))
    return context


def digest(app: Path | None) -> bytes:
    return digest_configuration(context_of(app))


def policy(**args: Any) -> dict[str, Any]:
    path = "secagg.flare.policy.SitePolicy"
    return {"components": [{"id": "secagg_policy", "path": path, "args": args}]}


def test_sites_with_one_configuration_have_one_digest(tmp_path: Path) -> None:
    first, second = (app_of(tmp_path / name) for name in ("site-1", "site-2"))
    assert len(digest(first)) == 32
    assert digest(first) == digest(second)
    assert digest(None) == b""


def edit(name: str, content: str) -> Callable[[Path], None]:
    def write(app: Path) -> None:
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).write_text(content)

    return write


@pytest.mark.parametrize(
    "change",
    [
        lambda app: app_of(app, lr=0.0),
        lambda app: app_of(app, components=[{"id": "x", "path": "package.Other"}]),
        lambda app: app_of(app, components=[{"id": "secagg_policy", "path": "p.Trainer"}]),
        lambda app: app_of(app, **policy(kit={"path": "package.Other"})),
        edit("config/lr.json", "{}"),
        edit("custom/code.py", ""),
        edit("custom/data/lr.txt", "0"),
    ],
    ids=["argument", "component", "other policy", "nested", "file", "code", "data"],
)
def test_digest_covers_what_flare_builds_components_from(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    first, second = (app_of(tmp_path / name) for name in ("site-1", "site-2"))
    change(second)
    assert digest(first) != digest(second)


def test_digest_covers_the_names_of_files(tmp_path: Path) -> None:
    first, second = (app_of(tmp_path / name) for name in ("site-1", "site-2"))
    edit("custom/a", "bc")(first)
    edit("custom/ab", "c")(second)
    assert digest(first) != digest(second)


def test_digest_leaves_out_what_no_trainer_reads(tmp_path: Path) -> None:
    """FLARE's simulator takes the policy of each site, with its key, from the job.

    Its own processes have signatures of the job, which differ as they are randomised.
    """
    more = [policy(identity=f"/site-{i}.pem") for i in (1, 2)]
    first = app_of(tmp_path / "site-1", **more[0])
    second = app_of(tmp_path / "site-2", **more[1])
    edit("custom/__pycache__/code.pyc", "x")(second)
    edit("config/.__nvfl_sig.json", "x")(second)
    edit("config/.__nvfl_submitter.crt", "x")(second)
    assert digest(first) == digest(second)


def test_digest_is_of_the_file_that_flare_reads(tmp_path: Path) -> None:
    """FLARE ignores the suffix in the name of a configuration, and so does its search."""
    first, second = (app_of(tmp_path / name) for name in ("site-1", "site-2"))
    arguments = SimpleNamespace(client_config="config/config_fed_client.conf")
    context = context_of(second)
    context.set_prop(FLContextKey.ARGS, arguments)
    assert digest_configuration(context) != digest(first)  # the name is another
    arguments.client_config = "other/config_fed_client.json"
    with pytest.raises(ParameterError):
        digest_configuration(context)


@pytest.mark.parametrize("component", [SecAggExecutor(Adding(0.0)), SitePolicy()])
def test_check51_digest_is_of_the_files_at_the_start(
    tmp_path: Path, component: FLComponent
) -> None:
    """A server can deploy a job again while it runs; FLARE has built its components by then."""
    app = app_of(tmp_path / "site-1")
    context = context_of(app)
    context.get_engine = lambda: SimpleNamespace(
        widgets={WidgetID.FED_EVENT_RUNNER: SimpleNamespace()}
    )
    component.handle_event(EventType.ABOUT_TO_START_RUN, context)
    expected = digest(app_of(tmp_path / "site-2"))
    app_of(tmp_path / "site-1", lr=1.0)
    assert digest_configuration(context) == expected


def test_check51_configurations_that_can_change_while_they_are_read_reject(
    tmp_path: Path,
) -> None:
    """HOCON includes other files and addresses, and bytecode can be of another source."""
    app = app_of(tmp_path / "site-1")
    file = app / "config/config_fed_client.json"
    file.rename(file.with_suffix(".conf"))
    with pytest.raises(ParameterError):
        digest(app)
    other = app_of(tmp_path / "site-2")
    bytecode = other / "custom/__pycache__/code.cpython-311.pyc"
    bytecode.parent.mkdir(parents=True, exist_ok=True)
    for flags, accepted in ((0, True), (3, True), (1, False)):
        bytecode.write_bytes(b"\xa7\r\r\n" + flags.to_bytes(4, "little") + bytes(8))
        digest_configuration.__globals__["_digest"].cache_clear()
        if accepted:
            digest(other)
            continue
        with pytest.raises(ParameterError):
            digest(other)


@pytest.mark.parametrize("content", [None, "{"], ids=["none", "broken"])
def test_site_without_a_readable_configuration_rejects(
    tmp_path: Path, content: str | None
) -> None:
    app = app_of(tmp_path / "site-1")
    file = app / "config/config_fed_client.json"
    file.unlink() if content is None else file.write_text(content)
    with pytest.raises(ParameterError):
        digest(app)


def test_model_is_for_the_configuration_of_the_site() -> None:
    model = Model("train", 0, 1, {"w": np.zeros(2)}, (), bytes(32))
    check_configuration(model, bytes(32))
    for other in (b"", bytes([1]) * 32):
        with pytest.raises(RemoteProtocolError) as caught:
            check_configuration(model, other)
        assert caught.value.check == "configuration"


def test_site_with_other_arguments_trains_in_no_round(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sites = [Site(f"site-{i}", Adding(i / 8), SitePolicy()) for i in (1, 2, 3, 4)]
    for site in sites:
        site.app = app_of(tmp_path / site.name, lr=0.0 if site.name == "site-2" else 0.1)
    settings = {"exchange_timeout": 5.0, "train_timeout": 5.0, "clip": 2.0}
    controller = SecAggFedAvg(num_clients=4, num_rounds=2, model={"w": np.zeros(2)}, **settings)
    network = Network(sites)
    model = network.run(controller)
    np.testing.assert_allclose(model["w"], 2 * (1 + 3 + 4) / 8 / 3, atol=2**-14)
    assert [len(site.trainer.rounds) for site in sites] == [2, 0, 2, 2]
    assert network.codes["take_part"] == [ReturnCode.OK] * 4
    assert "configuration" in caplog.text
    assert "['site-2'] have another configuration" in caplog.text
