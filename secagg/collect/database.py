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


class Transaction(ABC):
    """Transaction in a database; a method that raises ends the transaction.

    Attributes
    ----------
    growing : str
        Clause of tables whose rows are inserted, read, and dropped with the table.
    """

    growing = ""

    def query(self, kind: type[T], statement: str, *values: Value) -> list[T]:
        """Return the rows of a statement, each as a named tuple of a class.

        DatabaseError is raised for a row with values of other types.
        """
        try:
            return [msgspec.convert(row, kind) for row in self._fetch(statement, values)]
        except msgspec.ValidationError as error:
            raise DatabaseError(
                f"a row of {kind.__name__} was altered: {error}; restore the database"
            ) from None

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
