"""Sessions of a database: parameters of sums, with the helpers' endorsements."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Literal, NamedTuple

from secagg.collect.database import AlteredError, Transaction
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.oneshot import OneShotParams
from secagg.oneshot.policy import listed
from secagg.protocol.identities import SIGNATURE_BYTES
from secagg.session.wire import is_bound, message_digest

MOST_MESSAGE = 1 << 23
"""Bytes of a message; the answer to each client has the message."""
_COLUMNS = "number, digest, params, endorsements, message"


class SessionRow(NamedTuple):
    """Row of a session; the bytes are `OneShotParams.to_bytes` and joined endorsements.

    The message is the application's to all clients, or b"".
    """

    number: int
    digest: bytes
    params: bytes
    endorsements: bytes
    message: bytes


class StoredSession:
    """Session whose clients report to a database.

    Attributes
    ----------
    number : int
        Number in the database.
    params : OneShotParams
    endorsements : list of bytes
        Signatures of all helpers, or none.
    message : bytes
        Message of the application to all clients, which the parameters name; b"" for none.
    """

    def __init__(self, row: SessionRow) -> None:
        self.number = row.number
        try:
            self.params = OneShotParams.from_bytes(row.params)
        except RemoteProtocolError as error:
            raise _altered(row.number, str(error)) from None
        if self.params.digest != row.digest:
            raise _altered(row.number, "the digest is of others")
        if row.message and not is_bound(self.params, row.message):
            raise _altered(row.number, "they name another message")
        self.message = row.message
        joined = row.endorsements
        self.endorsements = [
            joined[at : at + SIGNATURE_BYTES] for at in range(0, len(joined), SIGNATURE_BYTES)
        ]

    @cached_property
    def title(self) -> str:
        """Name that the operator gave, as far as the parameters have the name."""
        name = self.params.session.removesuffix(message_digest(self.message))
        return name.decode(errors="backslashreplace")

    @cached_property
    def name(self) -> str:
        """Name in events."""
        return self.params.digest.hex()[:16]


def check_lists(params: OneShotParams) -> None:
    """Raise `ParameterError` if helpers could open two lists with a client in common.

    A database that is restored from a copy may fix another list. If 2t > ℓ, any two sets of
    helpers that open have a common helper, whose journal has the first list. So has a quorum.
    """
    count, threshold = len(params.helpers), params.threshold
    if not params.quorum and 2 * threshold <= count:
        raise ParameterError(
            f"threshold is {threshold} of {count} helpers, so other helpers could open a "
            "second list after the database is restored from a copy; take a threshold of "
            f"{count // 2 + 1} or more, or security='active'"
        )


def store(
    tx: Transaction, params: OneShotParams, endorsements: Iterable[bytes], message: bytes = b""
) -> StoredSession:
    """Store a new session, and return the session; the caller has locked the database."""
    joined = b"".join(listed(endorsements))
    row = SessionRow(
        next_number(tx, "session"), params.digest, params.to_bytes(), joined, message
    )
    tx.insert("secagg_sessions", SessionRow._fields, [row])
    return StoredSession(row)


def find(tx: Transaction, digest: bytes) -> StoredSession | None:
    """Return the session of parameters with a digest, or None."""
    statement = f"SELECT {_COLUMNS} FROM secagg_sessions WHERE digest = ?"  # noqa: S608
    rows = tx.query(SessionRow, statement, digest)
    return StoredSession(rows[0]) if rows else None


def get(tx: Transaction, number: int) -> StoredSession:
    """Return the session with a number."""
    statement = f"SELECT {_COLUMNS} FROM secagg_sessions WHERE number = ?"  # noqa: S608
    rows = tx.query(SessionRow, statement, number)
    if not rows:
        raise AlteredError(
            f"session {number} is not in the database; unless another process deleted the "
            "session, restore the database"
        )
    return StoredSession(rows[0])


def is_there(tx: Transaction, session: StoredSession) -> bool:
    """Return whether a database has a session, under the same number."""
    statement = "SELECT count(*) FROM secagg_sessions WHERE number = ? AND digest = ?"
    return tx.number(statement, session.number, session.params.digest) == 1


def next_number(tx: Transaction, kind: Literal["session", "batch"]) -> int:
    """Return a number that no session, or no batch, had before; the database is locked."""
    tx.run(f"UPDATE secagg_numbers SET {kind} = {kind} + 1")  # noqa: S608
    return tx.number(f"SELECT {kind} - 1 FROM secagg_numbers")  # noqa: S608


def _altered(number: int, why: str) -> AlteredError:
    return AlteredError(
        f"the parameters of session {number} were altered ({why}); restore the database"
    )


class _Old(NamedTuple):
    number: int


def delete_done(tx: Transaction, seconds: float) -> list[int]:
    """Delete sessions all of whose batches are done for so many seconds; return the numbers.

    Ids, digests of reports, and sums go with the session.
    """
    tx.lock()
    old = tx.query(
        _Old,
        "SELECT number FROM secagg_sessions WHERE NOT EXISTS (SELECT 1 FROM secagg_batches "
        "WHERE secagg_batches.session = secagg_sessions.number "
        "AND (state <> 'done' OR changed > ?)) ORDER BY number",
        tx.now() - seconds,
    )
    for (number,) in old:
        tx.run("DELETE FROM secagg_clients WHERE session = ?", number)
        tx.run("DELETE FROM secagg_batches WHERE session = ?", number)
        tx.run("DELETE FROM secagg_sessions WHERE number = ?", number)
    return [number for (number,) in old]
