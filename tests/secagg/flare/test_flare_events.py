"""Events of the server, which FLARE fires at the sites that the server names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nvflare")

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FedEventHeader, ReservedKey
from nvflare.apis.fl_context import FLContext, FLContextManager
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.apis.utils.event import fire_event_to_components
from nvflare.private.aux_runner import AuxRunner
from nvflare.widgets.fed_event import FED_EVENT_TOPIC, ClientFedEventRunner

from flare_network import Adding
from secagg.flare import SecAggExecutor, SitePolicy


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
