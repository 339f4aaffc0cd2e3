"""Log of a server in a file: acknowledged messages survive kill −9 and a power cut.

A journal is one SQLite file for one round, in WAL mode with exclusive locking. Each entry is
committed with ``synchronous=FULL`` and moved from the write-ahead log into the file before the
call returns. So losing the ``-wal`` file later loses no acknowledged entry.

The entries are chained rows (`secagg.journal.chain`).

Never restore an older copy: a server resumed from the copy would request shares again, perhaps
for other survivors. Honest clients answer once. So at most the round is lost if any two sets of
t holders of a secret have an honest holder in common. With c colluders this takes 2t > n + c on
the complete graph, where the parameters ensure 2t > n, and 2t > k + 1 + c on any other graph.
Otherwise both secrets of a client can leak, and so can the client's input.

The file contains masked inputs, revealed shares and the seed of the graph, but no input. The
last messages determine the sum, so give the file only to parties that may know the sum. The
file has mode 600.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from secagg._check import check_kind
from secagg.errors import JournalError
from secagg.journal import database
from secagg.journal.chain import Chain
from secagg.journal.database import JournalFile
from secagg.journal.lock import FileLock, errors_of, spoilt
from secagg.protocol import RoundParams
from secagg.protocol.messages import MaskedInput, ShareKeys, UnmaskShares, max_bytes
from secagg.protocol.params_bytes import compare
from secagg.server import Entry

_CHAIN = Chain("entries", "entry", ("client", "data"), head="params BLOB, ")
_ROOM = 4096
"""Bytes of a row besides the message, at most."""


class Journal(JournalFile):
    """Journal of a round in a file, made with `create` and reopened with `open`.

    Pass the journal to ``Server(params, journal=journal)`` or ``Server.resume(journal)``. Close
    the journal after the round, or use the journal as a context manager. A forked process can
    neither use nor close the journal. While the journal is open, the file may be copied, but
    must not be opened as a database.

    Attributes
    ----------
    path : Path
        Absolute path of the file.
    params : RoundParams
    """

    def __init__(self, path: Path, params: RoundParams, lock: FileLock) -> None:
        super().__init__(path, lock)
        self.params = params

    @classmethod
    def create(cls, path: str | os.PathLike[str], params: RoundParams) -> Journal:
        """Create a journal in a new file at `path` and open the journal.

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
            _CHAIN.begin(empty, _first(params), [params.to_bytes()])

        with errors_of(where):
            database.create(where, _CHAIN.schema, fill)
        return cls.open(where, params)

    @classmethod
    def open(cls, path: str | os.PathLike[str], params: RoundParams) -> Journal:
        """Open the journal of a round with these parameters, and validate all entries.

        Raises
        ------
        ParameterError
            An argument is of the wrong type.
        JournalError
            The file is missing, is open already in any process, belongs to other parameters, or
            was truncated or altered.
        """
        where = _absolute(path, params)
        with database.locked(where, "Journal") as (lock, connection):
            _limit(connection, params)
            database.claim(connection, where, _CHAIN.schema)
            _check_params(connection, params)
            for _ in _entries(lock, params):
                pass
        return cls(where, params, lock)

    def entries(self) -> Iterator[Entry]:
        """Yield all entries from the first on, including entries appended meanwhile.

        Raises
        ------
        JournalError
            The file was truncated or altered, or cannot be read. Or the journal is closed, the
            file was deleted, moved or replaced, or this process is a fork. Do not rely on the
            entries that were yielded before.
        """
        with errors_of(self.path):
            yield from _entries(self._lock, self.params)

    def append(self, number: int, entry: Entry) -> None:
        """Append an entry, durable when the call returns. See `extend` for errors."""
        self.extend(number, [entry])

    def extend(self, number: int, entries: Sequence[Entry]) -> None:
        """Append entries in one write, all on the disk when the call returns.

        Parameters
        ----------
        number : int
            Number of entries before these, as the server counted them.
        entries : sequence of Entry

        Raises
        ------
        JournalError
            The journal does not have `number` entries, the file was deleted or moved, the
            journal is closed, or this process is a fork; nothing was written. Or the disk is
            full or failing: the journal is then closed, and `open` shows whether all
            entries are in the file, or none.
        """
        with errors_of(self.path), self._lock.use() as connection:
            end = _CHAIN.end(connection)
            if end[0] != number:
                raise JournalError(
                    f"it has {end[0]} entries, but the server knows {number}; use "
                    "Server.resume to continue a round"
                )
            with database.transaction(connection, self.close):
                _CHAIN.append(connection, end, map(_row, entries))


def _limit(connection: sqlite3.Connection, params: RoundParams) -> None:
    """Limit the size of a row to the largest message of the round."""
    kinds = (ShareKeys, MaskedInput, UnmaskShares)
    room = _ROOM + max(max_bytes(kind, params) for kind in kinds)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(room, (1 << 31) - 1))
    most = connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
    if most < room:
        raise JournalError(
            f"a message can have {room} bytes, but SQLite stores {most} at most; split the "
            "vector over several rounds"
        )


def _check_params(connection: sqlite3.Connection, params: RoundParams) -> None:
    """Raise unless the file is of a round with these parameters."""
    rows = connection.execute("SELECT params FROM head LIMIT 2").fetchall()
    if len(rows) != 1 or not isinstance(rows[0][0], bytes):
        raise spoilt("it was altered")
    stored = rows[0][0]
    if len(stored) == 32:  # version 1 stored the digest of the parameters
        raise JournalError(
            "it is of version 1 of the protocol; finish it with secagg 0.4 or begin a new round"
        )
    _, why = compare(params.to_bytes(), stored, "in the journal")
    if why:
        raise JournalError(f"it is of other parameters, {why}; open it with its own")


def _first(params: RoundParams) -> bytes:
    """Return the hash that the first entry of a round is chained to."""
    return hashlib.sha256(b"secagg/3 journal" + params.digest).digest()


def _entries(lock: FileLock, params: RoundParams) -> Iterator[Entry]:
    for client, data in _CHAIN.rows(lock.use, _first(params)):
        if len(client) not in (0, 8):
            raise spoilt("the client of an entry was altered")
        yield (int.from_bytes(client, "little") if client else None), data


def _row(entry: Entry) -> tuple[bytes, bytes]:
    """Return the row of an entry; the server's own entries have no client."""
    client_id, data = entry
    return b"" if client_id is None else struct.pack("<Q", client_id), data


def _absolute(path: str | os.PathLike[str], params: RoundParams) -> Path:
    check_kind("params", params, RoundParams, "a secagg.RoundParams")
    return database.absolute(path)
