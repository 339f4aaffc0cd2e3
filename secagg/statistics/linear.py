"""Statistics of exact products: covariance, principal components and least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from secagg.statistics.design import ONE, Design, Products, Regression, names_of, numeric
from secagg.statistics.layout import Exact
from secagg.statistics.statistic import Frame, Hidden, NoTable, Past, Sample, Table, Value


@dataclass(frozen=True)
class Covariance(Products):
    """Covariance and correlation of columns, with principal components of the covariance.

    Only records with values in all columns count. Sums are divided by n − 1.

    Parameters
    ----------
    columns : sequence of str
        2 to 200 Numbers of the plan.
    """

    columns: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names_of("columns", self.columns, 2, 200))

    @property
    def name(self) -> str:
        """Name in results."""
        return f"covariance of {', '.join(self.columns)}"

    def sample(self, past: Past) -> Sample:
        """Return the columns, and the number of the records with values in all of these."""
        return frozenset(self.columns), int(past[0]["n"][0])

    def design(self, frame: Frame) -> Design:
        """Return the design: all columns are numbers, and the last is the outcome."""
        *terms, last = (numeric(frame, name) for name in self.columns)
        return Design((ONE, *terms), last)

    def words(self, frame: Frame) -> str:
        """Return what everybody learns."""
        return f"covariance, correlation and principal components of {', '.join(self.columns)}"

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return covariance, correlation and principal components."""
        design, sums = self.design(frame), past[0]
        n, sites = design.judge_records(sums, frame, max(2, frame.min_count))
        design.judge_flags(sums, frame)
        steps = np.array([frame.number(name).step for name in self.columns], object)
        first, xx = sums["xx"][0, 1:], sums["xx"][1:, 1:]
        scale = np.outer(steps, steps) / (n * (n - 1))
        matrix = ((n * xx - np.outer(first, first)) * scale).astype(float)
        sd = np.sqrt(np.diag(matrix))
        values, vectors = np.linalg.eigh(matrix)
        order = values.argsort()[::-1]
        # the largest element of a component is positive
        signs = np.sign(vectors[np.abs(vectors).argmax(0), np.arange(len(sd))])
        share = values / values.sum() if values.sum() else np.full(len(sd), math.nan)
        components = np.column_stack((values, share, (vectors * signs).T))[order]
        # a column without variance has no correlation
        spread = np.where(np.outer(sd, sd) > 0, np.outer(sd, sd), math.nan)
        note = f"{n:,} records of {sites} sites"
        return {
            "": self._table("column", self.columns, matrix, note),
            "correlation": self._table("column", self.columns, matrix / spread, note),
            "components": self._table("component", range(1, len(sd) + 1), components),
        }

    def _table(self, what: str, names: Sequence[Value], numbers: Any, note: str = "") -> Table:
        """Return a table of numbers with names of the rows; NaN is no value."""
        cells = [[None if math.isnan(x) else x for x in row] for row in numbers.tolist()]
        more = ("variance", "share") if what == "component" else ()
        rows = tuple((name, *row) for name, row in zip(names, cells, strict=True))
        return Table((what, *more, *self.columns), rows, note)


@dataclass(frozen=True)
class Linear(Regression):
    """Linear regression by least squares, with standard errors and t values.

    All sums are exact, and the equations are solved in fractions.

    Parameters
    ----------
    y : str
        A Number of the plan.
    x : sequence of str
        Columns of the plan. The first value of a Category is the reference.
    """

    def words(self, frame: Frame) -> str:
        """Return what everybody learns."""
        return f"linear regression of {self.y} on {', '.join(self.x)}, with standard errors"

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return the coefficients, and a summary."""
        from scipy.special import stdtr

        design, sums = self.design(frame), past[0]
        n, sites = design.judge(sums, frame)
        p, y = len(design.terms), design.y
        xx, xy, yy = sums["xx"][:p, :p], sums["xx"][:p, p], int(sums["xx"][p, p])
        inverse = inverse_of(design, xx)
        beta = inverse @ xy
        rest = yy - xy @ beta
        total = yy - Fraction(int(xy[0]) ** 2, n)
        if not total:
            raise NoTable(f"{y.name} is the same for all records; choose another y")
        if not rest:
            others = design.names(range(1, p))
            raise NoTable(f"{y.name} is a combination of {others}; leave a column out")
        variance = rest / (n - p) * y.grid.step**2
        beta, covariance = beta * y.grid.step, inverse * variance
        summary = (n, sites, math.sqrt(variance), float(1 - rest / total))
        return {
            "": design.table(beta, covariance, "t", lambda t: stdtr(n - p, t)),
            "summary": Table(("records", "sites", "residual sd", "r2"), (summary,)),
        }


def inverse_of(design: Design, xx: Exact) -> Exact:
    """Return the inverse of products of terms, in fractions; raise `NoTable` without such."""
    unit = np.eye(len(xx), dtype=int).astype(object)
    return design.solve(xx, unit, "{} are collinear; leave a column out")
