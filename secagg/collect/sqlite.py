"""Database of a collection in a file: SQLite, for the processes of a single machine.

The file is in WAL mode with ``synchronous=FULL``, so a transaction is on the disk when the
block ends. Writers take turns. The file must be on a local disk, under one name for all
processes: SQLite keeps a log and the locks in files beside this name.
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
        self._real = Path(os.path.realpath(path))  # SQLite names its files after this
        self._log, self._index = (Path(f"{self._real}{end}") for end in ("-wal", "-shm"))
        self._known: dict[Path, os.stat_result] = {}
        self._lost: Path | None = None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Return a context with a transaction; see `Database.transaction`."""
        with self._turn:
            try:
                self._check()
                connection = self._connection or self._connect()
                connection.execute("BEGIN IMMEDIATE")
                self._note(self._log, self._index)  # which are there from now on
                self._check()
                yield _SQLiteTransaction(connection, self._clock)
                self._check()
                connection.execute("COMMIT")
            except BaseException as error:
                self._undo()
                if isinstance(error, sqlite3.Error):
                    raise DatabaseError(f"the database {self._path}: {error}") from None
                raise

    def close(self) -> None:
        """Close the connection."""
        with self._turn:
            self._disconnect()

    def _connect(self) -> sqlite3.Connection:
        if self._real not in self._known:
            self._find()
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
        return connection

    def _find(self) -> None:
        """Note the file, or make a new file; raise `DatabaseError` for a missing file."""
        if _size(self._log) and not _size(self._real):
            # SQLite deletes a log beside an empty file, and merges it with an older copy
            raise DatabaseError(
                f"the file {self._path} is missing or empty, and its log {self._log} has "
                "commits; move the log away, and put a copy of the file back"
            )
        if self._new:
            with suppress(OSError):  # if no file can be made, SQLite says so
                create_file(self._real, b"", private=True)  # it gets the sums
        elif _size(self._real) is None:
            raise DatabaseError(
                f"no database is at {self._path}; check the path and the rights, or make it "
                "with secagg collect begin"
            )
        self._note(self._real)

    def _note(self, *paths: Path) -> None:
        """Note which files are at paths, once for this process."""
        for path in paths:
            if path not in self._known:
                with suppress(OSError):
                    self._known[path] = path.stat()

    def _check(self) -> None:
        """Raise `DatabaseError` if a file was deleted or replaced, now and ever after.

        A commit to a file without a name is on no disk after the end of this process. Another
        file may be an older copy, and another log lacks the last commits. Only a process that
        begins after the end of all others reads the right files.
        """
        self._lost = self._lost or next((p for p in self._known if not self._is_there(p)), None)
        if self._lost is not None:
            raise DatabaseError(
                f"the file {self._lost} was deleted or replaced while this process ran; stop "
                "all processes before one starts again, and put back a database that is missing"
            )

    def _is_there(self, path: Path) -> bool:
        try:
            return os.path.samestat(self._known[path], path.stat())
        except OSError:
            return False

    def _undo(self) -> None:
        """End a transaction without a commit, so that the file is as before."""
        try:
            self._check()
        except DatabaseError:
            # open until the end: the last process that closes a log saves the log's commits
            if self._connection is not None:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
        else:
            self._disconnect()

    def _disconnect(self) -> None:
        for path in (self._log, self._index):  # which the last process deletes
            self._known.pop(path, None)
        connection, self._connection = self._connection, None
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


def _size(path: Path) -> int | None:
    """Return the bytes of a file, or None without a file."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def _insertion(table: str, columns: Sequence[str]) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
