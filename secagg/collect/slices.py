"""Slices of a closing batch: parts of the ids, each leased by one worker at a time.

A lease that ran out can be taken again, and the work is repeated from the reports. Each lease
has another token, and a slice takes the result of the latest lease only: so a worker that comes
back late changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from secagg.collect.database import AlteredError, Database, Transaction
from secagg.errors import DatabaseError

Rejected = Mapping[int, set[int]]
"""Clients that each helper rejected, by the helper's number j; 0 for the worker itself.

−j stands for a helper that failed at a later report of the slice.
"""
_READ = msgspec.json.Decoder(dict[int, set[int]])


class Lease(NamedTuple):
    """Lease of a slice: the reports from place `first` to place `last`."""

    batch: int
    slice: int
    token: Annotated[int, Meta(ge=0, lt=1 << 62)]
    first: int
    last: int


class Part(NamedTuple):
    """Result of a slice: bytes of an accumulator, and the rejected clients."""

    part: bytes
    rejected: dict[int, set[int]]


def store(tx: Transaction, batch: int, count: int) -> None:
    """Divide the places of a batch into slices."""
    starts = [(1 << 64) * at // count - (1 << 63) for at in range(count + 1)]
    tx.insert(
        "secagg_slices",
        ("batch", "slice", "first", "last", "token", "until"),
        [(batch, at, starts[at], starts[at + 1] - 1, 0, 0.0) for at in range(count)],
    )


def take(tx: Transaction, seconds: float, batch: int | None = None) -> Lease | None:
    """Lease a slice of a closing batch for some seconds; return None if there is none.

    Slices with few leases come first, so no slice waits for helpers of another slice. A lease
    that ends after twice the time is of a clock that was ahead, and can be taken, too.

    Parameters
    ----------
    tx : Transaction
    seconds : float
    batch : int, optional
        Number of the batch. None: any batch.
    """
    now = tx.now()
    batches = (0, (1 << 63) - 1) if batch is None else (batch, batch)
    while True:
        altered = list[DatabaseError]()  # rows that keep no other slice from a worker
        found = tx.query(
            Lease,
            "SELECT s.batch, s.slice, s.token, s.first, s.last FROM secagg_slices s "
            "JOIN secagg_batches b ON b.number = s.batch WHERE b.state = 'closing' "
            "AND s.part IS NULL AND (s.until <= ? OR s.until > ?) "
            "AND s.batch >= ? AND s.batch <= ? ORDER BY s.token, s.batch, s.slice",
            now,
            # not after once: a clock that is set back a little must cost nobody a lease
            now + 2 * seconds,
            *batches,
            altered=altered,
        )
        if not found:
            if altered:
                raise altered[0]
            return None
        free = found[0]
        if _update(tx, free, "token = token + 1, until = ?", now + seconds):
            return free._replace(token=free.token + 1)


def renew(tx: Transaction, lease: Lease, seconds: float) -> bool:
    """Lengthen a lease to some seconds from now; return False if the lease was taken."""
    return _update(tx, lease, "until = ?", tx.now() + seconds)


def release(tx: Transaction, lease: Lease) -> None:
    """End a lease without a result, unless the lease was taken."""
    _update(tx, lease, "until = ?", 0.0)


def finish(tx: Transaction, lease: Lease, part: bytes, rejected: Rejected) -> bool:
    """Store the result of a slice; return False, and store nothing, if the lease was taken."""
    stored = msgspec.json.encode(rejected)
    return _update(tx, lease, "part = ?, rejected = ?", part, stored)


def forget(tx: Transaction, batch: int) -> None:
    """Forget the results and the leases of a batch, whose row the caller has locked."""
    tx.run(
        "UPDATE secagg_slices SET part = NULL, rejected = NULL, token = token + 1, until = 0 "
        "WHERE batch = ?",
        batch,
    )


class Unfinished(Exception):
    """A slice has no result any more."""


def unfinished(tx: Transaction, batch: int) -> int:
    """Return the number of slices of a batch without a result."""
    # by the rejections, which `status` shows; the parts have the ids of all reports
    statement = "SELECT count(*) FROM secagg_slices WHERE batch = ? AND rejected IS NULL"
    return tx.number(statement, batch)


def count(tx: Transaction, batch: int) -> int:
    """Return the number of slices of a batch; an open batch and a done batch have none."""
    return tx.number("SELECT count(*) FROM secagg_slices WHERE batch = ?", batch)


def parts(database: Database, batch: int) -> Iterator[Part]:
    """Yield the results of the slices of a batch; raise `Unfinished` at a slice without.

    `Unfinished` is raised for a batch without slices, too: another process finished the batch.
    """
    with database.transaction() as tx:
        found = count(tx, batch)
    if not found:
        raise Unfinished
    for at in range(found):
        with database.transaction() as tx:
            row = tx.one(
                _Row,
                "SELECT part, rejected FROM secagg_slices WHERE batch = ? AND slice = ?",
                batch,
                at,
            )
        if row.part is None or row.rejected is None:
            raise Unfinished
        yield Part(row.part, _read(row.rejected, batch))


def rejected(tx: Transaction, batch: int) -> set[int] | None:
    """Return the clients that any helper rejected; None if a slice has no result."""
    statement = "SELECT rejected FROM secagg_slices WHERE batch = ?"
    rows = [row.rejected for row in tx.query(_Rejected, statement, batch)]
    found = set[int]()
    for row in rows:
        if row is None:
            return None
        found.update(*(ids for j, ids in _read(row, batch).items() if j))
    return found if rows else None


def _read(rejected: bytes, batch: int) -> dict[int, set[int]]:
    try:
        return _READ.decode(rejected)
    except msgspec.MsgspecError:
        raise AlteredError(
            f"a slice of batch {batch} was altered; restore the database"
        ) from None


class _Row(NamedTuple):
    part: bytes | None
    rejected: bytes | None


class _Rejected(NamedTuple):
    rejected: bytes | None


def _update(tx: Transaction, lease: Lease, change: str, *values: float | bytes) -> bool:
    statement = (
        f"UPDATE secagg_slices SET {change} "  # noqa: S608
        "WHERE batch = ? AND slice = ? AND token = ? AND part IS NULL"
    )
    return tx.run(statement, *values, lease.batch, lease.slice, lease.token) == 1
