"""File of a batch's reports: a report is on the disk before the acknowledgement.

The file has the reports in the order of arrival, and the list of clients once the list is
fixed. The file has no sum. Masked vectors and sealed boxes hide every input from a reader.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from secagg.journal import database
from secagg.journal.chain import Chain, link
from secagg.journal.lock import errors_of, spoilt
from secagg.protocol.messages import pack_ids, unpack_ids

_CHAIN = Chain("reports", "report", ("report",))
_SCHEMA = (*_CHAIN.schema, "CREATE TABLE list (ids BLOB, chain BLOB)")
_FIRST = hashlib.sha256(b"secagg/3 reports").digest()


class Reports:
    """Reports of a batch in a file, open in a single process.

    Parameters
    ----------
    path : Path
        Absolute path. A missing file is made.

    Raises
    ------
    JournalError
        The file is open elsewhere, was altered or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = database.opened(path, _SCHEMA, lambda new: _CHAIN.begin(new, _FIRST))

    def extend(self, reports: Sequence[bytes]) -> None:
        """Append reports, which are on the disk when the call returns."""
        with errors_of(self.path), self._lock.use() as connection:
            end, rows = _CHAIN.end(connection), ((report,) for report in reports)
            with database.transaction(connection, self.close):
                _CHAIN.append(connection, end, rows)

    def fix(self, ids: tuple[int, ...]) -> None:
        """Store the list of clients before the first helper gets the list."""
        packed = pack_ids(ids)
        with errors_of(self.path), self._lock.use() as connection:
            _, chain = _CHAIN.end(connection)
            row = (packed, link(chain, [packed]))
            with database.transaction(connection, self.close):
                connection.execute("INSERT INTO list VALUES (?, ?)", row)

    def stored(self) -> Iterator[bytes]:
        """Yield all reports, in the order of arrival.

        JournalError is raised if a report was altered or is missing. Do not rely on the reports
        that were yielded before.
        """
        with errors_of(self.path):
            for (report,) in _CHAIN.rows(self._lock.use, _FIRST):
                yield report

    @property
    def fixed(self) -> tuple[int, ...] | None:
        """The fixed list of clients, or None."""
        with errors_of(self.path), self._lock.use() as connection:
            rows = connection.execute("SELECT ids, chain FROM list LIMIT 2").fetchall()
            if not rows:
                return None
            packed, stored = rows[0]
            _, chain = _CHAIN.end(connection)
            ids = unpack_ids(packed) if isinstance(packed, bytes) else None
            if ids is None or len(rows) > 1 or stored != link(chain, [packed]):
                raise spoilt("its list was altered")
            return ids

    def close(self) -> None:
        """Release the file."""
        self._lock.close()
