"""Start of a job at a site, which fixes events and files that the server must not change.

The server's events do not reach the components. FLARE fires these events at the sites that the
server names, past all filters. The events could inform the trainer of a single site, or stop
all other trainers, so that the sum would be one vector. And the digest of the job's
configuration is taken, since the server can deploy other files later.
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


def fix_job(event_type: str, fl_ctx: Any) -> None:
    """Digest a job's configuration, and withhold the server's events for the rest of the job.

    Call this function for each local event. The function acts on the last event before FLARE
    begins to receive the server's events.
    """
    if event_type == EventType.ABOUT_TO_START_RUN:
        with suppress(ParameterError):  # raised again when the server asks for the digest
            digest_configuration(fl_ctx)
        receiver = fl_ctx.get_engine().widgets[WidgetID.FED_EVENT_RUNNER]
        # replaced now, before FLARE registers the method as the handler of messages
        receiver._receive = _ignore


def _ignore(topic: str, request: Shareable, fl_ctx: object) -> Shareable:
    logger.warning("ignored an event of the server, since all sites get the model only")
    return make_reply(ReturnCode.OK)
