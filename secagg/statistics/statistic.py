"""Interface of statistics: fields of the steps, sums of a site, cells and tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from secagg._printable import in_short
from secagg.errors import ParameterError
from secagg.statistics.columns import Category, Column, Number
from secagg.statistics.layout import Field, Sums
from secagg.statistics.records import Records

_Kind = TypeVar("_Kind", Number, Category)
Where: TypeAlias = tuple[tuple[str, int, int], ...]
"""Part of all records: for some columns, the first point and the point after the last. The
point −1 is a missing value."""
Value: TypeAlias = str | int | float | None
"""Entry of a table; None if the entry is hidden or does not exist."""
Row: TypeAlias = tuple[Value, ...]
Sample: TypeAlias = tuple[frozenset[str], int]
"""Columns, and the number of the records with values in all of these."""
Past: TypeAlias = Sequence[Sums]
"""Sums of the steps before."""
Hidden: TypeAlias = Collection[tuple[int, ...]]
"""Places of the cells that stay hidden."""


@dataclass(frozen=True)
class Cell:
    """Number of records that a result would publish.

    Attributes
    ----------
    table : str
        Name of the statistic.
    place : tuple of int
        Place of the cell in the statistic.
    where : Where
        The records.
    count, sites : int
        Number of the records, and number of the sites that have such records.
    counts_only : bool
        True if the table has no sums over these records.
    few : bool
        True if the sums show the values of few of the records.
    closed : bool
        True if a column's unknown values, which count as missing, are few.
    most : tuple of (Where, int)
        Parts of the records, and the largest numbers that the table shows for these.
    """

    table: str
    place: tuple[int, ...]
    where: Where
    count: int
    sites: int
    counts_only: bool = False
    few: bool = False
    closed: bool = False
    most: tuple[tuple[Where, int], ...] = ()

    @property
    def missing(self) -> bool:
        """True for records that lack a value of a column, whose number is open."""
        return not self.closed and any(part[1:] == (-1, 0) for part in self.where)


@dataclass(frozen=True)
class Table:
    """Table of a result.

    Attributes
    ----------
    header : tuple of str
    rows : tuple of tuples
        A value of each column; None if the value is hidden or does not exist.
    note : str
        What a reader has to know beside the table.
    """

    header: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""


class NoTable(Exception):
    """A statistic has no result; the text says which columns, why, and the remedy."""


@dataclass(frozen=True)
class Frame:
    """Columns and least counts of a plan, for all statistics; see `Plan`."""

    columns: Mapping[str, Column]
    min_count: int
    min_sites: int
    records_per_parameter: int
    noised: bool = False

    def few(self, count: int, sites: int = 0) -> bool:
        """Return whether a number of records, or of sites, is above 0 and below the least."""
        return 0 < count < self.min_count or 0 < sites < self.min_sites

    def number(self, name: str) -> Number:
        """Return a column of numbers; raise `ParameterError` for any other name."""
        return self._column(name, Number)

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values of a category; raise `ParameterError` for any other name."""
        return self._column(name, Category).values

    def _column(self, name: str, kind: type[_Kind]) -> _Kind:
        column = self.columns.get(name) if isinstance(name, str) else None
        if not isinstance(column, kind):
            known = [k for k, v in self.columns.items() if isinstance(v, kind)]
            what = f"no {kind.__name__} of the plan"
            raise ParameterError(f"{in_short(name)} is {what}; take of {known}")
        return column

    def present(self, name: str) -> tuple[str, int, int]:
        """Return the part of the records with a value in a column."""
        column = self.columns[name]
        last = column.units + 1 if isinstance(column, Number) else len(column.values)
        return name, 0, last


