"""What a table of results is made of: rows that can be run, beside what was published."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # a table can be listed without matplotlib
    from matplotlib.figure import Figure

__all__ = ["Below", "Picture", "Published", "Results", "Row", "Run", "Table", "Target"]

Results: TypeAlias = Mapping[str, Sequence[Mapping[str, float]]]
"""By the row's name, what its runs returned, in the order of the seeds; all rows that were run.

A run may return more figures than the table has columns: they are kept for the pictures.
"""

Picture: TypeAlias = "Callable[[Results], Figure]"
"""Draws what a table found; its ``__name__`` can serve as the file's."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a row.

    Parameters
    ----------
    seed
        Of the split and of everything drawn in the training, at least 0.
    quick
        Whether to do as little as shows that the row works: a tenth of the rounds, say. What
        comes out is then no result.
    progress
        Called with what is being done, and how many steps of how many are over.
    """

    seed: int
    quick: bool = False
    progress: Callable[[str, int, int], None] = lambda what, done, of: None


@dataclass(frozen=True)
class Published:
    """A figure of a paper: its mean and, where the paper gives it, its standard deviation."""

    mean: float
    sd: float | None = None


@dataclass(frozen=True, kw_only=True)
class Target:
    """What the mean over the seeds is to reach.

    Parameters
    ----------
    at_least, at_most
        The bounds, both included.
    """

    at_least: float = -math.inf
    at_most: float = math.inf

    def met(self, mean: float) -> bool:
        """Whether a mean lies within the bounds."""
        return self.at_least <= mean <= self.at_most


@dataclass(frozen=True)
class Below:
    """What the mean is to be relative to another row's, over the seeds that both have.

    Parameters
    ----------
    row
        The name of a row of the same table.
    margin
        How far below that row's mean it is to be at least.
    """

    row: str
    margin: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """One system on one data set.

    Parameters
    ----------
    name
        As the paper calls it, with what is particular to this row.
    data
        The data set, a name of `fedmf.data.load`; the row is left out, and said to be, where
        that cannot be loaded.
    run
        Does one run and returns its figures by metric.
    settings
        Everything that determines the figures besides seed and code, as plain JSON; results
        that were kept from other settings are not used again.
    paper, target, below
        By metric; each may lack some.
    seeds
        As many runs as the row needs at most, for what is not random; None for no limit.
    whole
        Whether only all of these `seeds` together are what the row's name says: however few
        runs are asked for, it counts as unfinished, and is not judged, before it has them.
    reason
        Why a target is missed, shown where it is.

    Raises
    ------
    ValueError
        If it is to have all of its seeds, and has no number of them.
    """

    name: str
    data: str
    run: Callable[[Run], Mapping[str, float]]
    settings: Mapping[str, object]
    paper: Mapping[str, Published] = field(default_factory=dict)
    target: Mapping[str, Target] = field(default_factory=dict)
    below: Mapping[str, Below] = field(default_factory=dict)
    seeds: int | None = None
    whole: bool = False
    reason: str = ""

    def __post_init__(self) -> None:
        if self.whole and self.seeds is None:
            raise ValueError(
                f"row {self.name!r} wants all of its seeds and does not limit them"
            )


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows that belong together.

    Parameters
    ----------
    key
        What ``python -m benches.papers --table`` calls it.
    title
        One line, with the paper and its table or section.
    metrics
        The columns, in order.
    rows
        From top to bottom.
    note
        What a reader must know: how it was measured, where it differs from the paper.
    pictures
        Each draws the results in a way of its own, and copes with rows that were not run.
    findings
        Returns what follows from the runs beyond a row's mean, in lines shown below the table;
        copes with rows that were not run.
    """

    key: str
    title: str
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""
    pictures: tuple[Picture, ...] = ()
    findings: Callable[[Results], Sequence[str]] = lambda results: ()

    def __post_init__(self) -> None:
        names = {row.name for row in self.rows}
        for row in self.rows:
            for below in row.below.values():
                if below.row not in names:
                    raise ValueError(f"{row.name} is to be below {below.row}, which is no row")
