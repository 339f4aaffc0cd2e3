"""Chained rows of a journal's file: altered, swapped and missing rows are detected.

Each row has a SHA-256 over the row's content and the hash of the row before. The table ``head``
has the number of rows and the last hash. There is no key: a consistent rewrite of the whole
file, or an older copy, is not detected.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from secagg.journal.lock import spoilt

Use = Callable[[], AbstractContextManager[sqlite3.Connection]]
"""Yields the connection, as `FileLock.use` does."""
End = tuple[int, bytes]
"""Number of rows and the hash of the last row."""


def link(chain: bytes, row: Sequence[bytes]) -> bytes:
    """Return the hash of a row, 32 bytes, given the hash `chain` of the row before."""
    digest = hashlib.sha256(chain)
    for part in row:  # the lengths, or bytes could move from a column to the next
        digest.update(len(part).to_bytes(8, "little"))
    for part in row:
        digest.update(part)
    return digest.digest()


@dataclass(frozen=True)
class Chain:
    """Table of chained rows.

    Attributes
    ----------
    table : str
        Name of the table, and of the column of ``head`` with the number of rows.
    row : str
        Word for a row in errors.
    columns : tuple of str
        Columns of the table, all of bytes.
    head : str
        Further columns of ``head``, in SQL, with a comma after each.
    """

    table: str
    row: str
    columns: tuple[str, ...]
    head: str = ""

    @property
    def schema(self) -> tuple[str, str]:
        """Statements that create the two tables."""
        columns = "".join(f"{name} BLOB, " for name in self.columns)
        return (
            f"CREATE TABLE head ({self.head}{self.table} INTEGER, chain BLOB)",
            f"CREATE TABLE {self.table} (number INTEGER PRIMARY KEY, {columns}chain BLOB)",
        )

    def begin(
        self, connection: sqlite3.Connection, first: bytes, head: Sequence[object] = ()
    ) -> None:
        """Fill ``head`` of a new file; row 0 is chained to the hash `first`."""
        marks = "?, " * len(head)
        connection.execute(f"INSERT INTO head VALUES ({marks}0, ?)", (*head, first))  # noqa: S608

    def end(self, connection: sqlite3.Connection) -> End:
        """Return the number of rows and the hash of the last row."""
        query = f"SELECT {self.table}, chain FROM head LIMIT 2"  # noqa: S608
        rows = connection.execute(query).fetchall()
        if len(rows) != 1:
            raise spoilt("it was altered")
        number, chain = rows[0]
        return number, chain

    def append(
        self, connection: sqlite3.Connection, end: End, rows: Iterable[Sequence[bytes]]
    ) -> None:
        """Append rows after `end`, in a transaction of the caller.

        sqlite3.IntegrityError is raised if rows came after `end` meanwhile.
        """
        number, chain = end
        marks = ", ".join("?" * (len(self.columns) + 2))
        for row in rows:
            chain = link(chain, row)
            values = (number, *row, chain)
            connection.execute(f"INSERT INTO {self.table} VALUES ({marks})", values)  # noqa: S608
            number += 1
        update = f"UPDATE head SET {self.table} = ?, chain = ?"  # noqa: S608
        connection.execute(update, (number, chain))

    def rows(self, use: Use, first: bytes) -> Iterator[tuple[bytes, ...]]:
        """Yield all rows from the first on, including rows appended meanwhile.

        JournalError is raised if a row was altered or is missing. Do not rely on the rows that
        were yielded before.
        """
        names = ", ".join(self.columns)
        query = (
            f"SELECT number, {names}, chain FROM {self.table} WHERE number >= ? "  # noqa: S608
            "ORDER BY number LIMIT 1"
        )
        expected, chain, least = 0, first, -(1 << 63)
        while True:
            # no statement stays open between two rows: an open statement would block a writer
            with use() as connection:
                found = connection.execute(query, (least,)).fetchall()
                if not found:
                    if (expected, chain) != self.end(connection):
                        raise spoilt(f"it was cut short or altered after {self.row} {expected}")
                    return
            number, *row, stored = found[0]
            whole = number == expected and all(isinstance(part, bytes) for part in row)
            chain = link(chain, row) if whole else b""
            if not whole or chain != stored:
                # each release chains the rows of its journals in one way
                other = ", or another release of secagg wrote it" if not expected else ""
                raise spoilt(f"{self.row} {expected} was altered or is missing{other}")
            least = expected = expected + 1
            yield tuple(row)
