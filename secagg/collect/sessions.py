"""Sessions of a database: parameters of sums, with the helpers' endorsements."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from secagg.collect.database import Transaction
from secagg.oneshot import OneShotParams
from secagg.oneshot.policy import listed
from secagg.protocol.identities import SIGNATURE_BYTES

_COLUMNS = "number, digest, params, endorsements"


class SessionRow(NamedTuple):
    """Row of a session; the bytes are `OneShotParams.to_bytes` and joined endorsements."""

    number: int
    digest: bytes
    params: bytes
    endorsements: bytes


class Session:
    """Session whose clients report to a database.

    Attributes
    ----------
    number : int
        Number in the database.
    params : OneShotParams
    endorsements : list of bytes
        Signatures of all helpers, or none.
    """

    def __init__(self, row: SessionRow) -> None:
        self.number = row.number
        self.params = OneShotParams.from_bytes(row.params)
        joined = row.endorsements
        self.endorsements = [
            joined[at : at + SIGNATURE_BYTES] for at in range(0, len(joined), SIGNATURE_BYTES)
        ]

    @cached_property
    def name(self) -> str:
        """Name in events."""
        return self.params.digest.hex()[:16]


def store(tx: Transaction, params: OneShotParams, endorsements: Iterable[bytes]) -> Session:
    """Store a new session, and return the session; the caller has locked the database."""
    number = tx.number("SELECT coalesce(max(number), -1) + 1 FROM secagg_sessions")
    row = SessionRow(number, params.digest, params.to_bytes(), b"".join(listed(endorsements)))
    tx.insert("secagg_sessions", SessionRow._fields, [row])
    return Session(row)


def find(tx: Transaction, digest: bytes) -> Session | None:
    """Return the session of parameters with a digest, or None."""
    statement = f"SELECT {_COLUMNS} FROM secagg_sessions WHERE digest = ?"  # noqa: S608
    rows = tx.query(SessionRow, statement, digest)
    return Session(rows[0]) if rows else None


def get(tx: Transaction, number: int) -> Session:
    """Return the session with a number."""
    statement = f"SELECT {_COLUMNS} FROM secagg_sessions WHERE number = ?"  # noqa: S608
    return Session(*tx.query(SessionRow, statement, number))
