"""Tables of results: rows that can be run, beside the published figures."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from fedmf.errors import SettingError

if TYPE_CHECKING:  # a table can be listed without matplotlib
    from matplotlib.figure import Figure

__all__ = [
    "ALL",
    "MODULES",
    "Below",
    "Picture",
    "Published",
    "Results",
    "Row",
    "Run",
    "Table",
    "Target",
    "find_row",
    "find_table",
    "resolve",
]

Named = TypeVar("Named")
ALL = "all"
MODULES: Mapping[str, str] = {
    "fedmmf-4": "benches.papers.fedmmf4",
    "fedmmf-4-lastfm": "benches.papers.fedmmf4",
    "fedmmf-4-ml-10m": "benches.papers.fedmmf4",
    "fedmmf-2": "benches.papers.masked_ratings",
    "fedmmf-3": "benches.papers.masked_ratings",
    "fedmmf-fig4": "benches.papers.masked_ratings",
    "fcf-2": "benches.papers.fcf2",
    "fcf-convergence": "benches.papers.convergence",
    "thesis-6.1": "benches.papers.thesis",
    "beyond": "benches.papers.beyond",
    "large": "benches.papers.large",
    "rounds": "benches.papers.rounds",
    "dropouts": "benches.papers.rounds",
    "fixed-point": "benches.papers.rounds",
    "secure": "benches.papers.secure",
    "end-to-end": "benches.papers.secure",
    "attacks": "benches.papers.attacks",
    "dp": "benches.papers.dp",
    "presets": "benches.papers.presets",
    "selection": "benches.papers.selection",
}
"""Modules by the key of their ``TABLE`` or one of ``TABLES``, in the order of ``--table all``.

A module is imported when one of its tables is asked for.
"""

Results: TypeAlias = Mapping[str, Sequence[Mapping[str, float]]]
"""Figures of each run by the row's name, in the order of the seeds; all rows that were run.

A run may return more figures than the table has columns: they serve the pictures.
"""

Picture: TypeAlias = "Callable[[Results], Figure]"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a row."""

    seed: int  # of the split and of all that the training draws
    quick: bool = False  # to only show that the row works: no result
    progress: Callable[[str, int, int], None] = lambda what, done, of: None

    def fewer(self, rounds: int, least: int = 1) -> int:
        """Return the number of rounds; a tenth of it, but `least`, for a quick run."""
        return max(least, rounds // 10) if self.quick else rounds


@dataclass(frozen=True)
class Published:
    """A figure of a paper: its mean and, where the paper gives it, its standard deviation."""

    mean: float
    sd: float | None = None


@dataclass(frozen=True, kw_only=True)
class Target:
    """Bounds, both included, of the mean over the seeds."""

    at_least: float = -math.inf
    at_most: float = math.inf

    def met(self, mean: float) -> bool:
        """Return whether a mean lies within the bounds."""
        return self.at_least <= mean <= self.at_most


@dataclass(frozen=True)
class Below:
    """A target relative to another row of the table, over the seeds that both have."""

    row: str
    margin: float  # the least distance of the mean below that row's


@dataclass(frozen=True, kw_only=True)
class Row:
    """One system on one data set."""

    name: str  # the paper's, and what is particular to this row
    data: str  # of `fedmf.data.load`; without it the row is left out
    run: Callable[[Run], Mapping[str, float]]  # figures by metric, as are all of these:
    paper: Mapping[str, Published] = field(default_factory=dict)
    target: Mapping[str, Target] = field(default_factory=dict)
    below: Mapping[str, Below] = field(default_factory=dict)
    seeds: int | None = None  # runs at most
    whole: bool = False  # finished, and judged, only with all of its `seeds`
    reason: str = ""  # for missing a target, shown where one is missed

    def __post_init__(self) -> None:
        if self.whole and self.seeds is None:
            raise ValueError(
                f"row {self.name!r} wants all of its seeds and does not limit them"
            )


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows that belong together."""

    key: str  # on the command line
    title: str
    metrics: tuple[str, ...]  # the columns
    rows: tuple[Row, ...]
    note: str = ""
    pictures: tuple[Picture, ...] = ()  # these and `findings` cope with rows that were not run
    findings: Callable[[Results], Sequence[str]] = lambda results: ()

    def __post_init__(self) -> None:
        names = {row.name for row in self.rows}
        for row in self.rows:
            for below in row.below.values():
                if below.row not in names:
                    raise ValueError(f"{row.name} is to be below {below.row}, which is no row")


def resolve(keys: Sequence[str], modules: Mapping[str, str]) -> dict[str, str]:
    """Return the requested keys with their modules, in the order of `modules`."""
    known = f"there are {', '.join(modules)}, and {ALL} for all of them"
    if not keys:
        raise SettingError(f"--table says which table: {known}")
    for key in keys:
        if key != ALL and key not in modules:
            close = difflib.get_close_matches(key.lower(), [*modules, ALL], n=1)
            guess = f"did you mean {close[0]}? " if close else ""
            raise SettingError(f"--table {key} is unknown: {guess}{known}")
    wanted = modules if ALL in keys else [key for key in modules if key in keys]
    return {key: modules[key] for key in wanted}


def find_table(module: str, key: str) -> Table:
    """Import a module and return its table of that key."""
    found = import_module(module)
    several: Sequence[Table] = getattr(found, "TABLES", None) or (found.TABLE,)
    return _one((table for table in several if table.key == key), key)


def find_row(table: Table, name: str) -> Row:
    """Return the row of that name; raise LookupError if there is none, or several."""
    return _one((row for row in table.rows if row.name == name), name)


def _one(found: Iterator[Named], name: str) -> Named:
    several = list(found)
    if len(several) != 1:
        raise LookupError(f"there should be one {name!r}, and there are {len(several)}")
    return several[0]
