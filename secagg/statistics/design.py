"""Design of a regression: intercept, numbers, and indicators of categories."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from secagg.errors import ParameterError
from secagg.statistics.columns import Number
from secagg.statistics.exact import Singular, gram, solve
from secagg.statistics.layout import Exact, Field, Sums
from secagg.statistics.records import Points, Records
from secagg.statistics.statistic import Frame, NoTable, Past, Row, Sample, Statistic, Table

MAX_PARAMETERS = 200


class Term(NamedTuple):
    """Column of a design.

    Attributes
    ----------
    name : str
        Name in tables, such as ``"age"`` or ``"sex = f"``.
    column : str
        Column of the plan; empty for the intercept.
    code : int or None
        Number of the value that the indicator marks; None for a column of numbers.
    grid : Number
        Values of the term.
    """

    name: str
    column: str
    code: int | None
    grid: Number

    def points(self, records: Records, rows: Points) -> Points:
        """Return the points of some records."""
        points = records.points[self.column][rows]
        return points if self.code is None else (points == self.code).astype(np.int64)


FLAG = Number(0, 1)
ONE = Term("(intercept)", "", None, FLAG)


class Design(NamedTuple):
    """Terms and outcome of a regression.

    Attributes
    ----------
    terms : tuple of Term
        The intercept, then the terms of the columns.
    y : Term
    """

    terms: tuple[Term, ...]
    y: Term

    @classmethod
    def of(cls, frame: Frame, y: Term, names: Sequence[str]) -> Design:
        """Return the design of columns; the first value of a category is the reference.

        Raises
        ------
        ParameterError
            A column is not in the plan, is there twice, or there are too many terms.
        """
        if y.column in names:
            raise ParameterError(
                f"x has the column {y.column!r}, which is y; leave it out of x"
            )
        terms = [ONE, *(term for name in names for term in terms_of(frame, name))]
        if len(terms) > MAX_PARAMETERS:
            raise ParameterError(
                f"the regression has {len(terms)} parameters; plan at most {MAX_PARAMETERS}"
            )
        return cls(tuple(terms), y)

    @property
    def columns(self) -> list[str]:
        """Columns of the plan in the regression."""
        return list(dict.fromkeys(t.column for t in (*self.terms, self.y) if t.column))

    def points(self, records: Records) -> tuple[Points, Points]:
        """Return terms and outcome of the records that have all values, as points."""
        if self not in records.designs:  # each step of a study takes the same
            rows = np.flatnonzero(records.complete(self.columns))
            x = [np.ones_like(rows), *(term.points(records, rows) for term in self.terms[1:])]
            records.designs[self] = np.stack(x, axis=1), self.y.points(records, rows)
        return records.designs[self]

    def judge_records(self, sums: Sums, frame: Frame, need: int) -> tuple[int, int]:
        """Return numbers of records and sites of the first step.

        Raises
        ------
        NoTable
            There are too few records or sites, or a term differs for a few records only.
        """
        n, sites = map(int, sums["n"])
        if n < need or sites < frame.min_sites:
            raise NoTable(
                f"fewer than {need} records or {frame.min_sites} sites have values in all of "
                f"{self.columns}; plan fewer columns, or find more sites"
            )
        terms = 2 * (*self.terms, self.y)
        ends = zip(terms, sums["edges"].flat, sums["spread"].flat, strict=True)
        for term, end, beyond in ends:
            if frame.few(n - int(end), int(beyond)):
                raise NoTable(
                    f"{term.name} differs for fewer than {frame.min_count} records or "
                    f"{frame.min_sites} sites, and the result would show their values; "
                    "leave the column out"
                )
        return n, sites

    def judge(self, sums: Sums, frame: Frame) -> tuple[int, int]:
        """Return numbers of records and sites of the first step of a regression.

        Raises
        ------
        NoTable
            See `judge_records`; or a term is constant, or a reference has few records.
        """
        need = max(frame.min_count, frame.records_per_parameter * len(self.terms))
        n, sites = self.judge_records(sums, frame, need)
        for term, *ends in zip((*self.terms, self.y), *sums["edges"], strict=True):
            if term.column and n in ends:
                raise NoTable(f"{term.name} is the same for all records; leave the column out")
        groups, xx = defaultdict[str, list[int]](list), sums["xx"]
        for j, term in enumerate(self.terms[1:], start=1):
            if term.grid.units == 1:
                groups[term.column].append(j)
        for name, group in groups.items():
            if frame.few(n - sum(xx[0, group])):
                raise NoTable(
                    f"the first value of {name} has fewer than {frame.min_count} records, and "
                    "the coefficients would show their outcomes; list another value first"
                )
            # coefficients of a value follow from the outcomes of the value's records
            if self.y.grid.units == 1 and few_outcomes(xx, group, len(self.terms), frame):
                raise NoTable(
                    f"a value of {name} has fewer than {frame.min_count} records of an outcome "
                    f"{self.y.name}; merge values, or leave {name} out"
                )
        return n, sites

    def judge_flags(self, sums: Sums, frame: Frame) -> None:
        """Raise `NoTable` if few records have a pair of values of two columns of 0 and 1."""
        terms = (*self.terms, self.y)
        flags = [i for i, term in enumerate(terms) if term.column and term.grid.units == 1]
        for i, j in combinations(flags, 2):
            if few_outcomes(sums["xx"], [i], j, frame):
                raise NoTable(
                    f"{terms[i].name} and {terms[j].name} are a table with a cell of fewer "
                    f"than {frame.min_count} records; leave one of the columns out"
                )

    def solve(self, matrix: Exact, right: Exact, why: str) -> Exact:
        """Return X of matrix · X = right, in fractions.

        Raises
        ------
        NoTable
            Terms depend on each other: `why`, with their names in place of {}.
        """
        try:
            return np.array(solve(matrix, right), object)
        except Singular as error:
            raise NoTable(why.format(self.names(error.args[0]))) from None

    def names(self, places: Sequence[int]) -> str:
        """Return the names of some terms."""
        return ", ".join(self.terms[i].name for i in places)

    def table(self, beta: Exact, covariance: Exact, test: str, below: Any) -> Table:
        """Return a table of coefficients, with a test by a symmetric distribution function.

        Parameters
        ----------
        beta, covariance : arrays
            Coefficients for points instead of values, and their covariance.
        test : str
            Name of the test statistic.
        below : function
            Distribution function.
        """
        steps = np.array([term.grid.step for term in self.terms], object)
        # the intercept is the predictor where all values are 0
        starts = [-term.grid.start / term.grid.step for term in self.terms[1:]]
        zero = np.array([1, *starts], object)
        scaled, variances = beta / steps, np.diag(covariance) / steps**2
        scaled[0], variances[0] = zero @ beta + self.y.grid.start, zero @ covariance @ zero
        rows = list[Row]()
        for term, b, square in zip(self.terms, map(float, scaled), variances, strict=True):
            se = math.sqrt(square)
            rows.append((term.name, b, se, b / se, 2 * float(below(-abs(b / se)))))
        return Table(("term", "coefficient", "se", test, "p"), tuple(rows))


def few_outcomes(xx: Exact, group: Sequence[int], flag: int, frame: Frame) -> bool:
    """Return whether few records have a value, of indicators `group`, and a value of a flag."""
    ones, both = ([*xx[j, group], xx[j, j] - sum(xx[j, group])] for j in (0, flag))
    return any(frame.few(k) or frame.few(n - k) for n, k in zip(ones, both, strict=True))


def numeric(frame: Frame, name: str) -> Term:
    """Return the term of a column of numbers."""
    return Term(name, name, None, frame.number(name))


def terms_of(frame: Frame, name: str) -> list[Term]:
    """Return the terms of a column: indicators of all values but a category's first."""
    if isinstance(frame.columns.get(name), Number):
        return [numeric(frame, name)]
    values = enumerate(frame.values(name))
    return [Term(f"{name} = {value}", name, code, FLAG) for code, value in values if code]


