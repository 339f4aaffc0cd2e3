"""Series of times over one size, beside the order that theory gives."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from statistics import median

from benches.speed.releases import PRESENT
from benches.speed.rows import Arguments
from benches.speed.runner import Show, Worker

ROUND = "cases.round_part"
THREADS = "threads"


@dataclass(frozen=True)
class Series:
    """Times over one size.

    Attributes
    ----------
    title : str
    axis : str
        Argument of the case that grows, or `THREADS`.
    points : tuple of int
        Its values, ascending.
    order : float
        Exponent of the theoretical order in it.
    theory : str
        That order.
    arguments : mapping
        Other arguments of the case.
    case : str
        Function of a module of this package.
    """

    title: str
    axis: str
    points: tuple[int, ...]
    order: float
    theory: str
    arguments: Arguments
    case: str = ROUND


@dataclass(frozen=True)
class Grown:
    """Series with the seconds of each repetition, by its points."""

    series: Series
    seconds: dict[int, list[float]] = field(default_factory=dict)

    @property
    def points(self) -> list[int]:
        """Sizes that were measured."""
        return list(self.seconds)

    @property
    def medians(self) -> list[float]:
        """Median seconds at each point."""
        return [median(one) for one in self.seconds.values()]


def _round(part: str, axis: str, **sizes: int | None) -> Arguments:
    whole = {"n": 50, "neighbours": 40, "length": 1000, **sizes}
    return {"part": part, "dropout": 0.1} | {k: v for k, v in whole.items() if k != axis}


_CLIENTS, _NEIGHBOURS = (250, 500, 1000, 2000, 4000), (32, 64, 128, 256)
_LENGTHS, _COMPLETE = (30_000, 100_000, 300_000, 1_000_000, 3_000_000), (50, 100, 200, 400, 800)
CORES = os.cpu_count() or 1

SERIES = (
    Series("a client, k = 40", "n", _CLIENTS, 0, "1", _round("client", "n")),
    Series("the server, k = 40", "n", _CLIENTS, 1, "n", _round("server", "n")),
    Series(
        "a client, n = 300",
        "neighbours",
        _NEIGHBOURS,
        2,
        "k²",
        _round("client", "neighbours", n=300),
    ),
    Series(
        "the server, n = 300",
        "neighbours",
        _NEIGHBOURS,
        2,
        "k²",
        _round("server", "neighbours", n=300),
    ),
    Series("a client, k = 40", "length", _LENGTHS, 1, "d", _round("client", "length")),
    Series("the server, k = 40", "length", _LENGTHS, 1, "d", _round("server", "length")),
    Series(
        "a client, complete graph",
        "n",
        _COMPLETE,
        2,
        "n²",
        _round("client", "n", neighbours=None),
    ),
    Series(
        "the server, complete graph",
        "n",
        _COMPLETE,
        2,
        "n²",
        _round("server", "n", neighbours=None),
    ),
    Series(
        "100 masks on 1,000,000 words",
        THREADS,
        tuple(1 << i for i in range(CORES.bit_length())),
        -1,
        "1 / threads",
        {"keys": 100, "length": 1_000_000, "bits": 32},
        "cases.masks",
    ),
)


def grow(series: Series, tier: str, repeats: int, show: Show, *, quick: bool = False) -> Grown:
    """Measure all points of a series once in every repetition, on one core unless `THREADS`.

    A trial takes the two smallest points. SecAggError is raised if the case fails.
    """
    grown = Grown(series, {x: [] for x in series.points[: 2 if quick else None]})
    with Worker(PRESENT, tier) as worker:
        for turn in range(repeats):
            for x, seconds in grown.seconds.items():
                show(f"{series.title}: turn {turn + 1}, {series.axis} = {x:,}")
                if series.axis == THREADS:
                    seconds.append(worker.ask(series.case, series.arguments, x))
                else:
                    sizes = {**series.arguments, series.axis: x}
                    seconds.append(worker.ask(series.case, sizes, 1))
    return grown
