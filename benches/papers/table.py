"""Definition of tables: rows that can be run, with published figures and targets."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from fedmf.errors import SettingError

if TYPE_CHECKING:  # a table can be listed without matplotlib
    from matplotlib.figure import Figure

Picture: TypeAlias = "Figure"

ALL = "all"
TABLES_OF = {
    "fedmmf4": ("fedmmf-4", "fedmmf-4-lastfm", "fedmmf-4-ml-10m"),
    "masked_ratings": ("fedmmf-2", "fedmmf-3", "fedmmf-fig4"),
    "fcf2": ("fcf-2",),
    "ranked": ("ranking", "ranking-settings"),
    "convergence": ("fcf-convergence",),
    "toy": ("thesis-6.3",),
    "thesis": ("thesis-6.1",),
    "thesis_loss": ("thesis-6.9", "thesis-6.11"),
    "beyond": ("beyond", "large"),
    "bpmf": ("bpmf", "bpmf-secure"),
    "ease": ("ease",),
    "others": ("others",),
    "folds": ("folds",),
    "few": ("few", "sparse"),
    "rounds": ("rounds", "dropouts", "fixed-point"),
    "secure": ("secure", "end-to-end"),
    "attacks": ("attacks",),
    "dp": ("dp",),
    "selection": ("presets", "selection"),
}
MODULES: Mapping[str, str] = {
    key: f"benches.papers.{module}" for module, keys in TABLES_OF.items() for key in keys
}
"""Names of the modules by the keys of their tables, in the order of ``--table all``."""

Results: TypeAlias = Mapping[str, Sequence[Mapping[str, float]]]
"""Figures of each run, also figures for pictures only, by the name of a row that has runs."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Settings of one run of a row."""

    seed: int  # seed of the split and of all random draws
    quick: bool = False  # True only tests that the row runs: no result

    def fewer(self, rounds: int, least: int = 1) -> int:
        """Return `rounds`, or for a quick run a tenth of it, but at least `least`."""
        return max(least, rounds // 10) if self.quick else rounds


@dataclass(frozen=True)
class Mean:
    """A published or measured mean and, where there is one, its standard deviation."""

    mean: float
    sd: float | None = None


@dataclass(frozen=True, kw_only=True)
class Target:
    """Bounds within which a mean should be, both included."""

    at_least: float = -math.inf
    at_most: float = math.inf

    def met(self, mean: float) -> bool:
        """Return True if a mean lies within the bounds."""
        return self.at_least <= mean <= self.at_most


def at_most(metric: str, bound: float | None) -> dict[str, Target]:
    """Return the target of a metric with an upper bound only, or none for None."""
    return {} if bound is None else {metric: Target(at_most=bound)}


@dataclass(frozen=True)
class Below:
    """Target relative to another row of the table, by the mean over the seeds of both."""

    row: str
    margin: float  # the least distance of the mean below that row's


@dataclass(frozen=True)
class Row:
    """Row of a table: one system on one data set."""

    name: str  # the paper's, and the particulars of this row
    data: str  # of `fedmf.data.load`; without it the row is left out
    run: Callable[[Run], Mapping[str, float]]  # figures by metric, as are all of these:
    _: KW_ONLY
    paper: Mapping[str, Mean] = field(default_factory=dict)
    target: Mapping[str, Target] = field(default_factory=dict)
    below: Mapping[str, Below] = field(default_factory=dict)
    seeds: int | None = None  # runs at most
    whole: bool = False  # finished, and judged, only with all of its `seeds`
    reason: str = ""  # explanation of a missed target

    def __post_init__(self) -> None:
        if self.whole and self.seeds is None:
            raise ValueError(
                f"row {self.name!r} needs a number of seeds for its builds: set it"
            )


@dataclass(frozen=True)
class Panel:
    """Panel of a table's picture: metrics of one unit, drawn on one axis."""

    title: str
    metrics: tuple[str, ...]  # at most four
    limits: tuple[float, float] | None = None  # of the axis; by default those of the figures


@dataclass(frozen=True, kw_only=True)
class Table:
    """Table of results: rows with distinct names and common metrics."""

    key: str  # on the command line
    title: str
    metrics: tuple[str, ...]  # the columns
    rows: tuple[Row, ...]
    note: str = ""
    panels: tuple[Panel, ...] | None = None  # of its picture; None: one for each metric
    # Pictures beside it, each labelled with a description. These and the findings cope with
    # rows that were not run.
    pictures: tuple[Callable[[Results], Picture], ...] = ()
    findings: Callable[[Results], Sequence[str]] = lambda results: ()

    def __post_init__(self) -> None:
        names = {row.name for row in self.rows}
        if len(names) < len(self.rows):
            raise ValueError(f"table {self.key} has several rows of one name: rename them")
        for row in self.rows:
            for below in row.below.values():
                if below.row not in names:
                    raise ValueError(
                        f"row {row.name!r} is limited by {below.row!r}, which is no row here"
                    )


def resolve(keys: Sequence[str], modules: Mapping[str, str]) -> dict[str, str]:
    """Return the requested keys with their modules, in the order of `modules`."""
    known = f"there are {', '.join(modules)}, and {ALL} for all of them"
    if not keys:
        raise SettingError(f"--table is missing: {known}")
    for key in keys:
        if key not in (ALL, *modules):
            close = difflib.get_close_matches(key.lower(), [*modules, ALL], n=1)
            guess = f"did you mean {close[0]}? " if close else ""
            raise SettingError(f"--table {key} is unknown: {guess}{known}")
    return {key: module for key, module in modules.items() if key in keys or ALL in keys}


def find_table(module: str, key: str) -> Table:
    """Import a module and return its table with that key; raises LookupError if it has none."""
    found = import_module(module)
    tables: Sequence[Table] = getattr(found, "TABLES", None) or (found.TABLE,)
    return {table.key: table for table in tables}[key]
