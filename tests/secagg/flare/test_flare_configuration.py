"""Agreement of sites on their configuration of a job, and events that the server fires."""

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
from nvflare.apis.fl_constant import FedEventHeader, FLContextKey, ReservedKey, ReturnCode
from nvflare.apis.fl_context import FLContext, FLContextManager
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.apis.utils.event import fire_event_to_components
from nvflare.private.aux_runner import AuxRunner
from nvflare.widgets.fed_event import FED_EVENT_TOPIC, ClientFedEventRunner
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
    config = {"executors": [{"tasks": ["train"], "executor": trainer}], "components": []}
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


def edit(name: str, content: str) -> Callable[[Path], None]:
    def write(app: Path) -> None:
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).write_text(content)

    return write


@pytest.fixture
def apps(tmp_path: Path) -> tuple[Path, Path]:
    return app_of(tmp_path / "site-1"), app_of(tmp_path / "site-2")


COVERED: dict[str, Callable[[Path], object]] = {
    "argument": lambda app: app_of(app, lr=0.0),
    "component": lambda app: app_of(app, components=[{"id": "x", "path": "package.Other"}]),
    "other policy": lambda app: app_of(
        app, components=[{"id": "secagg_policy", "path": "p.Trainer"}]
    ),
    "nested": lambda app: app_of(app, **policy(kit={"path": "package.Other"})),
    "file": edit("config/lr.json", "{}"),
    "code": edit("custom/code.py", ""),
    "data": edit("custom/data/lr.txt", "0"),
}
# FLARE's simulator takes the policy of each site, with its key, from the job
LEFT_OUT: dict[str, Callable[[Path], object]] = {
    "nothing": lambda app: None,
    "policy": lambda app: app_of(app, **policy(identity="/site-2.pem")),
    "bytecode": edit("custom/__pycache__/code.pyc", "x"),
    "signature": edit("config/.__nvfl_sig.json", "x"),  # randomised
    "submitter": edit("config/.__nvfl_submitter.crt", "x"),
}


@pytest.mark.parametrize("name", [*COVERED, *LEFT_OUT])
def test_digest_covers_what_flare_builds_components_from(apps, name):
    first, second = apps
    (COVERED | LEFT_OUT)[name](second)
    assert len(digest(first)) == 32
    assert (digest(first) == digest(second)) is (name in LEFT_OUT)


def test_digest_covers_the_names_of_files(apps):
    first, second = apps
    edit("custom/a", "bc")(first)
    edit("custom/ab", "c")(second)
    assert digest(first) != digest(second)
    assert digest(None) == b""


def test_digest_is_of_the_file_that_flare_reads(apps):
    """FLARE ignores the suffix in the name of a configuration, and so does its search."""
    first, second = apps
    arguments = SimpleNamespace(client_config="config/config_fed_client.conf")
    context = context_of(second)
    context.set_prop(FLContextKey.ARGS, arguments)
    assert digest_configuration(context) != digest(first)  # the name is another
    arguments.client_config = "other/config_fed_client.json"
    with pytest.raises(ParameterError):
        digest_configuration(context)


@pytest.mark.parametrize("component", [SecAggExecutor(Adding(0.0)), SitePolicy()])
def test_check51_digest_is_of_the_files_at_the_start(apps, component):
    """A server can deploy a job again while it runs; FLARE has built its components by then."""
    context = context_of(apps[0])
    context.get_engine = lambda: SimpleNamespace(
        widgets={WidgetID.FED_EVENT_RUNNER: SimpleNamespace()}
    )
    component.handle_event(EventType.ABOUT_TO_START_RUN, context)
    app_of(apps[0], lr=1.0)
    assert digest_configuration(context) == digest(apps[1])


@pytest.mark.parametrize("wrong", ["conf", "none", "broken", "bytecode"])
def test_check51_site_without_a_steady_readable_configuration_rejects(apps, wrong):
    """HOCON includes other files and addresses, and bytecode can be of another source."""
    app, other = apps
    file = app / "config/config_fed_client.json"
    if wrong == "conf":
        file.rename(file.with_suffix(".conf"))
    elif wrong == "none":
        file.unlink()
    elif wrong == "broken":
        file.write_text("{")
    else:
        for flags, folder in ((0, other), (3, other), (1, app)):
            bytecode = folder / f"custom/__pycache__/code{flags}.cpython-311.pyc"
            bytecode.parent.mkdir(parents=True, exist_ok=True)
            bytecode.write_bytes(b"\xa7\r\r\n" + flags.to_bytes(4, "little") + bytes(8))
    digest(other)
    with pytest.raises(ParameterError):
        digest(app)


def test_model_is_for_the_configuration_of_the_site():
    model = Model("train", 0, 1, {"w": np.zeros(2)}, (), bytes(32))
    check_configuration(model, bytes(32))
    for other in (b"", bytes([1]) * 32):
        with pytest.raises(RemoteProtocolError) as caught:
            check_configuration(model, other)
        assert caught.value.check == "configuration"


def test_site_with_other_arguments_trains_in_no_round(tmp_path, caplog):
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
    assert "check configuration" in caplog.text
    assert "['site-2']" in caplog.text


class Seeing(FLComponent):
    """Component of a job that records the events that it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        self.seen.append(event_type)


def job_of(*components: FLComponent) -> tuple[AuxRunner, FLContext, ClientFedEventRunner]:
    """Return what FLARE sets up for a job with some components at a site."""
    receiver = ClientFedEventRunner()
    engine: Any = SimpleNamespace(widgets={"fed_event_runner": receiver})
    aux = AuxRunner(engine)
    engine.register_aux_message_handler = aux.register_aux_message_handler
    manager = FLContextManager(engine, "site-1", "job")
    engine.new_context = manager.new_context

    def fire_event(event_type: str, fl_ctx: FLContext) -> None:
        fire_event_to_components(event_type, [*components, receiver], fl_ctx)

    engine.fire_event = fire_event
    context = manager.new_context()
    context.set_prop(ReservedKey.RUN_ABORT_SIGNAL, Signal())
    for event in (EventType.ABOUT_TO_START_RUN, EventType.START_RUN):
        fire_event(event, context)
    return aux, context, receiver


@pytest.mark.parametrize("guard", [SecAggExecutor(Adding(0.0)), SitePolicy(), None])
def test_components_get_no_event_of_the_server(guard):
    """The server sends an event that stops a trainer."""
    component = Seeing()
    components = (component,) if guard is None else (component, guard)
    aux, context, receiver = job_of(*components)
    receiver.grace_period = 0.0
    request = Shareable()
    request.set_peer_props({ReservedKey.IDENTITY_NAME: "server"})
    request.set_header(FedEventHeader.TIMESTAMP, 1.0)
    request.set_header(FedEventHeader.EVENT_TYPE, EventType.ABORT_TASK)
    aux.dispatch(FED_EVENT_TOPIC, request, context)
    receiver.handle_event(EventType.END_RUN, context)  # it has fired all by then
    assert (EventType.ABORT_TASK in component.seen) is (guard is None)
