"""Session on the server, and the answers to the requests of sites."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from typing import Any

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply

from secagg.errors import LocalProtocolError, RemoteProtocolError
from secagg.flare import names
from secagg.flare.running import RunningSession
from secagg.protocol import Registry
from secagg.session import Deadlines


class SiteDesk(RunningSession):
    """Session of a job, with the parameters of `RunningSession`.

    Attributes
    ----------
    topic : str
        Topic of the sites' requests, different for every desk.
    tokens : dict of str to bytes
        Token of each site. FLARE's tasks, which are authenticated, carry the token. The site
        shows the token in requests, because FLARE does not state the sender of a request
        reliably.
    """

    def __init__(
        self,
        sites: Iterable[str],
        *,
        name: str,
        deadlines: Deadlines,
        attempts: int,
        registry: Registry | None = None,
    ) -> None:
        self.tokens = {site: os.urandom(16) for site in sites}
        self.topic = f"secagg.{secrets.token_hex(4)}"
        self._sites = {token: site for site, token in self.tokens.items()}
        super().__init__(
            list(self.tokens),
            name=name,
            deadlines=deadlines,
            attempts=attempts,
            registry=registry,
        )

    def handle(self, topic: str, request: Any, fl_ctx: object) -> Shareable:
        """Answer a site's request; see ``register_aux_message_handler`` of FLARE's engine."""
        token = request.get(names.TOKEN) if isinstance(request, Shareable) else None
        site = self._sites.get(token) if isinstance(token, bytes) else None
        if site is None:
            return make_reply(ReturnCode.BAD_REQUEST_DATA)
        after, answer = request.get(names.AFTER), request.get(names.ANSWER)
        reply = make_reply(ReturnCode.OK)
        try:
            if isinstance(answer, bytes):
                reply.update(self._answer(site, answer))
            elif isinstance(after, bytes):
                reply.update(self._task(site, after))
            else:
                return make_reply(ReturnCode.BAD_REQUEST_DATA)
        except LocalProtocolError:
            if not self._ended:  # only this round has failed
                raise
            reply[names.ENDED] = True
        return reply

    def _task(self, site: str, after: bytes) -> dict[str, object]:
        # without waiting for a task: a request that waits would hold a thread of FLARE
        task = self.start(self.session.next_task(site, after, 0)).result()
        return {} if task is None else {names.SESSION_TASK: task}

    def _answer(self, site: str, answer: bytes) -> dict[str, object]:
        try:
            self.start(self.session.accept(site, answer)).result()
        except RemoteProtocolError as error:
            return {names.CHECK: error.check, names.DETAIL: str(error)}
        return {}
