"""Reports of a batch in a database: each client once, acknowledged after the commit."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from secagg.collect import batches, sessions
from secagg.collect.batches import Batch
from secagg.collect.database import Database, Transaction, signed, unsigned
from secagg.collect.sessions import StoredSession

_CLIENTS = ("session", "id", "batch", "digest")
_REPORTS = ("place", "report")
EVERYWHERE = -(1 << 63), (1 << 63) - 1
"""The first and the last place."""
_MIX = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, odd: spreads close ids
_UNMIX = pow(_MIX, -1, 1 << 64)


class Verdict(Enum):
    """Verdict on a report.

    The report is stored, now or before; the client reported otherwise before; the open batch
    has no room; the session has no open batch; or the database does not have the session.
    """

    STORED = "stored"
    OTHER = "other"
    FULL = "full"
    CLOSED = "closed"
    UNKNOWN = "unknown"


class Report(NamedTuple):
    """Report that passed all checks, with the client's id and the SHA-256 of `content`."""

    client: int
    content: bytes
    digest: bytes

    @classmethod
    def of(cls, client: int, content: bytes) -> Report:
        """Return the report of a client."""
        return cls(client, content, hashlib.sha256(content).digest())


def add(database: Database, session: StoredSession, reports: Sequence[Report]) -> list[Verdict]:
    """Store reports in the open batch of a session, and return the verdict on each.

    All new reports are in one transaction, which has ended when the call returns. Where only a
    part of the reports fits into the batch, there are more transactions.

    Raises
    ------
    DatabaseError
        The database failed. Reports may be stored or not, and can be passed again.
    """
    while True:
        try:
            return _add(database, session, reports)
        except _NotOpen:
            continue  # the batch closed meanwhile; its successor may be open
        except _NoRoom:
            if len(reports) == 1:
                return [Verdict.FULL]
            half = len(reports) // 2
            first = add(database, session, reports[:half])
            return first + add(database, session, reports[half:])


def chunks(
    database: Database, batch: int, places: tuple[int, int], most: int
) -> Iterator[list[tuple[int, bytes]]]:
    """Yield clients and reports in chunks of `most`, each read in a transaction.

    Parameters
    ----------
    database : Database
    batch : int
    places : (int, int)
        First and last place.
    most : int
    """
    statement = (
        f"SELECT place, report FROM {batches.reports_table(batch)} "  # noqa: S608
        "WHERE place >= ? AND place <= ? ORDER BY place LIMIT ?"
    )
    first, last = places
    while first <= last:
        with database.transaction() as tx:
            found = tx.query(_Stored, statement, first, last, most)
        if not found:
            return
        yield [(client_at(row.place), row.report) for row in found]
        first = found[-1].place + 1


def of(database: Database, batch: int, clients: Collection[int]) -> Iterator[bytes]:
    """Yield the reports of some clients of a batch."""
    statement = (
        f"SELECT place, report FROM {batches.reports_table(batch)} "  # noqa: S608
        "WHERE place = ?"
    )
    for client in clients:
        with database.transaction() as tx:
            row = tx.one(_Stored, statement, place_of(client))
        yield row.report


def place_of(client: int) -> int:
    """Return the place of a client's report, a hash of the id in [−2^63, 2^63)."""
    return signed(client * _MIX % (1 << 64))


def client_at(place: int) -> int:
    """Return the client whose report has a place."""
    return unsigned(place) * _UNMIX % (1 << 64)


class _Stored(NamedTuple):
    place: int
    report: bytes


class _Known(NamedTuple):
    id: int
    digest: bytes


class _NotOpen(Exception):
    """The batch of a transaction is not open any more."""


class _NoRoom(Exception):
    """The batch of a transaction has no room for all reports."""


def _add(
    database: Database, session: StoredSession, reports: Sequence[Report]
) -> list[Verdict]:
    # sorted: two transactions that wait for each other's clients would not end
    firsts = {r.client: r for r in reversed(reports)}
    order = [firsts[u] for u in sorted(firsts, key=signed)]
    with database.transaction() as tx:
        batch = batches.current(tx, session)
        if batch is None and not sessions.is_there(tx, session):
            return [Verdict.UNKNOWN] * len(reports)
        fresh, without = set[int](), Verdict.CLOSED if batch is None else Verdict.FULL
        # without this look each report for a full batch would take transactions of its own
        if batch is not None and batch.reports < session.params.n_clients:
            rows = [(session.number, signed(r.client), batch.number, r.digest) for r in order]
            fresh = tx.insert_new("secagg_clients", _CLIENTS, rows, "id")
        new = [r for r in order if signed(r.client) in fresh]
        known = {r.client: r.digest for r in new}
        known |= _known(tx, session, [r.client for r in order if signed(r.client) not in fresh])
        if batch is not None and new:
            _store(tx, session, batch, new)
    return [
        without
        if r.client not in known
        else (Verdict.STORED if known[r.client] == r.digest else Verdict.OTHER)
        for r in reports
    ]


def _store(
    tx: Transaction, session: StoredSession, batch: Batch, new: Sequence[Report]
) -> None:
    tx.insert(
        batches.reports_table(batch.number),
        _REPORTS,
        [(place_of(r.client), r.content) for r in new],
    )
    if not batches.count(tx, batch, len(new), session.params.n_clients):
        # raised errors undo the insertion
        still = batches.current(tx, session)
        raise _NoRoom if still is not None and still.number == batch.number else _NotOpen


def _known(tx: Transaction, session: StoredSession, clients: Sequence[int]) -> dict[int, bytes]:
    """Return the digest of the stored report of each client that has a report."""
    if not clients:
        return {}
    marks = ", ".join("?" * len(clients))
    found = tx.query(
        _Known,
        f"SELECT id, digest FROM secagg_clients WHERE session = ? AND id IN ({marks})",  # noqa: S608
        session.number,
        *map(signed, clients),
    )
    return {unsigned(row.id): row.digest for row in found}
