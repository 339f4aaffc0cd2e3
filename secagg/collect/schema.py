"""Tables of collections, and the migrations from each version to the next.

Version 1:

- ``secagg_sessions``: a row for each `OneShotParams`, with the message to the clients. A client
  is in one batch of a session.
- ``secagg_batches``: a row for each batch, with the state, the number of reports, 1 if the
  operator dropped the batch, the fixed list as bytes of an accumulator, the helpers'
  reservations, and the outcome.
- ``secagg_clients``: the client and the SHA-256 of each acknowledged report, also after the
  report was dropped.
- ``secagg_slices``: ranges of places of a closing batch, their leases, and the partial
  accumulators.
- ``secagg_numbers``: one row, with the next session's number and the next batch's. Rows are
  deleted in the end, and no number is given twice.
- ``secagg_reports_N``: reports of batch N, in a table that is dropped as a whole. The place of
  a report is a hash of the client's id, which determines the id.

Numbers in [0, 2^64) are stored as numbers with the same bits in [−2^63, 2^63).
"""

from __future__ import annotations

from secagg.collect.database import Database, Transaction
from secagg.errors import DatabaseError

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE secagg_sessions (number BIGINT PRIMARY KEY, "
        "digest BYTEA NOT NULL UNIQUE, params BYTEA NOT NULL, "
        "endorsements BYTEA NOT NULL, message BYTEA NOT NULL)",
        "CREATE TABLE secagg_batches (number BIGINT PRIMARY KEY, session BIGINT NOT NULL, "
        "place BIGINT NOT NULL, state TEXT NOT NULL, begun DOUBLE PRECISION NOT NULL, "
        "changed DOUBLE PRECISION NOT NULL, "
        "reports BIGINT NOT NULL, dropped BIGINT NOT NULL DEFAULT 0, "
        "list BYTEA, reservations BYTEA, outcome BYTEA, "
        "UNIQUE (session, place))",
        # a second open batch of a session would take reports that nobody closes
        "CREATE UNIQUE INDEX secagg_open ON secagg_batches (session) WHERE state = 'open'",
        # a closer looks each second, and after years nearly all batches are done
        "CREATE INDEX secagg_states ON secagg_batches (state)",
        "CREATE TABLE secagg_clients (session BIGINT NOT NULL, id BIGINT NOT NULL, "
        "batch BIGINT NOT NULL, digest BYTEA NOT NULL, PRIMARY KEY (session, id))",
        "CREATE TABLE secagg_slices (batch BIGINT NOT NULL, slice BIGINT NOT NULL, "
        "first BIGINT NOT NULL, last BIGINT NOT NULL, token BIGINT NOT NULL, "
        "until DOUBLE PRECISION NOT NULL, rejected BYTEA, part BYTEA, "
        "PRIMARY KEY (batch, slice))",
        "CREATE TABLE secagg_numbers (session BIGINT NOT NULL, batch BIGINT NOT NULL)",
        "INSERT INTO secagg_numbers VALUES (0, 0)",
    ),
)
"""Statements that lead from version i to version i + 1."""


def migrate(database: Database) -> None:
    """Make the tables, or bring older tables to this version, one process at a time.

    Tables of this version are only read, so a process needs no right to make tables.

    Raises
    ------
    DatabaseError
        The tables are of a newer version, or the database failed.
    """
    with database.transaction() as tx:
        if _version(tx) == len(MIGRATIONS):
            return
        tx.lock()
        version = _version(tx)  # another process may have migrated before the lock
        if version is None:
            tx.run("CREATE TABLE secagg_schema (version BIGINT NOT NULL)")
            tx.run("INSERT INTO secagg_schema VALUES (0)")
        for statements in MIGRATIONS[version or 0 :]:
            for statement in statements:
                tx.run(statement)
        tx.run("UPDATE secagg_schema SET version = ?", len(MIGRATIONS))


def _version(tx: Transaction) -> int | None:
    """Return the version of the tables, or None without tables."""
    if not tx.has_table("secagg_schema"):
        return None
    version = tx.number("SELECT max(version) FROM secagg_schema")
    if version > len(MIGRATIONS):
        raise DatabaseError(
            f"the tables are of version {version}, and this secagg knows {len(MIGRATIONS)}; "
            "install the secagg that made them, or a newer one"
        )
    return version
