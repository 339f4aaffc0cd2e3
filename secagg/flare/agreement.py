"""Link of a site that passes only models for the site's own configuration of the job."""

from __future__ import annotations

from contextlib import suppress

from secagg.errors import RemoteProtocolError
from secagg.flare.configuration import check_configuration
from secagg.flare.link import FlareLink
from secagg.flare.log import log_rejection
from secagg.flare.model import read_model
from secagg.session.wire import Declined, encode, read_task


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