def binary(frame: Frame, name: str) -> Term:
    """Return the indicator of the second value of a category, or a column of 0 and 1."""
    terms = terms_of(frame, name)
    if len(terms) != 1:
        values = frame.values(name)
        raise ParameterError(f"{name!r} has the values {values}; a logistic y needs two")
    if terms[0].grid != FLAG:
        raise ParameterError(f"{name!r} must have low 0, high 1 and resolution 1")
    return terms[0]


def names_of(what: str, value: object, least: int, most: int) -> tuple[str, ...]:
    """Return different names of columns; a single name is a list with this name."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"{what} must be a list of names of columns")
    if not least <= len(names) <= most or len(set(names)) < len(names):
        raise ParameterError(f"{what} is {names}; name {least} to {most} different columns")
    return tuple(names)


class Products(Statistic):
    """Statistic of the products of the points of each pair of terms, the outcome last."""

    def design(self, frame: Frame) -> Design:
        """Return the design; raise `ParameterError` unless the columns are in the plan."""
        raise NotImplementedError

    def check(self, frame: Frame) -> None:
        """Raise `ParameterError` unless the columns are in the plan."""
        self.design(frame)

    def fields(self, frame: Frame, past: Past) -> list[Field]:
        """Return the fields of the first step: records, sites, ends of ranges, and products."""
        design = self.design(frame)
        terms = (*design.terms, design.y)
        size, bits = len(terms), max(term.grid.units for term in terms).bit_length()
        ends = (Field("edges", (2, size)), Field("spread", (2, size)))
        return [] if past else [Field("n", (2,)), *ends, Field("xx", (size, size), 2 * bits)]

    def sums(self, frame: Frame, records: Records, past: Past) -> dict[str, Any]:
        """Return the sums of the first step."""
        design = self.design(frame)
        every = np.column_stack(design.points(records))
        units = np.array([term.grid.units for term in (*design.terms, design.y)])
        edges = np.array([(every == 0).sum(0), (every == units).sum(0)])
        n, xx = len(every), gram(every, every)
        return {"n": [n, int(n > 0)], "edges": edges, "spread": n > edges, "xx": xx}

    def sample(self, past: Past) -> Sample:
        """Return the columns, and the number of the records with values in all of these."""
        raise NotImplementedError


@dataclass(frozen=True)
class Regression(Products):
    """Statistic of an outcome `y` and columns `x`."""

    y: str
    x: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", names_of("x", self.x, 1, MAX_PARAMETERS - 1))

    def sample(self, past: Past) -> Sample:
        """Return the columns, and the number of the records with values in all of these."""
        return frozenset((self.y, *self.x)), int(past[0]["n"][0])

    def outcome(self, frame: Frame) -> Term:
        """Return the outcome; raise `ParameterError` if the column is none."""
        return numeric(frame, self.y)

    def design(self, frame: Frame) -> Design:
        """Return the design; raise `ParameterError` unless the columns are in the plan."""
        return Design.of(frame, self.outcome(frame), self.x)

    @property
    def name(self) -> str:
        """Name in results."""
        return f"{self.kind.replace('poisson', 'Poisson')} regression of {self.y}"
