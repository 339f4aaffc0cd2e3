"""Batches of a database: the row whose state decides, with the list and the sum.

`secagg.collect.states` has the states. A batch's row changes here only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta

from secagg.collect import sessions, slices
from secagg.collect.database import Transaction, Value
from secagg.collect.sessions import StoredSession
from secagg.collect.states import BEFORE, State
from secagg.errors import DatabaseError, ParameterError, TooFewSurvivors
from secagg.oneshot import OneShotParams
from secagg.session.wire import check_bound

_SLICE = 1 << 12
"""Reports of a slice, on average."""
_Moment = Annotated[float, Meta(ge=-(1 << 35), lt=1 << 35)]
"""A thousand years before or after 1970: each has a date, and a period of the calendar."""
_COLUMNS = "number, session, place, state, reports, begun, changed, dropped"


class Batch(NamedTuple):
    """Batch of a session.

    Attributes
    ----------
    number : int
        Number in the database.
    session : int
        Number of the session in the database.
    place : int
        Number of the batch in the session, as helpers know the batch.
    state : State
    reports : int
        Number of acknowledged reports.
    begun, changed : float
        Times in seconds since 1970: the batch was opened, and the state last changed.
    dropped : int
        1 if the operator dropped the batch, which is *done* without a sum; else 0.
    """

    number: int
    session: int
    place: Annotated[int, Meta(ge=0)]
    state: State
    reports: Annotated[int, Meta(ge=0, le=1 << 20)]
    begun: _Moment
    changed: _Moment
    dropped: Annotated[int, Meta(ge=0, le=1)]


def begin(
    tx: Transaction,
    params: OneShotParams,
    endorsements: Iterable[bytes] = (),
    message: bytes = b"",
) -> StoredSession:
    """Begin a session in a transaction; see `secagg.collect.begin_session`."""
    sessions.check_lists(params)
    if len(message) > sessions.MOST_MESSAGE:
        raise ParameterError(
            f"the message has {len(message):,} bytes, and a session takes "
            f"{sessions.MOST_MESSAGE:,}; pass a SHA-256 of the content, which clients compare"
        )
    if message:
        check_bound(params, message)
    tx.lock()
    found = sessions.find(tx, params.digest)
    if found is None:
        found = sessions.store(tx, params, endorsements, message)
        _begin(tx, found)
    return found


def _begin(tx: Transaction, session: StoredSession) -> None:
    """Open the next batch of a session."""
    tx.lock()
    number, now = sessions.next_number(tx, "batch"), tx.now()
    last = "SELECT coalesce(max(place), -1) + 1 FROM secagg_batches WHERE session = ?"
    place = tx.number(last, session.number)
    tx.run(
        f"CREATE TABLE {reports_table(number)} (place BIGINT PRIMARY KEY, "
        f"report BYTEA NOT NULL){tx.growing}"
    )
    tx.insert(
        "secagg_batches",
        ("number", "session", "place", "state", "begun", "changed", "reports"),
        [(number, session.number, place, State.OPEN.value, now, now, 0)],
    )


def current(tx: Transaction, session: StoredSession) -> Batch | None:
    """Return the open batch of a session, or None.

    By the digest, too: in an older copy of the database another session has the number.
    """
    where = (
        "session = (SELECT number FROM secagg_sessions WHERE number = ? AND digest = ?) "
        "AND state = 'open'"
    )
    rows = _select(tx, where, session.number, session.params.digest)
    return rows[0] if rows else None


class _Digest(NamedTuple):
    digest: bytes


def newest(tx: Transaction) -> bytes:
    """Return the digest of the newest session with an open batch, or b"" without any."""
    found = tx.query(
        _Digest,
        "SELECT digest FROM secagg_sessions WHERE number IN "
        "(SELECT session FROM secagg_batches WHERE state = 'open') "
        "ORDER BY number DESC LIMIT 1",
    )
    return found[0].digest if found else b""


def get(tx: Transaction, number: int) -> Batch:
    """Return the batch with a number; raise `ParameterError` if there is none."""
    rows = _select(tx, "number = ?", number)
    if not rows:
        raise ParameterError(
            f"there is no batch {number}; take a number of `secagg collect status`"
        )
    return rows[0]


def in_states(
    tx: Transaction, *states: State, altered: list[DatabaseError] | None = None
) -> Sequence[Batch]:
    """Return the batches in some states, the oldest first; see `Transaction.query`."""
    where = f"state IN ({', '.join('?' * len(states))}) ORDER BY number"
    return _select(tx, where, *(s.value for s in states), altered=altered)


def count(tx: Transaction, batch: Batch, new: int, most: int) -> bool:
    """Count new reports of an open batch; return False if the batch is closed or too full.

    The last statement of each insertion: the row stays locked until the commit, and a report
    that is committed was counted while the batch was open.
    """
    statement = (
        "UPDATE secagg_batches SET reports = reports + ? "
        "WHERE number = ? AND state = 'open' AND reports + ? <= ?"
    )
    return tx.run(statement, new, batch.number, new, most) == 1


def advance(tx: Transaction, number: int, to: State, **columns: Value) -> bool:
    """Lead a batch from the state before `to` into `to`; return False in any other state."""
    more = "".join(f", {name} = ?" for name in columns)
    statement = (
        f"UPDATE secagg_batches SET state = ?, changed = ?{more} "  # noqa: S608
        "WHERE number = ? AND state = ?"
    )
    values = to.value, tx.now(), *columns.values(), number, BEFORE[to].value
    return tx.run(statement, *values) == 1


def close(
    tx: Transaction, number: int, *, reopen: bool = False, parts: int | None = None
) -> bool:
    """Close an open batch to further reports; return False if the batch is not open.

    Parameters
    ----------
    tx : Transaction
    number : int
    reopen : bool
        Open the next batch of the session at once, in the same transaction.
    parts : int, optional
        Number of slices. None: slices of about 4,096 reports.

    Raises
    ------
    TooFewSurvivors
        The batch has fewer reports than a sum needs, and stays open.
    """
    closed = advance(tx, number, State.CLOSING)
    if closed:
        batch = get(tx, number)  # now that the row is locked, the number of reports is final
        session = sessions.get(tx, batch.session)
        least = session.params.min_clients
        if batch.reports < least:
            raise TooFewSurvivors(
                f"batch {number} has {batch.reports} reports, and a sum needs {least}; wait "
                "for more",
                phase="report",
                survivors=batch.reports,
                needed=least,
            )
        slices.store(tx, number, parts or -(-batch.reports // _SLICE))
        if reopen:
            _begin(tx, session)
    return closed


def postpone(tx: Transaction, number: int) -> None:
    """Note that an open batch had too few reports at the end of a period, and stays open."""
    tx.run(
        "UPDATE secagg_batches SET changed = ? WHERE number = ? AND state = 'open'",
        tx.now(),
        number,
    )


def ask_again(tx: Transaction, number: int) -> bool:
    """Forget the results of a closing batch's slices; return False in any other state.

    Workers lease the slices again, so the helpers are asked again.
    """
    # the row stays locked: the list is not fixed meanwhile
    statement = "UPDATE secagg_batches SET state = state WHERE number = ? AND state = 'closing'"
    closing = tx.run(statement, number) == 1
    if closing:
        slices.forget(tx, number)
    return closing


def drop(tx: Transaction, number: int, outcome: bytes) -> bool:
    """Lead a closing, fixed or reserved batch to an end without a sum, and drop the reports.

    Parameters
    ----------
    tx : Transaction
    number : int
    outcome : bytes
        Reason, in bytes of `secagg.session.outcomes.write_error`.

    Returns
    -------
    bool
        False in any other state.
    """
    statement = (
        "UPDATE secagg_batches SET state = 'done', dropped = 1, changed = ?, list = NULL, "
        "reservations = NULL, outcome = ? "
        "WHERE number = ? AND state IN ('closing', 'fixed', 'reserved')"
    )
    dropped = tx.run(statement, tx.now(), outcome, number) == 1
    if dropped:
        drop_reports(tx, number)
    return dropped


def drop_reports(tx: Transaction, number: int) -> None:
    """Drop the slices and the reports of a batch that is done."""
    tx.run("DELETE FROM secagg_slices WHERE batch = ?", number)
    tx.run(f"DROP TABLE {reports_table(number)}")


class Stored(NamedTuple):
    """Bytes of a batch's row, each None until the state that brings the bytes."""

    list: bytes | None
    reservations: bytes | None
    outcome: bytes | None


def stored(tx: Transaction, number: int) -> Stored:
    """Return list, reservations and outcome of a batch."""
    statement = "SELECT list, reservations, outcome FROM secagg_batches WHERE number = ?"
    return tx.one(Stored, statement, number)


class _Outcome(NamedTuple):
    outcome: bytes | None


def outcome(tx: Transaction, number: int) -> bytes | None:
    """Return the outcome of a batch, without the bytes of the list."""
    statement = "SELECT outcome FROM secagg_batches WHERE number = ?"
    return tx.one(_Outcome, statement, number).outcome


def reports_table(number: int) -> str:
    """Return the name of the table with the reports of a batch."""
    return f"secagg_reports_{number:d}"


def _select(
    tx: Transaction, where: str, *values: Value, altered: list[DatabaseError] | None = None
) -> list[Batch]:
    statement = f"SELECT {_COLUMNS} FROM secagg_batches WHERE {where}"  # noqa: S608
    return tx.query(Batch, statement, *values, altered=altered)
