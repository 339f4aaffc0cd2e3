"""Number of records, mean, standard deviation and skewness of a column, by groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from secagg.statistics.columns import Number
from secagg.statistics.exact import gram
from secagg.statistics.layout import Field
from secagg.statistics.records import Records
from secagg.statistics.statistic import Cell, Frame, Grouped, Hidden, Past, Row, Sample, Table

_NAMES = ("n", "sites", "low", "high", "s1", "s2", "s3")


@dataclass(frozen=True)
class Moments(Grouped):
    """Records, mean, standard deviation, skewness and standard error of a column.

    The variance is divided by n − 1; the skewness is m₃ / m₂^1.5 with moments divided by n.

    Groups of which fewer than the plan's `min_count` records make most of the variance are
    hidden: mean and number of records would show their values.

    Parameters
    ----------
    column : str
        A Number of the plan.
    by : str, optional
        A Category of the plan: a result for each value.
    """

    column: str
    by: str | None = None

    def words(self, frame: Frame) -> str:
        """Return what everybody learns."""
        what = "mean and" if frame.noised else "mean, skewness and"
        return f"{what} standard deviation of {self.column}{self._each}"

    def fields(self, frame: Frame, past: Past) -> list[Field]:
        """Return the fields of the only step."""
        shape = (len(self.groups(frame)),)
        bits = frame.number(self.column).units.bit_length()
        sizes = (1, 1, 1, 1, bits, 2 * bits, 3 * bits)
        fields = [Field(name, shape, size) for name, size in zip(_NAMES, sizes, strict=True)]
        return [] if past else fields

    def sums(self, frame: Frame, records: Records, past: Past) -> dict[str, Any]:
        """Return counts, and sums of the first three powers of the points."""
        rows, top = [], frame.number(self.column).units
        for mask in self.masks(frame, records):
            u = records.points[self.column][mask][:, None]
            powers = (gram(u**i, u**j)[0, 0] for i, j in ((0, 1), (1, 1), (2, 1)))
            n, low, high = len(u), int((u == 0).sum()), int((u == top).sum())
            rows.append((n, int(n > 0), low, high, *powers))
        return dict(zip(_NAMES, zip(*rows, strict=True), strict=True))

    def sample(self, past: Past) -> Sample:
        """Return the columns, and the number of the records with values in all of these."""
        return frozenset(filter(None, (self.column, self.by))), int(past[0]["n"].sum())

    def cells(self, frame: Frame, past: Past) -> list[Cell]:
        """Return the groups; a group whose sums show few values is hidden with another."""
        groups = enumerate(super().cells(frame, past))
        several = self.by is not None
        return [replace(one, few=several and self._few(frame, past, g)) for g, one in groups]

    def _few(self, frame: Frame, past: Past, g: int) -> bool:
        """Return whether the sums of a group show the values of few records."""
        n, sites, low, high, *powers = (int(past[0][key][g]) for key in _NAMES)
        # a sum over an end of the range is a sum of the few records that are elsewhere
        few = frame.few(n - low, sites) or frame.few(n - high)
        return few or dominated(n, powers, frame.min_count)

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return a table with a row for each group."""
        column, rows = frame.number(self.column), list[Row]()
        for g, name in enumerate(self.groups(frame)):
            n, sites, _, _, *powers = (int(past[0][key][g]) for key in _NAMES)
            few = (g,) in hidden or self._few(frame, past, g)
            shown = (None,) * 6 if few else (n, sites, *moments(column, n, powers))
            rows.append((name, *shown))
        return {"": self.table(("records", "sites", "mean", "sd", "se", "skewness"), rows)}

    def norms(self, frame: Frame) -> dict[str, tuple[float, int]]:
        """Return the norms: a record adds 1, u and u² to the sums of a single group."""
        top = frame.number(self.column).units
        return {"n": (1.0, 1), "s1": (float(top), top), "s2": (float(top) ** 2, top**2)}

    def noised(self, frame: Frame, past: Past, error: Mapping[str, float]) -> dict[str, Table]:
        """Return a row for each group: the standard error has sampling and noise."""
        column, rows = frame.number(self.column), list[Row]()
        step = float(column.step)
        for g, name in enumerate(self.groups(frame)):
            n, first, second = (Fraction(past[0][key][g]) for key in ("n", "s1", "s2"))
            if n < max(2, frame.min_count):
                rows.append((name, None, None, None, None))
                continue
            mean = first / n
            square = float(second / n - mean**2)
            sd = step * math.sqrt(square) if square > 0 else None
            # of S₁ / n to first order, in points of the grid
            noise = (error["s1"] ** 2 + (float(mean) * error["n"]) ** 2) / float(n) ** 2
            se = step * math.sqrt(noise + max(square, 0.0) / float(n))
            inside = column.value(min(max(mean, Fraction(0)), Fraction(column.units)))
            rows.append((name, float(n), inside, sd, se))
        return {"": self.table(("records", "mean", "sd", "se"), rows)}


def central(n: int, powers: Sequence[int]) -> tuple[Fraction, Fraction, Fraction]:
    """Return mean, and second and third central moment, of points."""
    first, second, third = (Fraction(power, n) for power in powers)
    return first, second - first**2, third - 3 * first * second + 2 * first**3


def dominated(n: int, powers: Sequence[int], least: int) -> bool:
    """Return whether fewer than `least` records differ from all others by far.

    The skewness is then larger than if `least` records had one value and the others another.
    """
    _, second, third = central(max(n, 1), powers)
    return n > 2 * least and third**2 * least * (n - least) > second**3 * (n - 2 * least) ** 2


def moments(column: Number, n: int, powers: Sequence[int]) -> tuple[float | None, ...]:
    """Return mean, standard deviation, standard error and skewness, None where undefined."""
    if not n:
        return (None,) * 4
    mean, second, third = central(n, powers)
    sd = float(column.step) * math.sqrt(second * n / (n - 1)) if n > 1 else None
    skewness = float(third) / float(second) ** 1.5 if second else None
    return column.value(mean), sd, None if sd is None else sd / math.sqrt(n), skewness
