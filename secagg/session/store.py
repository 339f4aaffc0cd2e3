"""Folder of a session: all that a server needs to go on after a kill.

A SQLite file has a row for each round: a hash of parameters and message, the attempt under way,
and the outcome. Verdicts on clients have rows of their own. A `Journal` of the attempt stands
beside the file, until the outcome is on the disk. A reader of the folder learns all sums, and
the clients in each sum. The folder has no secret that the journal lacks, so no single vector.
Mode 600.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from secagg._check import check_kind
from secagg._files import private_folder
from secagg.errors import JournalError, ParameterError, Verdict
from secagg.journal import Journal, database
from secagg.journal.lock import errors_of, spoilt
from secagg.privacy import Loss
from secagg.privacy.record import from_bytes, to_bytes
from secagg.protocol import CohortLedger, RoundParams
from secagg.protocol.messages import pack_ids, unpack_ids
from secagg.session.outcomes import read_verdict, write_verdict
from secagg.session.reports import Reports

_SCHEMA = (
    "CREATE TABLE head (name TEXT, run BLOB, ledger BLOB, answers BLOB)",
    "CREATE TABLE rounds (number INTEGER PRIMARY KEY, program BLOB, attempt INTEGER, "
    "params BLOB, cohort BLOB, outcome BLOB)",
    # a row each, because a round's verdicts can be more bytes than SQLite stores in a value
    "CREATE TABLE verdicts (number INTEGER, attempt INTEGER, client BLOB, kind TEXT, "
    "content BLOB, PRIMARY KEY (number, attempt, client, kind)) WITHOUT ROWID",
    "CREATE TABLE spent (number INTEGER, attempt INTEGER, loss BLOB, "
    "PRIMARY KEY (number, attempt)) WITHOUT ROWID",
)


class Begun(NamedTuple):
    """Attempt that an earlier process began.

    Attributes
    ----------
    attempt : int
        Number of the attempt.
    params : bytes
        Parameters with the session of the attempt; empty if the attempt has failed.
    cohort : tuple of int
        Clients of the attempt, ascending.
    """

    attempt: int
    params: bytes
    cohort: tuple[int, ...]

    @property
    def ended(self) -> int:
        """Number of the round's attempts that have ended."""
        return self.attempt + (not self.params)


def program(params: bytes, message: bytes, min_clients: int | None = None) -> bytes:
    """Return the hash that recognises a round when the program runs again."""
    # without min_clients, the hash is as in folders of earlier versions
    least = b"" if min_clients is None else b"min_clients %d" % min_clients
    return hashlib.sha256(params + hashlib.sha256(message).digest() + least).digest()


