"""Links of members to a session: the interface, and the link within one process."""

from __future__ import annotations

from typing import Protocol

from secagg.protocol.client_ids import ClientKey
from secagg.session.session import Session


class Link(Protocol):
    """Connection of a member to a session; a transport implements the connection.

    A link repeats requests that got no reply. `take_part` makes one call at a time. An error of
    a link ends `take_part`, except for `RemoteProtocolError` of `send`. So raise another error,
    such as `LinkError`, for a permanent refusal only. See docs/how-to/own-transport.md.
    """

    async def next_task(self, after: bytes) -> bytes | None:
        """Wait for the next task and return the task, or None once the session has ended.

        Parameters
        ----------
        after : bytes
            Id of the last task that the member has, or no bytes.

        Raises
        ------
        RemoteProtocolError
            "unknown client": the server has no such member.
        LinkError
            The server is gone for good, or refuses the member.
        """
        ...

    async def send(self, answer: bytes) -> None:
        """Send an answer, and return after the acknowledgement of the server.

        Raises
        ------
        RemoteProtocolError
            The server rejects the answer, as `Session.accept` does, with the same `check`. Or
            "late": the session ended without an acknowledgement.
        """
        ...


class LocalLink:
    """Link of a member to a session in the same process, for tests and simulations."""

    def __init__(self, session: Session, client_id: ClientKey) -> None:
        self._session = session
        self._client = client_id

    async def next_task(self, after: bytes) -> bytes | None:
        """Wait for the next task; see `Link.next_task`."""
        return await self._session.next_task(self._client, after)

    async def send(self, answer: bytes) -> None:
        """Send an answer; see `Link.send`."""
        await self._session.accept(self._client, answer)
