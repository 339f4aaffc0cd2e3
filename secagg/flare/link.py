"""Links of a site to the session on the server, over FLARE's auxiliary messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable

from secagg.errors import LinkError, RemoteProtocolError
from secagg.flare import names
from secagg.flare.configuration import check_configuration
from secagg.flare.log import log_rejection
from secagg.flare.model import read_model
from secagg.session.exchange import in_thread
from secagg.session.wire import Declined, encode, read_task

_INTERVAL = 0.2
"""Seconds between two questions for a task; a waiting request would hold a thread of FLARE."""
_TIMEOUT = 60.0
"""Seconds after which a request is sent again."""


Send = Callable[[Shareable, float], object]
"""Function that sends a request to the server and returns the server's reply. The arguments are
the request and a number of seconds; without a reply by then, any other value is returned."""


class Stop(Protocol):
    """Signal of FLARE that the job was aborted."""

    @property
    def triggered(self) -> bool:
        """True once the job was aborted."""


class FlareLink:
    """Link of a site; see `secagg.session.Link`.

    Parameters
    ----------
    send : Send
    token : bytes
        Token that the server gave to this site, and to no other.
    stop : Stop
        Signal after which the session counts as ended.
    """

    def __init__(self, send: Send, token: bytes, stop: Stop) -> None:
        self._send, self._token, self._stop = send, token, stop

    async def next_task(self, after: bytes) -> bytes | None:
        """Wait for the next task; see `secagg.session.Link.next_task`."""
        while True:
            reply = await self._request({names.AFTER: after})
            if reply is None or reply.get(names.ENDED):
                return None
            task = reply.get(names.SESSION_TASK)
            if isinstance(task, bytes):
                return task
            await asyncio.sleep(_INTERVAL)

    async def send(self, answer: bytes) -> None:
        """Send an answer; see `secagg.session.Link.send`."""
        reply = await self._request({names.ANSWER: answer})
        check = None if reply is None else reply.get(names.CHECK)
        if check is not None:
            detail = str(reply.get(names.DETAIL)) if reply else ""
            raise RemoteProtocolError(detail, sender=None, phase="answer", check=str(check))

    async def _request(self, fields: dict[str, object]) -> dict[str, object] | None:
        """Return the server's reply, or None if the job was aborted. Repeat a lost request."""
        while not self._stop.triggered:
            request = Shareable()
            request.update(fields)
            request[names.TOKEN] = self._token
            reply: Any = await in_thread(partial(self._send, request, _TIMEOUT))
            code = reply.get_return_code() if isinstance(reply, Shareable) else None
            if code == ReturnCode.OK:
                return {str(key): value for key, value in reply.items()}
            # every other code can pass, but a wrong token stays wrong
            if code == ReturnCode.BAD_REQUEST_DATA:
                raise LinkError(
                    "the server does not accept this site's token; start the job again",
                    check="token",
                )
            await asyncio.sleep(_INTERVAL)
        return None


class AgreedLink:
    """Link that declines the task of an input if the model fails a check of this site.

    A check in the training would come too late: a failed training sends zeros, so a server
    could make all sites but one send zeros.

    Parameters
    ----------
    link : FlareLink
    configuration : bytes
        `digest_configuration` of this site.

    Attributes
    ----------
    ended : bool
        True after the end of the session.
    """

    def __init__(self, link: FlareLink, configuration: bytes) -> None:
        self.ended = False
        self._link, self._configuration = link, configuration

    async def next_task(self, after: bytes) -> bytes | None:
        """Wait for the next task; see `secagg.session.Link.next_task`."""
        while (data := await self._link.next_task(after)) is not None:
            task = read_task(data)
            # only the task of an input has a message, which is the model
            if not task.message:
                return data
            try:
                check_configuration(read_model(task.message), self._configuration)
            except RemoteProtocolError as error:
                log_rejection("a round", error)
            else:
                return data
            after = task.id
            # declined, so that the round need not wait for this site until the deadline
            with suppress(RemoteProtocolError):  # the round has ended
                await self.send(encode(Declined(task.id)))
        self.ended = True
        return None

    async def send(self, answer: bytes) -> None:
        """Send an answer; see `secagg.session.Link.send`."""
        await self._link.send(answer)
