"""Events of the server, which the components of a site do not get.

FLARE fires them at the sites that the server names, past all filters. They could tell the
trainer of one site something, or stop all trainers but one, whose vector the sum would be.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.widgets.widget import WidgetID

from secagg.errors import ParameterError
from secagg.flare.configuration import digest_configuration
from secagg.flare.log import logger

__all__ = ["withhold_events"]


def withhold_events(event_type: str, fl_ctx: Any) -> None:
    """Withhold the server's events for the rest of a job; call it for each local event.

    It acts on the event before those at which FLARE begins to receive the server's events.
    """
    if event_type == EventType.ABOUT_TO_START_RUN:
        # now, and not when the server asks: it can deploy other files while the job runs
        with suppress(ParameterError):  # raised again when the server asks
            digest_configuration(fl_ctx)
        receiver = fl_ctx.get_engine().widgets[WidgetID.FED_EVENT_RUNNER]
        receiver._receive = _ignore  # which it registers as its handler of messages


def _ignore(topic: str, request: Shareable, fl_ctx: object) -> Shareable:
    logger.warning("ignored an event of the server, since all sites get the model only")
    return make_reply(ReturnCode.OK)
