"""File of a batch's reports: each is on the disk before it is acknowledged.

It has the reports in the order in which they came, and the list of clients once that is fixed.
It has no sum; masked vectors and sealed boxes hide every input from its reader. Each row has a
SHA-256 over its content and the hash of the row before it, as in a journal.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from secagg.journal import database
from secagg.journal.lock import FileLock, errors_of, spoilt
from secagg.protocol.messages import pack_ids, unpack_ids

__all__ = ["Reports"]

_SCHEMA = (
    "CREATE TABLE head (reports INTEGER, chain BLOB)",
    "CREATE TABLE reports (number INTEGER PRIMARY KEY, report BLOB, chain BLOB)",
    "CREATE TABLE list (ids BLOB, chain BLOB)",
)
_NEXT = "SELECT report, chain FROM reports WHERE number >= ? ORDER BY number LIMIT 1"


class Reports:
    """Reports of one batch in a file, open in one process.

    Parameters
    ----------
    path : Path
        Absolute path. The file is made if it is missing.

    Raises
    ------
    JournalError
        The file is open elsewhere, was altered or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with errors_of(path):
            if not path.exists():
                database.create(path, _SCHEMA, _fill)
            self._lock = FileLock(path)
        try:
            with errors_of(path), self._lock.use() as connection:
                database.claim(connection, path, _SCHEMA)
        except BaseException:
            self.close()
            raise

    def extend(self, reports: Sequence[bytes]) -> None:
        """Append reports; they are on the disk when the call returns."""
        with errors_of(self.path), self._lock.use() as connection:
            count, chain = database.read_head(connection, "reports")
            with database.transaction(connection, self.close):
                for number, report in enumerate(reports, start=count):
                    chain = _link(chain, report)
                    row = (number, report, chain)
                    connection.execute("INSERT INTO reports VALUES (?, ?, ?)", row)
                head = (count + len(reports), chain)
                connection.execute("UPDATE head SET reports = ?, chain = ?", head)

    def fix(self, ids: tuple[int, ...]) -> None:
        """Store the list of clients before the first helper gets it."""
        packed = pack_ids(ids)
        with errors_of(self.path), self._lock.use() as connection:
            _, chain = database.read_head(connection, "reports")
            row = (packed, _link(chain, packed))
            with database.transaction(connection, self.close):
                connection.execute("INSERT INTO list VALUES (?, ?)", row)

    def stored(self) -> Iterator[bytes]:
        """Yield all reports, in the order in which they came.

        JournalError is raised if one was altered or is missing. Do not rely on the reports that
        were yielded before.
        """
        expected, chain = 0, b""
        while True:
            # no statement stays open between two rows: it would block a writer
            with errors_of(self.path), self._lock.use() as connection:
                rows = connection.execute(_NEXT, (expected,)).fetchall()
                if not rows:
                    if (expected, chain) != database.read_head(connection, "reports"):
                        raise spoilt(f"it was cut short or altered after report {expected}")
                    return
                report, stored = rows[0]
                chain = _link(chain, report) if isinstance(report, bytes) else b""
                if stored != chain:
                    raise spoilt(f"report {expected} was altered or is missing")
            expected += 1
            yield report

    @property
    def fixed(self) -> tuple[int, ...] | None:
        """The fixed list of clients, or None."""
        with errors_of(self.path), self._lock.use() as connection:
            rows = connection.execute("SELECT ids, chain FROM list LIMIT 2").fetchall()
            if not rows:
                return None
            packed, stored = rows[0]
            _, chain = database.read_head(connection, "reports")
            ids = unpack_ids(packed) if isinstance(packed, bytes) else None
            if ids is None or len(rows) > 1 or stored != _link(chain, packed):
                raise spoilt("its list was altered")
            return ids

    def close(self) -> None:
        """Release the file."""
        if hasattr(self, "_lock"):
            self._lock.close()


def _fill(new: sqlite3.Connection) -> None:
    new.execute("INSERT INTO head VALUES (0, x'')")


def _link(chain: bytes, content: bytes) -> bytes:
    """Return the hash of a row, from that of the row before it."""
    return hashlib.sha256(chain + content).digest()
