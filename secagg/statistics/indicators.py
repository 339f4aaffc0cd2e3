"""Numbers of records, and of missing, unknown and clipped values of each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


from secagg.statistics.columns import Number
from secagg.statistics.layout import Field, Sums
from secagg.statistics.records import Records
from secagg.statistics.statistic import (
    Cell,
    Columns,
    Hidden,
    Limits,
    Table,
    Value,
    Where,
    group_cells,
    indicator,
)


@dataclass(frozen=True)
class Indicators:
    """Numbers of records, of missing, unknown and clipped values; a part of every plan.

    Parameters
    ----------
    names : tuple of str
        Columns of the plan.
    """

    names: tuple[str, ...]
    kind: ClassVar[str] = "indicators"
    name: ClassVar[str] = "records"

    def check(self, columns: Columns) -> None:
        """Do nothing: all columns fit."""

    def wheres(self, columns: Columns) -> list[Where]:
        """Return all records, then the records without a value in each column."""
        return [(), *(((name, -1, 0),) for name in self.names)]

    def words(self, columns: Columns) -> str:
        """Return what everybody learns."""
        return (
            "number of sites and records, and for each column the numbers of missing values, of "
            "values outside of the range and of values that are in no list"
        )

    def fields(self, columns: Columns, limits: Limits, past: Sequence[Sums]) -> list[Field]:
        """Return the fields of the first step."""
        size = len(self.names)
        shapes = {"n": (size + 1,), "sites": (size + 1,), "below": (size,), "above": (size,)}
        return [] if past else [Field(name, shape) for name, shape in shapes.items()]

    def sums(
        self, columns: Columns, limits: Limits, records: Records, past: Sequence[Sums]
    ) -> dict[str, Any]:
        """Return a site's numbers; unknown values count as missing and as above."""
        missing = [int((records.points[name] < 0).sum()) for name in self.names]
        n = [records.size, *missing]
        below = [int(records.below[c].sum()) if c in records.below else 0 for c in self.names]
        above = [
            int(records.above[c].sum()) if c in records.above else records.unknown[c]
            for c in self.names
        ]
        return {"n": n, "sites": indicator(n), "below": below, "above": above}

    def cells(self, columns: Columns, past: Sequence[Sums]) -> list[Cell]:
        """Return the numbers of all records and of missing values."""
        return group_cells(self.name, self.wheres(columns), past[0]["n"], past[0]["sites"])

    def tables(
        self, columns: Columns, limits: Limits, past: Sequence[Sums], hidden: Hidden
    ) -> dict[str, Table]:
        """Return a row for each column; a clipped count below `min_count` is hidden."""
        sums, rows = past[0], list[tuple[Value, ...]]()
        n, sites = int(sums["n"][0]), int(sums["sites"][0])
        for i, name in enumerate(self.names):
            missing = int(sums["n"][i + 1])
            outside = [int(sums["below"][i]), int(sums["above"][i])]
            is_number = isinstance(columns[name], Number)

            def shown(count: int, rest: int, known: bool) -> Value:
                return (
                    count
                    if known and not limits.few(count, 0) and not limits.few(rest, 0)
                    else None
                )

            low, high = (shown(k, n - k, True) for k in outside)
            row = (low, high, None) if is_number else (None, None, high)
            rows.append((name, None if (i + 1,) in hidden else missing, *row))
        total = (None, None) if (0,) in hidden else (n, sites)
        return {
            "": Table(("column", "missing", "below", "above", "unknown"), tuple(rows)),
            "all": Table(("records", "sites"), (total,)),
        }
