"""File of a journal: a SQLite database in WAL mode, on the disk before a write is acknowledged.

Each transaction is committed with ``synchronous=FULL``. Then `checkpoint` moves the transaction
from the write-ahead log into the file. So losing the ``-wal`` file later loses nothing.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

from secagg._check import check_kind
from secagg._files import sync_folder
from secagg.errors import JournalError
from secagg.journal.lock import FileLock, errors_of, spoilt


class JournalFile:
    """File of a journal, with the file's lock; the context manager closes the journal.

    Attributes
    ----------
    path : Path
        Absolute path of the file.
    """

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        self._lock = lock

    def close(self) -> None:
        """Release the file when no thread is writing; without this call nothing is lost."""
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a journal; raise `ParameterError` for anything but a path."""
    check_kind("the journal's path", path, (str, os.PathLike), "a str or a path")
    return Path(path).absolute()


def create(
    path: Path, schema: Sequence[str], fill: Callable[[sqlite3.Connection], None]
) -> None:
    """Create a database in a new file of mode 600, with these tables and their first rows.

    FileExistsError is raised if the file or a log of the file exists already, and JournalError
    if there is no such folder. OSError or sqlite3.Error is raised if a write fails.
    """
    if not path.parent.is_dir():
        raise JournalError(f"there is no folder {path.parent}; make it first")
    sync_folder(path.parent)  # fails now rather than with a file that may not last
    with closing(sqlite3.connect(":memory:")) as empty:
        # SQLite would take the log that a deleted file left behind for the new file's log
        if any(Path(f"{path}{left}").exists() for left in ("-wal", "-journal")):
            raise FileExistsError
        for table in schema:
            empty.execute(table)
        fill(empty)
        empty.commit()
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name) as file:
            file.write(empty.serialize())
            file.flush()
            os.fsync(file.fileno())
            os.link(file.name, path)  # unlike a rename, never replaces a file
        sync_folder(path.parent)


def opened(
    path: Path, schema: Sequence[str], fill: Callable[[sqlite3.Connection], None]
) -> FileLock:
    """Return the lock of a claimed database; a missing file is created."""
    with errors_of(path):
        if not path.exists():
            create(path, schema, fill)
    with locked(path) as (lock, connection):
        claim(connection, path, schema)
    return lock


@contextmanager
def locked(path: Path, maker: str = "") -> Iterator[tuple[FileLock, sqlite3.Connection]]:
    """Lock a database and yield lock and connection; the lock stays unless the block raises.

    `errors_of` states the errors. The error for a missing file names `maker`, the class that
    makes such files; without a `maker`, the file exists.
    """
    with errors_of(path):
        if maker and not path.is_file():
            raise JournalError(f"there is no such file; make one with {maker}.create")
        lock = FileLock(path)
        try:
            with lock.use() as connection:
                yield lock, connection
        except BaseException:
            lock.close()
            raise


def claim(connection: sqlite3.Connection, path: Path, schema: Sequence[str]) -> None:
    """Lock the database for this connection, recover it, and raise unless the file is sound."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    check_schema(connection, schema)
    if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
        raise JournalError(
            "SQLite cannot keep a write-ahead log beside it; choose a folder on a local disk"
        )
    connection.execute("PRAGMA synchronous = FULL")
    checkpoint(connection)
    # the chain validates the rows, this check the pages of these rows and of the next rows
    sound = connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    pages, size = (
        connection.execute(f"PRAGMA page_{x}").fetchone()[0] for x in ("count", "size")
    )
    if not sound or path.stat().st_size != pages * size:
        raise spoilt("it was truncated or altered")


def check_schema(connection: sqlite3.Connection, schema: Sequence[str]) -> None:
    """Raise unless the database has these tables and nothing else."""
    # a hostile file can have triggers, and views with endless rows
    found = connection.execute("SELECT sql FROM sqlite_schema ORDER BY rowid").fetchall()
    if found != [(table,) for table in schema]:
        raise spoilt("it is no journal of this release of secagg, or was altered")


@contextmanager
def transaction(connection: sqlite3.Connection, close: Callable[[], None]) -> Iterator[None]:
    """Run a transaction, which is on the disk when the context ends. After an error, `close`.

    Memory and disk may differ after an error, and only the file read again is certain.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
        checkpoint(connection)
    except BaseException:
        close()
        raise


def checkpoint(connection: sqlite3.Connection) -> None:
    """Move committed rows from the write-ahead log into the file itself, and sync the file."""
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise JournalError("the write-ahead log cannot be emptied")
