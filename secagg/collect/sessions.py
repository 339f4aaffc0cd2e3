"""Sessions of a database: parameters of sums, with the helpers' endorsements."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from secagg.collect.database import Transaction
from secagg.oneshot import OneShotParams
from secagg.oneshot.policy import listed
from secagg.protocol.identities import SIGNATURE_BYTES

_SLICE = 1 << 12
"""Reports that a slice of a full batch has on average."""
_MOST = 1 << 10
_MIX = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, odd: spreads close ids
_COLUMNS = "number, digest, params, endorsements, slices"


class SessionRow(NamedTuple):
    """Row of a session; the bytes are `OneShotParams.to_bytes` and joined endorsements."""

    number: int
    digest: bytes
    params: bytes
    endorsements: bytes
    slices: int


class Session:
    """Session whose clients report to a database.

    Attributes
    ----------
    number : int
        Number in the database.
    params : OneShotParams
    slices : int
        Number of parts of each batch.
    endorsements : list of bytes
        Signatures of all helpers, or none.
    """

    def __init__(self, row: SessionRow) -> None:
        self.number, self.slices = row.number, row.slices
        self.params = OneShotParams.from_bytes(row.params)
        joined = row.endorsements
        self.endorsements = [
            joined[at : at + SIGNATURE_BYTES] for at in range(0, len(joined), SIGNATURE_BYTES)
        ]

    @cached_property
    def name(self) -> str:
        """Name in events."""
        return self.params.digest.hex()[:16]

    def slice_of(self, client_id: int) -> int:
        """Return the slice of a client, by a hash of the id."""
        return (client_id * _MIX % (1 << 64) >> 32) % self.slices


def store(
    tx: Transaction,
    params: OneShotParams,
    endorsements: Iterable[bytes],
    slices: int | None,
) -> Session:
    """Store a new session, and return the session; the caller has locked the database."""
    number = tx.number("SELECT coalesce(max(number), -1) + 1 FROM secagg_sessions")
    if slices is None:
        slices = min(_MOST, -(-params.n_clients // _SLICE))
    row = SessionRow(
        number, params.digest, params.to_bytes(), b"".join(listed(endorsements)), slices
    )
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
