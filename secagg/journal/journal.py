"""Log of a server in a file: acknowledged messages survive kill −9 and a power cut.

A journal is one SQLite file for one round, in WAL mode with exclusive locking. Each entry is
committed with ``synchronous=FULL`` and moved from the write-ahead log into the file before the
call returns. So losing the ``-wal`` file later loses no acknowledged entry.

Each row has a SHA-256 over its content and the hash of the row before it, and the file stores
the number of rows and the last hash. So altered, swapped and missing rows are detected. There
is no key, so a consistent rewrite of the *whole* file, or an older copy, is not detected.

Never restore an older copy: a server resumed from it would request shares again, perhaps for
other survivors. Honest clients answer once. So at most the round is lost if any two sets of t
holders of a secret have an honest holder in common. With c colluders this takes 2t > n + c on
the complete graph, where the parameters ensure 2t > n, and 2t > k + 1 + c on any other graph.
Otherwise both secrets of a client, and so its input, can leak.

The file contains masked inputs, revealed shares and the seed of the graph, but no input. The
last messages determine the sum, so give the file only to parties that may know it. Mode 600.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from secagg._check import check_kind
from secagg.errors import JournalError
from secagg.journal import database
from secagg.journal.lock import FileLock, errors_of, spoilt
from secagg.protocol import RoundParams
from secagg.protocol.messages import MaskedInput, ShareKeys, UnmaskShares, max_bytes
from secagg.protocol.params_bytes import compare
from secagg.server import Entry
from secagg.server.log import first_link, link

_SCHEMA = (
    "CREATE TABLE head (params BLOB, entries INTEGER, chain BLOB)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, client BLOB, data BLOB, chain BLOB)",
)
_NEXT = (
    "SELECT number, client, data, chain FROM entries WHERE number >= ? ORDER BY number LIMIT 1"
)
_ROOM = 4096
"""Bytes of a row besides its message, at most."""


class Journal:
    """Journal of one round in a file. Make one with `create`, and reopen it with `open`.

    Pass it to ``Server(params, journal=journal)`` or ``Server.resume(journal)``. Close it after
    the round, or use it as a context manager. A forked process can neither use nor close it.
    While it is open, the file may be copied, but must not be opened as a database.

    Attributes
    ----------
    path : Path
        Absolute path of the file.
    params : RoundParams
    """

    def __init__(self, path: Path, params: RoundParams, lock: FileLock) -> None:
        self.path = path
        self.params = params
        self._lock = lock

    @classmethod
    def create(cls, path: str | os.PathLike[str], params: RoundParams) -> Journal:
        """Create a journal in a new file at `path` and open it.

        Raises
        ------
        ParameterError
            An argument is of the wrong type.
        JournalError
            The file exists already, or cannot be written.
        """
        where = _absolute(path, params)

        def fill(empty: sqlite3.Connection) -> None:
            _limit(empty, params)
            empty.execute(
                "INSERT INTO head VALUES (?, 0, ?)", (params.to_bytes(), first_link(params))
            )

        with errors_of(where):
            database.create(where, _SCHEMA, fill)
        return cls.open(where, params)

    @classmethod
    def open(cls, path: str | os.PathLike[str], params: RoundParams) -> Journal:
        """Open the journal of a round with these parameters, and validate all its entries.

        Raises
        ------
        ParameterError
            An argument is of the wrong type.
        JournalError
            The file is missing, is open already in any process, belongs to other parameters, or
            was truncated or altered.
        """
        where = _absolute(path, params)
        with errors_of(where):
            if not where.is_file():
                raise JournalError("there is no such file; make one with Journal.create")
            journal = cls(where, params, FileLock(where))
        try:
            with errors_of(where), journal._lock.use() as connection:
                _limit(connection, params)
                database.claim(connection, where, _SCHEMA)
            for _ in journal.entries():
                pass
        except BaseException:
            journal.close()
            raise
        return journal

    def entries(self) -> Iterator[Entry]:
        """Yield all entries from the first on, including those appended meanwhile.

        Raises
        ------
        JournalError
            The file was truncated or altered, or cannot be read. Or the journal is closed, its
            file was deleted, moved or replaced, or this process is a fork. Do not rely on the
            entries that were yielded before.
        """
        with errors_of(self.path):
            chain, expected, least = first_link(self.params), 0, -(1 << 63)
            with self._lock.use() as connection:
                _head(connection, self.params)
            while True:
                # no statement stays open between two rows: it would block a writer
                with self._lock.use() as connection:
                    rows = connection.execute(_NEXT, (least,)).fetchall()
                    end = None if rows else _head(connection, self.params)
                if end is not None:
                    break
                number, client, data, stored = rows[0]
                entry = _entry(client, data)
                chain = link(chain, entry) if entry else b""
                if entry is None or number != expected or chain != stored:
                    raise spoilt(f"entry {expected} was altered or is missing")
                least = expected = expected + 1
                yield entry
            if (expected, chain) != end:
                raise spoilt(f"it was cut short or altered after entry {expected}")

    def append(self, number: int, entry: Entry) -> None:
        """Append an entry; it is on the disk when the call returns. See `extend` for errors."""
        self.extend(number, [entry])

    def extend(self, number: int, entries: Sequence[Entry]) -> None:
        """Append entries in one write; they are on the disk when the call returns.

        Parameters
        ----------
        number : int
            Number of entries before these, as the server counted them.
        entries : sequence of Entry

        Raises
        ------
        JournalError
            The journal does not have `number` entries, its file was deleted or moved, it is
            closed, or this process is a fork; nothing was written. Or the disk is full or
            failing: the journal is then closed, and `open` shows whether all or none are in it.
        """
        with errors_of(self.path), self._lock.use() as connection:
            count, chain = _head(connection, self.params)
            if count != number:
                raise JournalError(
                    f"it has {count} entries, but the server knows {number}; use "
                    "Server.resume to continue a round",
                )
            with database.transaction(connection, self.close):
                for place, entry in enumerate(entries, start=number):
                    chain = link(chain, entry)
                    row = (place, *_columns(entry), chain)
                    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", row)
                head = (number + len(entries), chain)
                connection.execute("UPDATE head SET entries = ?, chain = ?", head)

    def close(self) -> None:
        """Release the file when no thread is writing; without this call nothing is lost."""
        self._lock.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r})"


def _limit(connection: sqlite3.Connection, params: RoundParams) -> None:
    """Limit the size of a row to that of the largest message of the round."""
    kinds = (ShareKeys, MaskedInput, UnmaskShares)
    room = _ROOM + max(max_bytes(kind, params) for kind in kinds)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(room, (1 << 31) - 1))
    most = connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
    if most < room:
        raise JournalError(
            f"a message can have {room} bytes, but SQLite stores {most} at most; split the "
            "vector over several rounds"
        )


def _head(connection: sqlite3.Connection, params: RoundParams) -> tuple[int, bytes]:
    """Return the number of entries and the hash of the last entry."""
    rows = connection.execute("SELECT params, entries, chain FROM head LIMIT 2").fetchall()
    if len(rows) != 1 or not isinstance(rows[0][0], bytes):
        raise spoilt("it was altered")
    stored, count, chain = rows[0]
    if len(stored) == 32:  # version 1 stored their digest
        raise JournalError(
            "it is of version 1 of the protocol; finish it with secagg 0.4 or begin a new round"
        )
    _, why = compare(params.to_bytes(), stored, "in the journal")
    if why:
        raise JournalError(f"it is of other parameters, {why}; open it with its own")
    return count, chain


def _columns(entry: Entry) -> tuple[bytes | None, bytes]:
    """Return client and data of an entry, as a row has them."""
    client_id, data = entry
    return None if client_id is None else struct.pack("<Q", client_id), data


def _entry(client: object, data: object) -> Entry | None:
    """Return the entry of a row, or None if the row is invalid."""
    if not isinstance(data, bytes):
        return None
    if client is None:
        return None, data
    if not isinstance(client, bytes) or len(client) != 8:
        return None
    return int.from_bytes(client, "little"), data


def _absolute(path: str | os.PathLike[str], params: RoundParams) -> Path:
    check_kind("the journal's path", path, (str, os.PathLike), "a str or a path")
    check_kind("params", params, RoundParams, "a secagg.RoundParams")
    return Path(path).absolute()
