"""Statistics of exact products: covariance, correlation, principal components, least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from secagg.errors import ParameterError
from secagg.statistics.design import Design, numeric
from secagg.statistics.exact import Singular, gram, solve
from secagg.statistics.layout import Exact, Field, Sums
from secagg.statistics.records import Records
from secagg.statistics.statistic import (
    Cell,
    Columns,
    Hidden,
    Limits,
    NoTable,
    Table,
    Value,
    Where,
    number,
)


def product_fields(terms: int, bits: int) -> list[Field]:
    """Return the fields of records, sites, ends of ranges, and products of `terms` columns."""
    return [Field("n", (2,)), Field("edges", (2, terms)), Field("xx", (terms, terms), bits)]


def names_of(value: object, what: str) -> tuple[str, ...]:
    """Return names of columns as a tuple; a single name is a list of itself."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence) or not all(isinstance(name, str) for name in value):
        raise ParameterError(f"{what} must be a list of names of columns")
    return tuple(value)


@dataclass(frozen=True)
class Covariance:
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
        names = names_of(self.columns, "columns")
        if not 2 <= len(names) <= 200 or len(set(names)) < len(names):
            raise ParameterError(f"columns is {names}; name 2 to 200 different columns")
        object.__setattr__(self, "columns", names)

    @property
    def name(self) -> str:
        """Name in results."""
        return f"covariance of {', '.join(self.columns)}"

    def check(self, columns: Columns) -> None:
        """Raise `ParameterError` unless the columns are in the plan."""
        for name in self.columns:
            number(columns, name)

    def wheres(self, columns: Columns) -> list[Where]:
        """Return no parts: the number of complete records has a rule of its own."""
        return []

    def words(self, columns: Columns) -> str:
        """Return what everybody learns."""
        return f"covariance, correlation and principal components of {', '.join(self.columns)}"

    def fields(self, columns: Columns, limits: Limits, past: Sequence[Sums]) -> list[Field]:
        """Return the fields of the only step: records, sites, sums and products."""
        bits = 2 * max(number(columns, name).units for name in self.columns).bit_length()
        return [] if past else product_fields(len(self.columns) + 1, bits)

    def sums(
        self, columns: Columns, limits: Limits, records: Records, past: Sequence[Sums]
    ) -> dict[str, Any]:
        """Return the products of the points of each pair of columns, and of 1."""
        rows = np.flatnonzero(records.complete(self.columns))
        x = np.stack(
            [np.ones(rows.size, np.int64), *(records.points[c][rows] for c in self.columns)], 1
        )
        units = np.array([1, *(number(columns, name).units for name in self.columns)])
        edges = [(x == 0).sum(0), (x == units).sum(0)]
        return {"n": [rows.size, int(rows.size > 0)], "edges": edges, "xx": gram(x, x)}

    def cells(self, columns: Columns, past: Sequence[Sums]) -> list[Cell]:
        """Return no cells."""
        return []

    def tables(
        self, columns: Columns, limits: Limits, past: Sequence[Sums], hidden: Hidden
    ) -> dict[str, Table]:
        """Return covariance, correlation and principal components."""
        sums = past[0]
        n, sites = int(sums["n"][0]), int(sums["n"][1])
        if n < max(2, limits.min_count) or sites < limits.min_sites:
            raise NoTable(
                f"fewer than {limits.min_count} records or {limits.min_sites} sites have values in "
                f"all of {list(self.columns)}; plan fewer columns, or find more sites"
            )
        for name, *ends in zip(self.columns, *(sums["edges"][:, 1:]), strict=True):
            if any(limits.few(n - int(end), 0) for end in ends):
                raise NoTable(
                    f"{name} differs for fewer than {limits.min_count} records, whose values the "
                    "sums would show; leave the column out, or plan other ranges"
                )
        steps = [number(columns, name).step for name in self.columns]
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

        def square(entry: Any) -> tuple[tuple[Value, ...], ...]:
            size = range(len(sd))
            return tuple((self.columns[i], *(entry(i, j) for j in size)) for i in size)

        def correlation(i: int, j: int) -> Value:
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
class Linear:
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", names_of(self.x, "x"))

    @property
    def name(self) -> str:
        """Name in results."""
        return f"linear regression of {self.y}"

    def design(self, columns: Columns) -> Design:
        """Return the design."""
        return Design.of(columns, numeric(columns, self.y), self.x)

    def check(self, columns: Columns) -> None:
        """Raise `ParameterError` unless the columns are in the plan."""
        self.design(columns)

    def wheres(self, columns: Columns) -> list[Where]:
        """Return no parts: the number of complete records has a rule of its own."""
        return []

    def words(self, columns: Columns) -> str:
        """Return what everybody learns."""
        return f"linear regression of {self.y} on {', '.join(self.x)}, with standard errors"

    def fields(self, columns: Columns, limits: Limits, past: Sequence[Sums]) -> list[Field]:
        """Return the fields of the only step: records, sites, and products with the outcome."""
        design = self.design(columns)
        return [] if past else product_fields(len(design.terms) + 1, design.bits)

    def sums(
        self, columns: Columns, limits: Limits, records: Records, past: Sequence[Sums]
    ) -> dict[str, Any]:
        """Return the products of the points of each pair of terms, the outcome last."""
        return products(self.design(columns), *self.design(columns).points(records))

    def cells(self, columns: Columns, past: Sequence[Sums]) -> list[Cell]:
        """Return no cells."""
        return []

    def tables(
        self, columns: Columns, limits: Limits, past: Sequence[Sums], hidden: Hidden
    ) -> dict[str, Table]:
        """Return the coefficients, and a summary."""
        from scipy.special import stdtr

        design, sums = self.design(columns), past[0]
        n, sites = design.judge(sums, limits)
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
        scaled, covariance = design.on_scale(beta * y.step, inverse)
        scaled[0] += y.start
        rows = list[tuple[Value, ...]]()
        for j, term in enumerate(design.terms):
            b, se = float(scaled[j]), math.sqrt(covariance[j, j] * variance)
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
