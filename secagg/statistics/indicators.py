"""Numbers of records, and of missing, unknown and clipped values of each column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from secagg.statistics.columns import Number
from secagg.statistics.layout import Field
from secagg.statistics.noise import shown
from secagg.statistics.records import Records
from secagg.statistics.statistic import (
    Frame,
    Hidden,
    Past,
    Row,
    Statistic,
    Table,
    Value,
    Where,
    indicator,
)


@dataclass(frozen=True)
class Indicators(Statistic):
    """Numbers of records, of missing, unknown and clipped values; a part of every plan.

    Parameters
    ----------
    names : tuple of str
        Columns of the plan.
    """

    names: tuple[str, ...]
    kind: ClassVar[str] = "indicators"
    counts_only: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """Name in results."""
        return "records"

    def check(self, frame: Frame) -> None:
        """Do nothing: all columns fit."""

    def wheres(self, frame: Frame) -> list[Where]:
        """Return all records, then the records without a value in each column."""
        return [(), *(((name, -1, 0),) for name in self.names)]

    def words(self, frame: Frame) -> str:
        """Return what everybody learns."""
        return (
            "number of sites and records, and for each column the numbers of missing values, "
            "of values outside of the range and of values that are in no list"
        )

    def fields(self, frame: Frame, past: Past) -> list[Field]:
        """Return the fields of the first step."""
        size = len(self.names)
        shapes = {"n": (size + 1,), "sites": (size + 1,), "below": (size,), "above": (size,)}
        return [] if past else [Field(name, shape) for name, shape in shapes.items()]

    def sums(self, frame: Frame, records: Records, past: Past) -> dict[str, Any]:
        """Return a site's numbers; unknown values count as missing and as above."""
        missing = [int((records.points[name] < 0).sum()) for name in self.names]
        n = [records.size, *missing]
        below = [int(records.below[c].sum()) if c in records.below else 0 for c in self.names]
        above = [
            int(records.above[c].sum()) if c in records.above else records.unknown[c]
            for c in self.names
        ]
        return {"n": n, "sites": indicator(n), "below": below, "above": above}

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return a row for each column; a clipped count below `min_count` is hidden."""
        rows, n = list[Row](), int(past[0]["n"][0])
        for i, name in enumerate(self.names):
            missing = None if (i + 1,) in hidden else int(past[0]["n"][i + 1])
            below, above = (
                self._shown(frame, int(past[0][k][i]), n) for k in ("below", "above")
            )
            number = isinstance(frame.columns[name], Number)
            rows.append(
                (name, missing, *((below, above, None) if number else (None, None, above)))
            )
        total = (None, None) if (0,) in hidden else (n, int(past[0]["sites"][0]))
        return {
            "": Table(("column", "missing", "below", "above", "unknown"), tuple(rows)),
            "all": Table(("records", "sites"), (total,)),
        }

    def norms(self, frame: Frame) -> dict[str, tuple[float, int]]:
        """Return the norms: a record is in all numbers at most once."""
        size = len(self.names)
        norms = {"n": size + 1, "below": size, "above": size}
        return {name: (math.sqrt(square), 1) for name, square in norms.items()}

    def noised(self, frame: Frame, past: Past, error: Mapping[str, float]) -> dict[str, Table]:
        """Return a row for each column, with standard errors."""
        n, *missing = (shown(x) for x in past[0]["n"])
        outside = zip(*(map(shown, past[0][key]) for key in ("below", "above")), strict=True)
        rows = [(c, m, *o) for c, m, o in zip(self.names, missing, outside, strict=True)]
        note = "standard errors: " + ", ".join(
            f"{k} {error[k]:.3g}" for k in ("n", "below", "above")
        )
        return {
            "": Table(("column", "missing", "below", "above or unknown"), tuple(rows), note),
            "all": Table(("records", "se"), ((n, error["n"]),)),
        }

    def _shown(self, frame: Frame, count: int, n: int) -> Value:
        """Return a number of values, unless few values are outside, or inside."""
        return None if frame.few(count) or frame.few(n - count) else count