class Statistic:
    """Statistic of a plan. All sums of a step are numbers ≥ 0 of single records, added up.

    Attributes
    ----------
    kind : str
        Name of the kind in a plan's file: the class's name in small letters.
    counts_only : bool
        True if the result has numbers of records only.
    """

    kind: ClassVar[str]
    counts_only: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        cls.kind = cls.__name__.lower()

    @property
    def name(self) -> str:
        """Name in results, unique in a plan."""
        raise NotImplementedError

    def check(self, frame: Frame) -> None:
        """Raise `ParameterError` unless the statistic fits the columns of a plan."""

    def words(self, frame: Frame) -> str:
        """Return what everybody learns, as a part of a sentence."""
        raise NotImplementedError

    def fields(self, frame: Frame, past: Past) -> list[Field]:
        """Return the fields of the next step; [] at the end."""
        raise NotImplementedError

    def sums(self, frame: Frame, records: Records, past: Past) -> dict[str, Any]:
        """Return a site's contribution to the next step, an array of integers by field."""
        raise NotImplementedError

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return the tables of the result by name, without the hidden cells.

        Raises
        ------
        NoTable
            The sums have no such result.
        """
        raise NotImplementedError

    def norms(self, frame: Frame) -> dict[str, tuple[float, int]]:
        """Return norm and largest element of a record's contribution to each noised field.

        Raises
        ------
        ParameterError
            The statistic has no noise.
        """
        raise ParameterError(
            f"{self.name} has no noise; plan counts, histograms, moments or quantiles, or a "
            "study without privacy"
        )

    def noised(self, frame: Frame, past: Past, error: Mapping[str, float]) -> dict[str, Table]:
        """Return the tables of noised sums.

        Parameters
        ----------
        frame : Frame
        past : sequence of sums
        error : mapping of field to float
            Standard deviation of the noise.
        """
        raise NotImplementedError

    def wheres(self, frame: Frame) -> list[Where]:
        """Return the parts of the records whose numbers are published."""
        return []

    def sample(self, past: Past) -> Sample | None:
        """Return columns and number of the records whose values are summed; None for counts."""
        return None

    def cells(self, frame: Frame, past: Past) -> list[Cell]:
        """Return the published numbers of records."""
        wheres = self.wheres(frame)
        if not wheres:
            return []
        sites = past[0]["sites"]
        # survival counts the records of a group by time
        counts = past[0]["n"].reshape((*sites.shape, -1)).sum(-1)
        flat = zip(np.ndindex(counts.shape), wheres, counts.flat, sites.flat, strict=True)
        return [Cell(self.name, p, w, int(n), int(s), self.counts_only) for p, w, n, s in flat]


class Grouped(Statistic):
    """Statistic of columns, by the values of a category."""

    column: str
    by: str | None

    @property
    def _columns(self) -> tuple[str, ...]:
        """Columns of which a record needs values."""
        return (self.column,)

    @property
    def name(self) -> str:
        """Name in results."""
        return f"{self.kind} of {self._columns[0]}{f' by {self.by}' if self.by else ''}"

    def check(self, frame: Frame) -> None:
        """Raise `ParameterError` unless the columns are in the plan."""
        frame.number(self._columns[0])
        self.groups(frame)

    def groups(self, frame: Frame) -> tuple[str, ...]:
        """Return the names of the groups; a single empty name without groups.

        Raises
        ------
        ParameterError
            `by` is no category of the plan, or a column of the statistic.
        """
        if self.by in self._columns:
            raise ParameterError(f"by is {self.by!r}, a column of the statistic; take another")
        return ("",) if self.by is None else frame.values(self.by)

    def wheres(self, frame: Frame) -> list[Where]:
        """Return the groups."""
        parts = tuple(frame.present(name) for name in self._columns)
        if self.by is None:
            return [parts]
        return [((self.by, g, g + 1), *parts) for g in range(len(self.groups(frame)))]

    def masks(self, frame: Frame, records: Records) -> Iterator[NDArray[np.bool_]]:
        """Yield the records of each group that have all values."""
        complete = records.complete(self._columns)
        for g in range(len(self.groups(frame))):
            yield complete if self.by is None else complete & (records.points[self.by] == g)

    def table(self, header: Sequence[str], rows: Sequence[Row]) -> Table:
        """Return a table whose rows begin with the name of the group, if there are groups."""
        by = () if self.by is None else (self.by,)
        return Table((*by, *header), tuple(row if by else row[1:] for row in rows))

    @property
    def _each(self) -> str:
        return f" for each value of {self.by}" if self.by else ""
