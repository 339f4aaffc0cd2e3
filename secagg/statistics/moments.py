"""Number of records, mean, standard deviation and skewness of a column, by groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from secagg.statistics.columns import Number
from secagg.statistics.exact import gram
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
    check_by,
    group_cells,
    group_masks,
    group_names,
    group_wheres,
    number,
)


@dataclass(frozen=True)
class Moments:
    """Records, mean, standard deviation, skewness and standard error of a column.

    The variance is divided by n − 1; the skewness is m₃ / m₂^1.5 with moments divided by n.

    Parameters
    ----------
    column : str
        A Number of the plan.
    by : str, optional
        A Category of the plan: a result for each value.
    """

    column: str
    by: str | None = None
    kind: ClassVar[str] = "moments"

    @property
    def name(self) -> str:
        """Name in results."""
        return f"moments of {self.column}" + (f" by {self.by}" if self.by else "")

    def check(self, columns: Columns) -> None:
        """Raise `ParameterError` unless the columns are in the plan."""
        number(columns, self.column)
        check_by(columns, self.by)

    def wheres(self, columns: Columns) -> list[Where]:
        """Return the groups."""
        return group_wheres(columns, self.by, self.column)

    def words(self, columns: Columns) -> str:
        """Return what everybody learns."""
        groups = f" for each value of {self.by}" if self.by else ""
        return f"mean, standard deviation and skewness of {self.column}{groups}"

    def fields(self, columns: Columns, limits: Limits, past: Sequence[Sums]) -> list[Field]:
        """Return the fields of the only step."""
        shape = (len(group_names(columns, self.by)),)
        bits = number(columns, self.column).units.bit_length()
        names = {
            "n": 1,
            "sites": 1,
            "low": 1,
            "high": 1,
            "s1": bits,
            "s2": 2 * bits,
            "s3": 3 * bits,
        }
        return [] if past else [Field(name, shape, size) for name, size in names.items()]

    def sums(
        self, columns: Columns, limits: Limits, records: Records, past: Sequence[Sums]
    ) -> dict[str, Any]:
        """Return counts, and sums of the first three powers of the points."""
        rows, top = [], number(columns, self.column).units
        for mask in group_masks(columns, records, self.by, self.column):
            u = records.points[self.column][mask][:, None]
            first = gram(np.ones_like(u), u)[0, 0]
            second, third = gram(u, u)[0, 0], gram(u * u, u)[0, 0]
            n, low, high = len(u), int((u == 0).sum()), int((u == top).sum())
            rows.append((n, int(n > 0), low, high, first, second, third))
        columns_of = zip(*rows, strict=True)
        return dict(
            zip(("n", "sites", "low", "high", "s1", "s2", "s3"), columns_of, strict=True)
        )

    def cells(self, columns: Columns, past: Sequence[Sums]) -> list[Cell]:
        """Return the number of records of each group."""
        return group_cells(self.name, self.wheres(columns), past[0]["n"], past[0]["sites"])

    def tables(
        self, columns: Columns, limits: Limits, past: Sequence[Sums], hidden: Hidden
    ) -> dict[str, Table]:
        """Return a table with a row for each group."""
        header = ("records", "sites", "mean", "sd", "se", "skewness")
        rows, sums = list[tuple[Value, ...]](), past[0]
        for g, name in enumerate(group_names(columns, self.by)):
            n, sites, low, high, *powers = (
                int(sums[key][g]) for key in ("n", "sites", "low", "high", "s1", "s2", "s3")
            )
            row: tuple[Value, ...] = (None,) * len(header)
            # a sum over an end of the range is a sum of the few records that are elsewhere
            few = limits.few(n - low, sites) or limits.few(n - high, sites)
            if (g,) not in hidden and not few:
                row = (n, sites, *moments(number(columns, self.column), n, powers))
            rows.append((name, *row) if self.by else row)
        return {"": Table((self.by, *header) if self.by else header, tuple(rows))}


def moments(column: Number, n: int, powers: Sequence[int]) -> tuple[Value, ...]:
    """Return mean, standard deviation, standard error and skewness, None where undefined."""
    if not n:
        return (None,) * 4
    first, second, third = (Fraction(power, n) for power in powers)
    mean = column.value(first)
    central = second - first**2
    skew = third - 3 * first * second + 2 * first**3
    sd = float(column.step) * math.sqrt(central * n / (n - 1)) if n > 1 else None
    skewness = float(skew) / float(central) ** 1.5 if central else None
    return mean, sd, None if sd is None else sd / math.sqrt(n), skewness
