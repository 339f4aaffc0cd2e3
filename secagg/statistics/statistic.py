"""What every statistic of a plan has: fields of its steps, sums of a site, cells, and tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg._printable import in_short
from secagg.errors import ParameterError
from secagg.statistics.columns import Category, Column, Number
from secagg.statistics.layout import Exact, Field, Sums
from secagg.statistics.records import Records

Columns: TypeAlias = Mapping[str, Column]
Where: TypeAlias = tuple[tuple[str, int, int], ...]
"""Part of all records: for some columns, the first point and the point after the last. The
point −1 is a missing value."""
Value: TypeAlias = str | int | float | None
"""Entry of a table; None if the entry is hidden or does not exist."""
MISSING = "(missing)"
"""Name of the category of missing values."""


@dataclass(frozen=True)
class Limits:
    """Least counts of a plan; see `Plan`.

    Parameters
    ----------
    min_count : int
    min_sites : int
    records_per_parameter : int
    """

    min_count: int
    min_sites: int
    records_per_parameter: int

    def few(self, count: int, sites: int) -> bool:
        """Return whether a number of records, or of sites, is above 0 and below the least."""
        return 0 < count < self.min_count or 0 < sites < self.min_sites


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
    """

    table: str
    place: tuple[int, ...]
    where: Where
    count: int
    sites: int


Hidden: TypeAlias = Collection[tuple[int, ...]]
"""Places of the cells that stay hidden."""


@dataclass(frozen=True)
class Table:
    """Table of a result.

    Attributes
    ----------
    header : tuple of str
    rows : tuple of tuples
        A value of each column; None if the value is hidden or does not exist.
    note : str
        What a reader has to know, such as hidden cells.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str = ""


class NoTable(Exception):
    """A statistic has no result; the text says which columns, why, and the remedy."""


class Statistic(Protocol):
    """Statistic of a plan. All sums of a step are numbers ≥ 0 of single records, added up.

    Attributes
    ----------
    kind : str
        Name of the kind in a plan's file.
    """

    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """Name in results, unique in a plan."""

    def check(self, columns: Columns) -> None:
        """Raise `ParameterError` unless the statistic fits the columns of a plan."""

    def wheres(self, columns: Columns) -> list[Where]:
        """Return the parts of the records whose numbers are published, in the order of cells."""

    def words(self, columns: Columns) -> str:
        """Return a sentence: what everybody learns."""

    def fields(self, columns: Columns, limits: Limits, past: Sequence[Sums]) -> list[Field]:
        """Return the fields of the next step, given the sums of all steps before; [] at the end."""

    def sums(
        self, columns: Columns, limits: Limits, records: Records, past: Sequence[Sums]
    ) -> dict[str, Any]:
        """Return a site's contribution to the next step, an array of integers for each field."""

    def cells(self, columns: Columns, past: Sequence[Sums]) -> list[Cell]:
        """Return the published numbers of records."""

    def tables(
        self, columns: Columns, limits: Limits, past: Sequence[Sums], hidden: Hidden
    ) -> dict[str, Table]:
        """Return the tables of the result by name, without the hidden cells.

        Raises
        ------
        NoTable
            The sums have no such result.
        """


def number(columns: Columns, name: str) -> Number:
    """Return a column of numbers; raise `ParameterError` for any other name."""
    column = columns.get(name) if isinstance(name, str) else None
    if not isinstance(column, Number):
        raise ParameterError(
            f"{in_short(name)} is no Number of the plan; the plan's are "
            f"{[k for k, v in columns.items() if isinstance(v, Number)]}"
        )
    return column


def category(columns: Columns, name: str) -> Category:
    """Return a column of categories; raise `ParameterError` for any other name."""
    column = columns.get(name) if isinstance(name, str) else None
    if not isinstance(column, Category):
        raise ParameterError(
            f"{in_short(name)} is no Category of the plan; the plan's are "
            f"{[k for k, v in columns.items() if isinstance(v, Category)]}"
        )
    return column


def check_by(columns: Columns, by: str | None, *others: str) -> None:
    """Raise `ParameterError` unless `by` is None or a category that no other column is."""
    if by is not None:
        category(columns, by)
        if by in others:
            raise ParameterError(
                f"by is {by!r}, a column of the statistic; take another column"
            )


def present(columns: Columns, name: str) -> tuple[str, int, int]:
    """Return the part of the records with a value in a column."""
    column = columns[name]
    return name, 0, column.units + 1 if isinstance(column, Number) else len(column.values)


def group_names(columns: Columns, by: str | None) -> tuple[str, ...]:
    """Return the names of the groups; a single empty name without groups."""
    return ("",) if by is None else category(columns, by).values


def group_wheres(columns: Columns, by: str | None, *names: str) -> list[Where]:
    """Return the part of each group with values in some columns."""
    parts = tuple(present(columns, name) for name in names)
    if by is None:
        return [parts]
    return [((by, g, g + 1), *parts) for g in range(len(group_names(columns, by)))]


def group_masks(
    columns: Columns, records: Records, by: str | None, *names: str
) -> Iterator[NDArray[np.bool_]]:
    """Yield the records of each group that have values in some columns."""
    complete = records.complete(names)
    for g in range(len(group_names(columns, by))):
        yield complete if by is None else complete & (records.points[by] == g)


def group_cells(name: str, wheres: Sequence[Where], counts: Exact, sites: Exact) -> list[Cell]:
    """Return a cell for each part of the records."""
    flat = zip(wheres, counts.reshape(-1), sites.reshape(-1), strict=True)
    places = np.ndindex(counts.shape)
    return [Cell(name, p, w, int(n), int(s)) for p, (w, n, s) in zip(places, flat, strict=True)]


def indicator(counts: object) -> NDArray[np.object_]:
    """Return 1 where a site has records, 0 elsewhere."""
    return (np.asarray(counts, object) > 0).astype(object)
