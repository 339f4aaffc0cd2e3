"""Statistics of exact products: covariance, principal components and least squares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from secagg.errors import ParameterError
from secagg.statistics.design import Design, Regression, names_of
from secagg.statistics.exact import Singular, gram, solve
from secagg.statistics.layout import Exact, Field
from secagg.statistics.records import Records
from secagg.statistics.statistic import (
    Frame,
    Hidden,
    NoTable,
    Past,
    Row,
    Statistic,
    Table,
)


def product_fields(terms: int, bits: int) -> list[Field]:
    """Return the fields of records, sites, ends of ranges, and products of `terms` columns."""
    return [Field("n", (2,)), Field("edges", (2, terms)), Field("xx", (terms, terms), bits)]


@dataclass(frozen=True)
class Covariance(Statistic):
    """Covariance and correlation of columns, with principal components of the covariance.

    Only records with values in all columns count. Sums are divided by n − 1.

    Parameters
    ----------
    columns : sequence of str
        2 to 200 Numbers of the plan.
    """

    columns: tuple[str, ...]
    kind: ClassVar[str] = "covariance"

    def __post_init__(self) -> None:
        names = names_of("columns", self.columns)
        if not 2 <= len(names) <= 200 or len(set(names)) < len(names):
            raise ParameterError(f"columns is {names}; name 2 to 200 different columns")
        object.__setattr__(self, "columns", names)

    @property
    def name(self) -> str:
        """Name in results."""
        return f"covariance of {', '.join(self.columns)}"

    def check(self, frame: Frame) -> None:
        """Raise `ParameterError` unless the columns are in the plan."""
        for name in self.columns:
            frame.number(name)

    def words(self, frame: Frame) -> str:
        """Return what everybody learns."""
        return f"covariance, correlation and principal components of {', '.join(self.columns)}"

    def fields(self, frame: Frame, past: Past) -> list[Field]:
        """Return the fields of the only step: records, sites, sums and products."""
        bits = 2 * max(frame.number(name).units for name in self.columns).bit_length()
        return [] if past else product_fields(len(self.columns) + 1, bits)

    def sums(self, frame: Frame, records: Records, past: Past) -> dict[str, Any]:
        """Return the products of the points of each pair of columns, and of 1."""
        rows = np.flatnonzero(records.complete(self.columns))
        x = np.stack(
            [np.ones(rows.size, np.int64), *(records.points[c][rows] for c in self.columns)], 1
        )
        units = np.array([1, *(frame.number(name).units for name in self.columns)])
        edges = [(x == 0).sum(0), (x == units).sum(0)]
        return {"n": [rows.size, int(rows.size > 0)], "edges": edges, "xx": gram(x, x)}

    def sample(self, past: Past) -> tuple[frozenset[str], int]:
        """Return the columns, and the number of the records with values in all of these."""
        return frozenset(self.columns), int(past[0]["n"][0])

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return covariance, correlation and principal components."""
        sums = past[0]
        n, sites = int(sums["n"][0]), int(sums["n"][1])
        if n < max(2, frame.min_count) or sites < frame.min_sites:
            raise NoTable(
                f"fewer than {frame.min_count} records or {frame.min_sites} sites have values "
                f"in all of {list(self.columns)}; plan fewer columns, or find more sites"
            )
        for name, *ends in zip(self.columns, *(sums["edges"][:, 1:]), strict=True):
            if any(frame.few(n - int(end), 0) for end in ends):
                raise NoTable(
                    f"{name} differs for fewer than {frame.min_count} records, and the sums "
                    "would show their values; leave the column out, or plan other ranges"
                )
        steps = [frame.number(name).step for name in self.columns]
        first, xx = sums["xx"][0, 1:], sums["xx"][1:, 1:]
        matrix = np.array(
            [
                [float(Fraction(int(n * xx[i, j] - first[i] * first[j]), n * (n - 1)) * a * b)
                 for j, b in enumerate(steps)]
                for i, a in enumerate(steps)
            ]
        )  # fmt: skip
        sd = np.sqrt(np.diag(matrix))
        values, vectors = np.linalg.eigh(matrix)
        order = values.argsort()[::-1]
        # the largest element of a component is positive
        signs = np.sign(vectors[np.abs(vectors).argmax(0), np.arange(len(sd))])
        share = values / values.sum() if values.sum() else np.full(len(sd), math.nan)
        components = [
            (k + 1, float(values[i]), None if np.isnan(share[i]) else float(share[i]),
             *(vectors[:, i] * signs[i]).tolist())
            for k, i in enumerate(order)
        ]  # fmt: skip

        def square(entry: Any) -> tuple[Row, ...]:
            size = range(len(sd))
            return tuple((self.columns[i], *(entry(i, j) for j in size)) for i in size)

        def correlation(i: int, j: int) -> float | None:
            return float(matrix[i, j] / (sd[i] * sd[j])) if sd[i] and sd[j] else None

        head = ("column", *self.columns)
        note = f"{n:,} records of {sites} sites"
        return {
            "": Table(head, square(lambda i, j: float(matrix[i, j])), note),
            "correlation": Table(head, square(correlation), note),
            "components": Table(
                ("component", "variance", "share", *self.columns), tuple(components)
            ),
        }


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

    y: str
    x: tuple[str, ...]
    kind: ClassVar[str] = "linear"

    def words(self, frame: Frame) -> str:
        """Return what everybody learns."""
        return f"linear regression of {self.y} on {', '.join(self.x)}, with standard errors"

    def fields(self, frame: Frame, past: Past) -> list[Field]:
        """Return the fields of the only step: records, sites, and products with the outcome."""
        design = self.design(frame)
        return [] if past else product_fields(len(design.terms) + 1, design.bits)

    def sums(self, frame: Frame, records: Records, past: Past) -> dict[str, Any]:
        """Return the products of the points of each pair of terms, the outcome last."""
        return products(self.design(frame), *self.design(frame).points(records))

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return the coefficients, and a summary."""
        from scipy.special import stdtr

        design, sums = self.design(frame), past[0]
        n, sites = design.judge(sums, frame)
        p, y = len(design.terms), design.y
        xx, xy, yy = sums["xx"][:p, :p], sums["xx"][:p, p], int(sums["xx"][p, p])
        beta, inverse = solved(design, xx, xy)
        rest = yy - sum(int(a) * b for a, b in zip(xy, beta, strict=True))
        total = yy - Fraction(int(xy[0]) ** 2, n)
        if not total:
            raise NoTable(f"{y.name} is the same for all records; choose another y")
        if not rest:
            raise NoTable(
                f"{y.name} is a combination of {design.names(range(1, p))}; leave a column out"
            )
        variance = rest / (n - p) * y.step**2
        scaled, variances = design.on_scale(beta * y.step, inverse)
        scaled[0] += y.start
        rows = list[Row]()
        for j, term in enumerate(design.terms):
            b, se = float(scaled[j]), math.sqrt(variances[j] * variance)
            rows.append((term.name, b, se, b / se, 2 * float(stdtr(n - p, -abs(b / se)))))
        summary = (n, sites, math.sqrt(variance), float(1 - rest / total))
        return {
            "": Table(("term", "coefficient", "se", "t", "p"), tuple(rows)),
            "summary": Table(("records", "sites", "residual sd", "r2"), (summary,)),
        }


def products(design: Design, x: Any, y: Any) -> dict[str, Any]:
    """Return records, sites, ends of ranges, and products of a site's points."""
    every = np.column_stack((x, y))
    return {
        "n": [len(y), int(len(y) > 0)],
        "edges": design.edges(x, y),
        "xx": gram(every, every),
    }


def solved(design: Design, xx: Exact, xy: Exact) -> tuple[Exact, Exact]:
    """Return the coefficients for points, and the inverse of xx, in fractions.

    Raises
    ------
    NoTable
        Columns are collinear.
    """
    size = len(design.terms)
    right = np.column_stack((xy, np.eye(size, dtype=int).astype(object)))
    try:
        found = np.array(solve(xx, right), object)
    except Singular as error:
        raise NoTable(
            f"{design.names(error.columns)} are collinear; leave a column out"
        ) from None
    return found[:, 0], found[:, 1:]
