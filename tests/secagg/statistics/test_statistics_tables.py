"""Random tables over sites against exact pooled computation in fractions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg.statistics import (
    Category,
    Counts,
    Covariance,
    Histogram,
    Linear,
    Moments,
    Number,
    Plan,
    Quantiles,
    Result,
    Site,
    SitePolicy,
    Study,
    Survival,
    simulate,
)
from secagg.statistics.columns import decimal_text

ANY = SitePolicy(min_count=1, min_sites=1, records_per_parameter=1)
LEAST = {"min_count": 1, "min_sites": 1, "records_per_parameter": 1}
GRIDS = [
    Number(0, 1),
    Number(0, 3),
    Number("-0.5", "0.5", "0.1"),
    Number(0, 100, "0.01"),
    Number(-1_000_000, 1_000_000, "0.001"),
    Number(0, 2**31 - 1),
    Number("1e9", "1000000001", "0.001"),
    Number("-1e-12", "1e-12", "1e-20"),
    Number("-1e24", "1e24", "1e18"),
    Number("1e15", "1000000000000100"),
]
GROUPS = ("a", "b", "c")
Points = list[int | None]


@dataclass(frozen=True)
class Case:
    """Columns of points, None for missing values, with the site of each record."""

    grids: dict[str, Number]
    points: dict[str, Points]
    group: Points
    sites: list[int]

    @property
    def columns(self) -> dict[str, Any]:
        return {**self.grids, "g": Category(GROUPS)}

    def values(self, name: str) -> list[float | None]:
        """Values of points; those beyond an end of the grid are clipped by the site."""
        grid = self.grids[name]
        return [None if p is None else grid.value(p) for p in self.points[name]]

    def tables(self, sites: Sequence[int] | None = None) -> list[dict[str, list[Any]]]:
        """Table of each site."""
        sites = self.sites if sites is None else sites
        whole: dict[str, list[Any]] = {name: self.values(name) for name in self.grids}
        whole["g"] = [None if code is None else GROUPS[code] for code in self.group]
        return [
            {name: [v for v, s in zip(column, sites, strict=True) if s == k]
             for name, column in whole.items()}
            for k in range(max(sites) + 1)
        ]  # fmt: skip

    def clipped(self, name: str) -> Points:
        """Points of a column on the grid."""
        units = self.grids[name].units
        return [None if p is None else min(max(p, 0), units) for p in self.points[name]]

    def exact(self, *names: str, group: int | None = None) -> list[tuple[Fraction, ...]]:
        """Exact values of the records that have all of some columns."""
        columns = [self.clipped(name) for name in names]
        starts = [self.grids[name] for name in names]
        return [
            tuple(g.start + g.step * p for g, p in zip(starts, row, strict=True))
            for row, code in zip(zip(*columns, strict=True), self.group, strict=True)
            if None not in row and (group is None or code == group)
        ]


@st.composite
def cases(draw: st.DrawFn, names: str = "x") -> Case:
    size, grids, points = draw(st.integers(1, 40)), {}, {}
    for name in names:
        grid = grids[name] = draw(st.sampled_from(GRIDS))
        few = draw(st.booleans())  # ties, constant columns, and both ends
        inside = st.integers(0, min(grid.units, 2) if few else grid.units)
        beyond = st.sampled_from([-grid.units, grid.units, 2 * grid.units])
        point = st.one_of(inside, inside, inside, inside, st.none(), beyond)
        points[name] = draw(st.lists(point, min_size=size, max_size=size))
    code = st.one_of(st.none(), st.integers(0, 2))
    group = draw(st.lists(code, min_size=size, max_size=size))
    site = st.integers(0, draw(st.sampled_from([0, 1, 2, 2, 2, 3, 3, 39])))
    return Case(grids, points, group, draw(st.lists(site, min_size=size, max_size=size)))


def run(case: Case, statistics: Sequence[Any], way: Any = "plain") -> Result:
    plan = Plan("t", case.columns, tuple(statistics), **LEAST)
    return simulate(plan, case.tables(), way=way, policy=ANY)


def moments_of(values: Sequence[Fraction]) -> list[float | None]:
    """Mean, standard deviation, standard error and skewness."""
    n = len(values)
    mean = sum(values) / Fraction(n)
    second, third = (sum((v - mean) ** k for v in values) / Fraction(n) for k in (2, 3))
    sd = math.sqrt(second * n / (n - 1)) if n > 1 else None
    skew = math.copysign(math.sqrt(third**2 / second**3), third) if second else None
    return [float(mean), sd, None if sd is None else sd / math.sqrt(n), skew]


def same(found: Sequence[Any], wanted: Sequence[Any], tolerance: float = 1e-12) -> bool:
    return all(
        a == b or (None not in (a, b) and math.isclose(a, b, rel_tol=tolerance))
        for a, b in zip(found, wanted, strict=True)
    )


@given(cases(), st.data())
@examples(900)
def test_counts_moments_and_quantiles_of_random_tables(case: Case, data: st.DataObject) -> None:
    grid = case.grids["x"]
    cut = st.integers(1, grid.units)
    edges = sorted(data.draw(st.sets(cut, min_size=1, max_size=5)))
    texts = [decimal_text(grid.start + grid.step * edge) for edge in edges]
    histogram = Histogram("x", texts, by="g")
    shares = data.draw(st.lists(st.sampled_from([0.01, 0.1, 0.25, 0.5, 0.75, 0.99]),
                                min_size=1, max_size=3, unique=True))  # fmt: skip
    asked = Quantiles("x", tuple(shares), data.draw(st.integers(2, 30)), by="g")
    statistics = [Moments("x"), Moments("x", by="g"), Counts(("g",)), histogram, asked]
    many = len(set(case.sites)) == max(case.sites) + 1 > 2
    secure = many and data.draw(st.integers(0, 19)) == 7
    result = run(case, statistics, "secagg" if secure else "plain")
    points = case.clipped("x")
    rows = [result["moments of x"].rows[0], *(r[1:] for r in result["moments of x by g"].rows)]
    for code, row in zip((None, 0, 1, 2), rows, strict=True):
        values = [v for (v,) in case.exact("x", group=code)]
        here = [
            site for site, p, g in zip(case.sites, points, case.group, strict=True)
            if p is not None and code in (None, g)
        ]  # fmt: skip
        assert row[:2] == (len(values), len(set(here)))
        assert same(row[2:], moments_of(values) if values else [None] * 4)
    parts = list(zip(points, case.group, strict=True))
    cuts = [0, *edges, grid.units + 1]
    wanted, bins = list[tuple[str, int]](), list[tuple[str, int]]()
    for code, name in zip((0, 1, 2, None), (*GROUPS, "(missing)"), strict=True):
        wanted.append((name, case.group.count(code)))
        inside = [p for p, g in parts if g == code]
        counts = [
            sum(a <= p < b for p in inside if p is not None)
            for a, b in itertools.pairwise(cuts)
        ]
        # a row of missing values is there if a value is missing
        bins += [(name, n) for n in counts if n or code is not None]
        bins += [(name, inside.count(None))] if None in inside else []
    assert [row[:2] for row in result["counts of g"].rows] == wanted[: 3 + bool(wanted[3][1])]
    assert [(row[0], row[2]) for row in result["histogram of x by g"].rows] == bins
    for i, row in enumerate(result["quantiles of x by g"].rows):
        known = sorted(p for p, g in parts if p is not None and g == i // len(shares))
        assert row[2] == (len(known) or None)
        if known:
            share = Fraction(str(shares[i % len(shares)]))
            exact = grid.value(known[max(1, math.ceil(share * len(known))) - 1])
            assert float(str(row[4])) <= exact <= float(str(row[5]))


@given(cases("xzy"), st.booleans())
@examples(900)
def test_covariance_and_least_squares_of_random_tables(case: Case, grouped: bool) -> None:
    names = ("x", "z", "g") if grouped else ("x", "z")
    result = run(case, [Covariance(("x", "z", "y")), Linear("y", names), Counts(("g",))])
    rows = case.exact("x", "z", "y")
    name, n = "covariance of x, z, y", len(rows)
    if n < 2:
        assert name in result.problems
    else:
        means = [sum(column) / Fraction(n) for column in zip(*rows, strict=True)]
        for i, row in enumerate(result[name].rows):
            exact = [
                float(sum((r[i] - means[i]) * (r[j] - means[j]) for r in rows) / (n - 1))
                for j in range(3)
            ]
            assert list(row[1:]) == exact
    design = [
        (
            [
                Fraction(1),
                x,
                z,
                *([Fraction(code == 1), Fraction(code == 2)] if grouped else []),
            ],
            y,
        )
        for code in ((0, 1, 2) if grouped else (None,))
        for x, z, y in case.exact("x", "z", "y", group=code)
    ]
    fitted = least_squares(design)
    name = "linear regression of y"
    assert (fitted is None) == (name in result.problems)
    if fitted is not None:
        assert same([row[1] for row in result[name].rows], [b for b, _ in fitted])
        assert same([row[2] for row in result[name].rows], [s for _, s in fitted])


def least_squares(design: list[tuple[list[Fraction], Fraction]]) -> Any:
    """Coefficients and standard errors by Gauss–Jordan; None if there are none."""
    if not design or len(design) <= (p := len(design[0][0])):
        return None
    constant = [len({row[j] for row, _ in design}) == 1 for j in range(1, p)]
    xx = [[sum(a[i] * a[j] for a, _ in design) for j in range(p)] for i in range(p)]
    xy = [sum(a[i] * y for a, y in design) for i in range(p)]
    rows = [[*xx[i], xy[i], *(Fraction(i == j) for j in range(p))] for i in range(p)]
    for k in range(p):
        pivot = next((i for i in range(k, p) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(p):
            if i != k and rows[i][k]:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    beta = [row[p] for row in rows]
    rest = sum((y - sum(b * x for b, x in zip(beta, a, strict=True))) ** 2 for a, y in design)
    if not rest or any(constant) or len({y for _, y in design}) == 1:
        return None
    scale = rest / (len(design) - p)
    return [(float(beta[j]), math.sqrt(scale * rows[j][p + 1 + j])) for j in range(p)]


@given(cases("xz"), st.data())
@examples(200)
def test_sums_do_not_depend_on_the_split_among_sites(case: Case, data: st.DataObject) -> None:
    statistics = (
        Moments("x", by="g"),
        Quantiles("x", bins=3),
        Covariance(("x", "z")),
        Linear("z", ("x", "g")),
        Counts(("g",)),
    )
    plan = Plan("t", case.columns, statistics, **LEAST)
    other = data.draw(st.permutations(case.sites))
    found = []
    for sites in (case.sites, other, [0] * len(other)):
        study = Study(plan)
        makers = [Site(table, plan, policy=ANY) for table in case.tables(sites)]
        while not study.ended:
            message = study.message()
            # a site more or less changes the numbers of sites only
            study = study.then(np.sum([site(message) for site in makers], axis=0))
        found.append(
            [
                {key: (value[:1] if key == "n" and i in (3, 4) else value).tolist()
                 for key, value in sums.items() if key not in ("sites", "spread")}
                for i, part in enumerate(study.sums) for sums in part
            ]
        )  # fmt: skip
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("way", ["secagg", "one-shot", "paillier"])
def test_all_ways_have_the_same_integers(way: Any) -> None:
    rng = np.random.default_rng(5)
    tables = [
        {
            "x": rng.normal(50, 9, 40).round(1),
            "t": rng.integers(1, 9, 40),
            "y": rng.integers(0, 2, 40),
        }
        for _ in range(4)
    ]
    columns = {"x": Number(0, 100, "0.1"), "t": Number(0, 9), "y": Category([0, 1])}
    statistics = [Moments("x"), Quantiles("x"), Survival("t", "y", [2, 4, 8])]
    plan = Plan("ways", columns, tuple(statistics))
    assert simulate(plan, tables, way=way).tables == simulate(plan, tables, way="plain").tables
