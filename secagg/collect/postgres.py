"""Database of collections in PostgreSQL, for processes of any number of machines."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

import psycopg
from psycopg import Connection, Cursor, IsolationLevel
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from secagg.collect.database import Clock, Row, Transaction, Value
from secagg.errors import DatabaseError

_LOCK = 0x5EC_A66
"""Key of the advisory lock for tables and sessions."""
_WAIT = 10.0
"""Seconds to wait for a connection."""
_REST = 1.0
"""Seconds without a try after such a wait: calls that came meanwhile do not wait, too."""
_SETTINGS = """
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') = 'off';
    SET idle_in_transaction_session_timeout = '60s';
    SET lock_timeout = '20s';
    SET tcp_keepalives_idle = 30;
    SET tcp_keepalives_interval = 10;
    SET tcp_keepalives_count = 3
"""
"""A commit is durable, and a process that hangs or lost the network keeps no locks for long.

Nobody waits longer for such locks than clients wait for an answer.
"""
_NETWORK = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""Keywords of libpq: a server that is gone without a word is noticed, and clients get 503."""
_TYPES = {int: "bigint", bytes: "bytea", float: "float8", str: "text"}


class PostgreSQL:
    """Database of a PostgreSQL server.

    Parameters
    ----------
    url : str
        URL or keywords of libpq, such as "postgresql://user@host/name".
    clock : callable, optional
        Seconds since 1970; by default the server's clock.
    """

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self._clock, self._next_try = clock, 0.0
        try:
            given = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            # without the error's text, which can quote the password
            raise DatabaseError(
                "the address of PostgreSQL is malformed; write postgresql://user@host/name, "
                "and the password into the file ~/.pgpass"
            ) from None
        try:
            self._pool = ConnectionPool(
                url,
                kwargs={name: one for name, one in _NETWORK.items() if name not in given},
                min_size=1,
                max_size=4,
                configure=_configure,
                check=ConnectionPool.check_connection,
                open=True,
            )
        except psycopg.Error as error:
            raise _failed(error) from None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Return a context with a transaction; see `Database.transaction`."""
        if time.monotonic() < self._next_try:
            raise _failed(PoolTimeout("no connection"))
        try:
            with self._pool.connection(_WAIT) as connection:
                yield _PostgreSQLTransaction(connection, self._clock)
        except psycopg.Error as error:
            if isinstance(error, PoolTimeout):
                self._next_try = time.monotonic() + _REST
            raise _failed(error) from None

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _PostgreSQLTransaction(Transaction):
    # a vacuum would read and write all rows once more, and rows that never change need none. A
    # report that fits into a page stays in the row: out of it, the index of the pieces outgrows
    # the buffers, and reading a report costs more the more reports there are
    growing = (
        " WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off, "
        "toast_tuple_target = 8160)"
    )

    def __init__(self, connection: Connection, clock: Clock | None) -> None:
        self._connection, self._clock = connection, clock
        self._cursor = Cursor(connection)
        self._cursor.format = psycopg.pq.Format.BINARY

    def run(self, statement: str, *values: Value) -> int:
        return self._cursor.execute(_marked(statement), values).rowcount

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        copy = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        with self._cursor.copy(copy.encode()) as stream:
            stream.set_types(_types(rows[0]))
            for row in rows:
                stream.write_row(row)

    def insert_new(
        self, table: str, columns: Sequence[str], rows: Sequence[Row], key: str
    ) -> set[int]:
        names = ", ".join(columns)
        arrays = ", ".join(f"?::{kind}[]" for kind in _types(rows[0]))
        statement = (
            f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays}) "  # noqa: S608
            f"ON CONFLICT DO NOTHING RETURNING {key}"
        )
        values = [list(column) for column in zip(*rows, strict=True)]
        return {number for (number,) in self._cursor.execute(_marked(statement), values)}

    def has_table(self, name: str) -> bool:
        # by the rows: to_regclass() would not see a table that another process has just made
        statement = (
            "SELECT count(*) FROM pg_tables "
            "WHERE schemaname = current_schema() AND tablename = ?"
        )
        return self.number(statement, name) == 1

    def lock(self) -> None:
        self.run("SELECT pg_advisory_xact_lock(?)", _LOCK)

    def now(self) -> float:
        if self._clock is not None:
            return self._clock()
        statement = "SELECT extract(epoch FROM clock_timestamp())::float8"
        return float(str(self._fetch(statement, ())[0][0]))

    def _fetch(self, statement: str, values: Row) -> Sequence[Sequence[object]]:
        return self._cursor.execute(_marked(statement), values).fetchall()


def _configure(connection: Connection) -> None:
    connection.autocommit = True
    for statement in _SETTINGS.split(";"):
        connection.execute(statement.encode())
    connection.autocommit = False
    # statements see what was committed while they waited, whatever the role's default is
    connection.isolation_level = IsolationLevel.READ_COMMITTED


def _failed(error: psycopg.Error) -> DatabaseError:
    """Return the error of a collection, without parameters or rows."""
    text = error.diag.message_primary or str(error).partition("\n")[0]
    remedy = "check that the server runs and has room, then try again"
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        remedy = "grant this right, or give the command the address with a role that has it"
    return DatabaseError(f"PostgreSQL failed ({type(error).__name__}): {text}; {remedy}")


def _types(row: Row) -> list[str]:
    return [_TYPES[type(value)] for value in row]


@lru_cache(1000)
def _marked(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()
