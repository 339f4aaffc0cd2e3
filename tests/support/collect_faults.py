"""Interposed driver: a database that calls a hook before every statement, or dies there."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from secagg.collect.database import Database, Row, Transaction, Value

BEGIN, COMMIT, COMMITTED = "BEGIN", "COMMIT", "COMMITTED"


class Killed(BaseException):
    """The process ends here; no handler of errors goes on."""


class Death:
    """Hook that ends the process at a statement, counted from 0; a dead process stays dead."""

    def __init__(self, at: int | None = None) -> None:
        self.at, self.statements = at, 0

    @property
    def dead(self) -> bool:
        return self.at is not None and self.statements > self.at

    def __call__(self, _: str) -> None:
        self.statements += 1
        if self.dead:
            raise Killed


class Kill:
    """Hook that kills this process, in earnest, before a statement, counted from 0."""

    def __init__(self, at: int | None) -> None:
        self.at, self.statements = at, 0

    def __call__(self, _: str) -> None:
        if self.statements == self.at:
            kill()
        self.statements += 1


def kill() -> None:
    """Kill this process, as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


class Interposed:
    """Database whose every statement, with the ends of transactions, is told to a hook."""

    def __init__(self, database: Database, before: Callable[[str], None]) -> None:
        self.database, self.before = database, before

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        self.before(BEGIN)
        with self.database.transaction() as tx:
            yield _Interposed(tx, self.before)
            self.before(COMMIT)
        self.before(COMMITTED)

    def close(self) -> None:
        self.database.close()


class _Interposed(Transaction):
    def __init__(self, tx: Transaction, before: Callable[[str], None]) -> None:
        self._tx, self._before = tx, before

    def run(self, statement: str, *values: Value) -> int:
        self._before(statement)
        return self._tx.run(statement, *values)

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        self._before(f"INSERT INTO {table}")
        self._tx.insert(table, columns, rows)

    def insert_new(
        self, table: str, columns: Sequence[str], rows: Sequence[Row], key: str
    ) -> set[int]:
        self._before(f"INSERT INTO {table}")
        return self._tx.insert_new(table, columns, rows, key)

    def has_table(self, name: str) -> bool:
        self._before("HAS TABLE")
        return self._tx.has_table(name)

    def lock(self) -> None:
        self._before("LOCK")
        self._tx.lock()

    def now(self) -> float:
        return self._tx.now()

    def _fetch(self, statement: str, values: Row) -> Sequence[Sequence[object]]:
        self._before(statement)
        return self._tx._fetch(statement, values)
