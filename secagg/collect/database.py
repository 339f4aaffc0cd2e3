"""Databases of collections: one set of statements for PostgreSQL and SQLite.

A statement marks values by ``?`` and uses types and clauses that both databases have. A driver
adds what differs: locks, clocks and the insertion of many rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from secagg.errors import DatabaseError

T = TypeVar("T")
Value = int | float | str | bytes | None
Row = Sequence[Value]
Clock = Callable[[], float]


class AlteredError(DatabaseError):
    """A row was altered: the same step fails until the database is restored."""


class Transaction(ABC):
    """Transaction in a database; a method that raises ends the transaction.

    Attributes
    ----------
    growing : str
        Clause of tables whose rows are inserted, read, and dropped with the table.
    """

    growing = ""

    def query(
        self,
        kind: type[T],
        statement: str,
        *values: Value,
        altered: list[DatabaseError] | None = None,
    ) -> list[T]:
        """Return the rows of a statement, each as a named tuple of a class.

        AlteredError is raised for a row with values of another type or range. If there is a
        list `altered`, the error goes into the list, and the other rows are returned.
        """
        found = list[T]()
        for row in self._fetch(statement, values):
            try:
                found.append(msgspec.convert(row, kind))
            except msgspec.ValidationError as error:
                which = f" {row[0]}" if isinstance(row[0], int) else ""
                why = f"the row of {kind.__name__}{which} was altered: {error}"
                wrong = AlteredError(f"{why}; restore the database")
                if altered is None:
                    raise wrong from None
                altered.append(wrong)
        return found

    def one(self, kind: type[T], statement: str, *values: Value) -> T:
        """Return the only row of a statement; raise DatabaseError if there is none."""
        rows = self.query(kind, statement, *values)
        if len(rows) != 1:
            raise DatabaseError(
                f"there is no row of {kind.__name__} any more; if no other process has deleted "
                "the row, restore the database"
            )
        return rows[0]

    def number(self, statement: str, *values: Value) -> int:
        """Return the number that a statement selects."""
        return self.one(_Number, statement, *values).number

    @abstractmethod
    def run(self, statement: str, *values: Value) -> int:
        """Run a statement, and return the number of changed rows."""

    @abstractmethod
    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert rows with new keys."""

    @abstractmethod
    def insert_new(
        self, table: str, columns: Sequence[str], rows: Sequence[Row], key: str
    ) -> set[int]:
        """Insert rows except rows with keys that are there; return the `key` of each new row.

        Rows of concurrent transactions are awaited, so pass rows in the order of their keys.
        """

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Return whether there is a table with a name."""

    @abstractmethod
    def lock(self) -> None:
        """Wait until no other transaction has called this method, and until such calls end."""

    @abstractmethod
    def now(self) -> float:
        """Return seconds since 1970 by the clock of all processes."""

    @abstractmethod
    def _fetch(self, statement: str, values: Row) -> Sequence[Sequence[object]]: ...


class _Number(NamedTuple):
    number: int


class Database(Protocol):
    """Database for any number of processes; threads use the database at the same time."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Return a context with a transaction, which is durable when the block ends.

        An error of the block ends the transaction without effect. DatabaseError is raised if
        the database fails; after the last statement the end is unknown.
        """
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


def signed(number: int) -> int:
    """Return a number in [0, 2^64) as the number in [−2^63, 2^63) with the same bits."""
    return number - (number >> 63 << 64)


def unsigned(number: int) -> int:
    """Return the number that `signed` was given."""
    return number % (1 << 64)
