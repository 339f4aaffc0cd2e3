"""File of a batch's reports: each is on the disk before it is acknowledged.

It has the reports in the order in which they came, and the list of clients once that is fixed.
It has no sum; masked vectors and sealed boxes hide every input from its reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from secagg.journal import database
from secagg.journal.lock import FileLock, errors_of, spoilt
from secagg.protocol.messages import pack_ids, unpack_ids

__all__ = ["Reports"]

_SCHEMA = (
    "CREATE TABLE reports (number INTEGER PRIMARY KEY, report BLOB)",
    "CREATE TABLE list (ids BLOB)",
)
_NEXT = "SELECT number, report FROM reports WHERE number > ? ORDER BY number LIMIT 1"


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
                database.create(path, _SCHEMA, lambda _: None)
            self._lock = FileLock(path)
        try:
            with errors_of(path), self._lock.use() as connection:
                database.claim(connection, path, _SCHEMA)
        except BaseException:
            self.close()
            raise

    def extend(self, reports: Sequence[bytes]) -> None:
        """Append reports; they are on the disk when the call returns."""
        self._write("INSERT INTO reports (report) VALUES (?)", reports)

    def fix(self, ids: tuple[int, ...]) -> None:
        """Store the list of clients before the first helper gets it."""
        self._write("INSERT INTO list VALUES (?)", [pack_ids(ids)])

    def stored(self) -> Iterator[bytes]:
        """Yield all reports, in the order in which they came."""
        least = 0
        while True:
            # no statement stays open between two rows: it would block a writer
            with errors_of(self.path), self._lock.use() as connection:
                rows = connection.execute(_NEXT, (least,)).fetchall()
            if not rows:
                return
            least, report = rows[0]
            yield bytes(report)

    @property
    def fixed(self) -> tuple[int, ...] | None:
        """The fixed list of clients, or None."""
        with errors_of(self.path), self._lock.use() as connection:
            rows = connection.execute("SELECT ids FROM list LIMIT 2").fetchall()
            if not rows:
                return None
            ids = unpack_ids(rows[0][0]) if len(rows) == 1 else None
            if ids is None:
                raise spoilt("its list was altered")
            return ids

    def close(self) -> None:
        """Release the file."""
        if hasattr(self, "_lock"):
            self._lock.close()

    def _write(self, statement: str, values: Sequence[bytes]) -> None:
        with (
            errors_of(self.path),
            self._lock.use() as connection,
            database.transaction(connection, self.close),
        ):
            connection.executemany(statement, [(value,) for value in values])
