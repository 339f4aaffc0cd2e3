"""Database of a collection in a file: SQLite, for the processes of a single machine.

The file is in WAL mode with ``synchronous=FULL``, so a transaction is on the disk when the
block ends. Writers take turns. The file must be on a local disk.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from secagg._files import create_file
from secagg.collect.database import Clock, Row, Transaction, Value
from secagg.errors import DatabaseError

_WAIT = 60.0
"""Seconds to wait for the writers of other processes."""


class SQLite:
    """Database in a file.

    Parameters
    ----------
    path : Path
    clock : callable
        Seconds since 1970.
    new : bool
        True: a missing file is made, of mode 600. False: a missing file is an error.
    """

    def __init__(self, path: Path, clock: Clock = time.time, *, new: bool = False) -> None:
        self._path, self._clock, self._new = path, clock, new
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._log_path = Path(f"{path.resolve()}-wal")
        self._file: os.stat_result | None = None
        self._log: os.stat_result | None = None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Return a context with a transaction; see `Database.transaction`."""
        with self._turn:
            try:
                connection = self._connection or self._connect()
                connection.execute("BEGIN IMMEDIATE")
                self._log = self._log or _stat(self._log_path)
                yield _SQLiteTransaction(connection, self._clock)
                self._check_file()
                self._check_log()
                connection.execute("COMMIT")
            except BaseException as error:
                self._disconnect()  # without a commit, so the file is as before
                if isinstance(error, sqlite3.Error):
                    raise DatabaseError(f"the database {self._path}: {error}") from None
                raise

    def close(self) -> None:
        """Close the connection."""
        with self._turn:
            self._disconnect()

    def _connect(self) -> sqlite3.Connection:
        if self._file is None:
            self._find()
        else:
            self._check_file()  # before a log that was left is written into another file
        address = f"{self._path.absolute().as_uri()}?mode=rw"  # and never made by SQLite
        connection = self._connection = sqlite3.connect(
            address, uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False
        )
        if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise DatabaseError(
                f"SQLite cannot keep a write-ahead log beside {self._path}; choose a folder on "
                "a local disk"
            )
        connection.execute("PRAGMA synchronous = FULL")
        self._check_file()
        return connection

    def _find(self) -> None:
        """Note the file, or make a new file; raise `DatabaseError` for a missing file."""
        if os.path.lexists(self._log_path) and not os.path.lexists(self._path.resolve()):
            # SQLite deletes a log beside an empty file, and merges it with an older copy
            raise DatabaseError(
                f"the file {self._path} is missing, and its log {self._log_path} is there with "
                "commits; move the log away, and put a copy of the file back"
            )
        if self._new:
            with suppress(OSError):  # if no file can be made, SQLite says so
                create_file(self._path.resolve(), b"", private=True)  # it gets the sums
        self._file = _stat(self._path)
        if self._file is None and not self._new:
            raise DatabaseError(
                f"no database is at {self._path}; check the path, or make it with secagg "
                "collect begin"
            )

    def _check_file(self) -> None:
        """Raise `DatabaseError` if another file, or none, is at the path by now.

        A commit to a file without a name is on no disk after the end of this process, and
        another file may be an older copy, which only a new process takes.
        """
        if not _is_same(self._file, self._path):
            raise DatabaseError(
                f"the file {self._path} was deleted or replaced while this process ran; stop "
                "all processes, and put the file or a copy of it back"
            )

    def _check_log(self) -> None:
        """Raise `DatabaseError` if the log was moved; commits are in the log first."""
        if not _is_same(self._log, self._log_path):
            raise DatabaseError(
                f"the file {self._log_path} was deleted or replaced while this process ran, "
                "with the last commits; stop all processes, which write what is left"
            )

    def _disconnect(self) -> None:
        connection, self._connection, self._log = self._connection, None, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


class _SQLiteTransaction(Transaction):
    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._connection, self._clock = connection, clock

    def run(self, statement: str, *values: Value) -> int:
        return self._connection.execute(statement, values).rowcount

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        self._connection.executemany(_insertion(table, columns), rows)

    def insert_new(
        self, table: str, columns: Sequence[str], rows: Sequence[Row], key: str
    ) -> set[int]:
        statement = _insertion(table, columns) + " ON CONFLICT DO NOTHING"
        at = columns.index(key)
        return {int(row[at] or 0) for row in rows if self.run(statement, *row)}

    def has_table(self, name: str) -> bool:
        return self.number("SELECT count(*) FROM sqlite_master WHERE name = ?", name) == 1

    def lock(self) -> None:
        """Do nothing: the transaction is the only writer already."""

    def now(self) -> float:
        return self._clock()

    def _fetch(self, statement: str, values: Row) -> Sequence[Sequence[object]]:
        return self._connection.execute(statement, values).fetchall()


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _is_same(known: os.stat_result | None, path: Path) -> bool:
    now = _stat(path)
    return known is not None and now is not None and os.path.samestat(known, now)


def _insertion(table: str, columns: Sequence[str]) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
