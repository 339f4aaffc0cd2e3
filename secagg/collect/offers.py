"""Sessions that a service knows, and the answers with their parameters, in bounded memory."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import msgspec

from secagg.collect import batches, sessions
from secagg.collect.database import Database, Transaction
from secagg.collect.sessions import StoredSession
from secagg.errors import DatabaseError
from secagg.http.problems import Problem
from secagg.session.exchange import Calls

logger = logging.getLogger("secagg.collect")

T = TypeVar("T")
_SESSIONS = 64
"""Sessions whose parameters are in memory at once."""
_OFFERS = 1 << 25
"""Bytes of answers with parameters that are in memory, unless a single answer has more."""
RETRY = 10
"""Seconds after which a batch may have room, or the database may be back."""


class Known(NamedTuple):
    """Session, without the message, and the bytes of the answer with the parameters."""

    session: StoredSession
    size: int


class Offers:
    """Sessions of a database, and the answers with their parameters.

    Each call raises `Problem` 503 while the database is away.

    Parameters
    ----------
    database : Database
    thread : Calls
        Thread of the database.
    signed : bool
        True if the service has the clients' keys, which active sums need.
    """

    def __init__(self, database: Database, thread: Calls, *, signed: bool) -> None:
        self._database, self._thread, self._signed = database, thread, signed
        self._known: OrderedDict[bytes, Known] = OrderedDict()
        self._contents: OrderedDict[bytes, bytes] = OrderedDict()

    async def newest(self) -> bytes:
        """Return the digest of the newest session with an open batch, or b"" without any."""
        return await self._run(batches.newest)

    async def find(self, digest: bytes) -> Known:
        """Return the session with a digest; raise `Problem` 404 without any."""
        known = self._known.get(digest)
        if known is None:
            session, content = await self._read(digest)
            session.message = b""  # the message may have megabytes
            known = self._known[digest] = Known(session, len(content))
            while len(self._known) > _SESSIONS:
                self._known.popitem(last=False)
        return known

    def forget(self, session: StoredSession) -> None:
        """Forget a session that the database does not have any more."""
        digest = session.params.digest
        if (known := self._known.get(digest)) and known.session is session:
            del self._known[digest]
            self._contents.pop(digest, None)

    async def content(self, digest: bytes) -> bytes:
        """Return the answer with the parameters; raise `Problem` 404 without the session."""
        content = self._contents.get(digest)
        if content is None:
            _, content = await self._read(digest)
        return content

    async def _read(self, digest: bytes) -> tuple[StoredSession, bytes]:
        """Return a session of the database, and the answer with the parameters."""
        session = await self._run(lambda tx: sessions.find(tx, digest))
        if session is None:
            raise unknown()
        if session.params.active and not self._signed:
            logger.error("session %s is active; serve it with the clients' keys", session.name)
            raise Problem(503, "server", "the server lacks the keys of the clients")
        offer: dict[str, str | bytes | list[bytes]] = {
            "digest": digest.hex(),
            "parameters": session.params.to_bytes(),
            "endorsements": session.endorsements,
        }
        if session.message:
            offer["message"] = session.message
        content = self._contents[digest] = msgspec.json.encode(offer)
        while sum(map(len, self._contents.values())) > _OFFERS and len(self._contents) > 1:
            self._contents.popitem(last=False)
        return session, content

    async def _run(self, read: Callable[[Transaction], T]) -> T:
        """Return what a call in the thread of the database reads."""

        def run() -> T:
            with self._database.transaction() as tx:
                return read(tx)

        try:
            return await self._thread.run(run)
        except DatabaseError as error:
            raise away(error) from None


def unknown() -> Problem:
    """Return the problem of parameters that the database does not have."""
    return Problem(404, "parameters", "there is no such session, or none is open")


def away(error: DatabaseError) -> Problem:
    """Return the problem of a database that is away, for a stranger; log the error."""
    # without the error's text, which can name machines of the operator
    logger.error("%s", error)
    why = "the server's database is away or full; send the same report again"
    return Problem(503, "database", why, retry_after=RETRY)