class Store:
    """Folder of a session, open in a single process.

    Attributes
    ----------
    path : Path
        Absolute path of the folder.
    run : bytes
        8 random bytes, drawn when the folder was made.
    """

    def __init__(self, folder: str | os.PathLike[str], name: str) -> None:
        """Open the folder, or make the folder.

        Raises
        ------
        ParameterError
            The folder is of another session, or is no path.
        JournalError
            The folder is open in another process, was altered, or cannot be written.
        """
        check_kind("folder", folder, (str, os.PathLike), "a str or a path")
        self.path = Path(folder).absolute()
        self._file = self.path / "session"
        with errors_of(self._file):
            private_folder(self.path)
        self._lock = database.opened(self._file, _SCHEMA, lambda new: _fill(new, name))
        try:
            with errors_of(self._file), self._lock.use() as connection:
                rows = connection.execute("SELECT name, run FROM head LIMIT 2").fetchall()
            if len(rows) != 1 or not isinstance(rows[0][1], bytes):
                raise JournalError(f"journal {self._file}: {spoilt('it was altered')}")
            if rows[0][0] != name:
                raise ParameterError(
                    f"the folder {self.path} is of session {rows[0][0]!r}, not {name!r}; take "
                    "another folder, or that name"
                )
            self.run: bytes = rows[0][1]
        except BaseException:
            self.close()
            raise

    def begin(self, number: int, wanted: bytes) -> tuple[bytes | None, Begun | None]:
        """Return the outcome of a round, if there is one, and the last attempt, if any.

        Parameters
        ----------
        number : int
        wanted : bytes
            `program` of the round.

        Raises
        ------
        ParameterError
            The round had another program.
        """
        with errors_of(self._file), self._lock.use() as connection:
            rows = connection.execute(
                "SELECT program, attempt, params, cohort, outcome FROM rounds WHERE number = ?",
                (number,),
            ).fetchall()
            if not rows:
                with database.transaction(connection, self.close):
                    # of a round that was cancelled: its files go, and its name is used once
                    connection.execute("UPDATE rounds SET params = x'' WHERE outcome IS NULL")
                    connection.execute(
                        "INSERT INTO rounds VALUES (?, ?, -1, x'', x'', NULL)",
                        (number, wanted),
                    )
                self.delete_files()
                return None, None
            had, attempt, params, cohort, outcome = rows[0]
            if had != wanted:
                raise ParameterError(
                    f"round {number} of the folder {self.path} had other parameters, another "
                    "message or another min_clients; run the same program of the same release "
                    "of secagg, or take another folder"
                )
            ids = unpack_ids(cohort)
            if ids is None:
                raise spoilt(f"round {number} was altered")
            begun = Begun(attempt, params, ids)
            return outcome, begun if attempt >= 0 else None

    @property
    def under_way(self) -> bool:
        """True if the last process was killed during an attempt."""
        attempts = "SELECT count(*) FROM rounds WHERE outcome IS NULL AND params != x''"
        return bool(self._value(attempts))

    def is_last(self, number: int) -> bool:
        """Return whether no later round has begun."""
        return not self._value("SELECT count(*) FROM rounds WHERE number > ?", number)

    @property
    def answers(self) -> bytes:
        """Bytes of the session's `Answers`, as they were last stored; none in a new folder."""
        answers: bytes = self._value("SELECT answers FROM head")
        return answers

    def keep_attempt(self, number: int, begun: Begun, answers: bytes) -> None:
        """Store an attempt before the tasks go out, and forget earlier outcomes."""
        row = (begun.attempt, begun.params, pack_ids(begun.cohort), number)
        # the outcome of an earlier attempt goes: it would be returned after a restart
        statement = (
            "UPDATE rounds SET attempt = ?, params = ?, cohort = ?, outcome = NULL "
            "WHERE number = ?"
        )
        self._write((statement, row), ("UPDATE head SET answers = ?", (answers,)))

    def keep_outcome(self, number: int, outcome: bytes, answers: bytes) -> None:
        """Store the outcome of a round, and the last answers in it.

        A failed round may be tried again, with the stored reports. So the files of the round
        stay until the next round begins, while `delete_files` follows a result.
        """
        statement = "UPDATE rounds SET params = x'', cohort = x'', outcome = ? WHERE number = ?"
        row = (outcome, number)
        self._write((statement, row), ("UPDATE head SET answers = ?", (answers,)))

    def keep_verdicts(
        self, number: int, attempt: int, verdicts: Iterable[Verdict]
    ) -> tuple[Verdict, ...]:
        """Store the verdicts of an attempt that has ended, and return all that there are.

        A resumed server lacks verdicts that the killed server had.
        """
        rows = [
            (number, attempt, pack_ids([one.client]), one.kind, write_verdict(one))
            for one in verdicts
        ]
        statement = "INSERT OR IGNORE INTO verdicts VALUES (?, ?, ?, ?, ?)"
        if rows:
            self._write(*((statement, row) for row in rows))
        return self.verdicts(number, attempt, attempt + 1)

    def verdicts(self, number: int, first: int, end: int) -> tuple[Verdict, ...]:
        """Return the verdicts of some attempts at a round, from `first` to before `end`.

        They are in the order of attempts, clients and kinds.
        """
        with errors_of(self._file), self._lock.use() as connection:
            rows = connection.execute(
                "SELECT attempt, content FROM verdicts WHERE number = ? AND attempt >= ? "
                "AND attempt < ?",
                (number, first, end),
            ).fetchall()
            found = [(attempt, read_verdict(content)) for attempt, content in rows]
        found.sort(key=lambda pair: (pair[0], pair[1].client, pair[1].kind))
        return tuple(verdict for _, verdict in found)

    def convicted(self) -> set[int]:
        """Return the clients that the verdicts of all rounds name."""
        with errors_of(self._file), self._lock.use() as connection:
            rows = connection.execute("SELECT DISTINCT client FROM verdicts").fetchall()
            found = [unpack_ids(client) for (client,) in rows]
            if None in found:
                raise spoilt("a verdict was altered")
            return {u for ids in found for u in ids or ()}

    def keep_spent(self, number: int, attempt: int, loss: Loss) -> bool:
        """Store the loss of an attempt; return False if the folder had the attempt."""
        with errors_of(self._file), self._lock.use() as connection:
            with database.transaction(connection, self.close):
                row = (number, attempt, to_bytes(loss))
                done = connection.execute("INSERT OR IGNORE INTO spent VALUES (?, ?, ?)", row)
            return done.rowcount == 1

    def spent(self) -> list[Loss]:
        """Return the loss of each attempt that has spent privacy."""
        with errors_of(self._file), self._lock.use() as connection:
            rows = connection.execute("SELECT loss FROM spent").fetchall()
            return [from_bytes(loss) for (loss,) in rows]

    def load_ledger(self, ledger: CohortLedger) -> None:
        """Add the stored cohorts to a ledger."""
        if data := self._value("SELECT ledger FROM head"):
            ledger.include(CohortLedger.from_bytes(data))

    def keep_ledger(self, ledger: CohortLedger) -> None:
        """Store a ledger before the answers of a close go out."""
        self._write(("UPDATE head SET ledger = ?", (ledger.to_bytes(),)))

    def journal(self, number: int, attempt: int, params: RoundParams) -> Journal:
        """Open or create the journal of an attempt; delete the files of all other attempts."""
        path = self.path / f"round-{number}-{attempt}.journal"
        self.delete_files(path.name)
        return (Journal.open if path.exists() else Journal.create)(path, params)

    def reports(self, number: int) -> Reports:
        """Open the file of a batch's reports, or create the file."""
        return Reports(self.path / f"round-{number}.reports")

    def close(self) -> None:
        """Release the folder."""
        self._lock.close()

    def delete_files(self, kept: str = "") -> None:
        """Delete the files of all rounds, except files with a name that begins with `kept`."""
        for path in self.path.glob("round-*"):
            if not kept or not path.name.startswith(kept):
                path.unlink(missing_ok=True)

    def _value(self, query: str, *values: object) -> Any:
        """Return the only column of the only row of a query."""
        with errors_of(self._file), self._lock.use() as connection:
            return connection.execute(query, values).fetchone()[0]

    def _write(self, *statements: tuple[str, tuple[object, ...]]) -> None:
        with (
            errors_of(self._file),
            self._lock.use() as connection,
            database.transaction(connection, self.close),
        ):
            for statement, values in statements:
                connection.execute(statement, values)


def _fill(new: sqlite3.Connection, name: str) -> None:
    new.execute("INSERT INTO head VALUES (?, ?, x'', x'')", (name, os.urandom(8)))
