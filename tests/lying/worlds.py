"""Pairs of worlds with equal sums and different private numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lying.door import CLIENTS, Private, Settings, World

SAME = Private((0.25, -0.5, 0.75))
"""Update of all clients, so that any weights with one sum give one sum of updates."""


@dataclass(frozen=True)
class Pair:
    """Two worlds, and the settings under which a server tries to tell them apart."""

    name: str
    worlds: tuple[World, World]
    settings: Settings


def _pair(
    name: str,
    first: Mapping[str, object],
    second: Mapping[str, object],
    both: Mapping[str, object] | None = None,
    **settings: float,
) -> Pair:
    """Return a pair in which two clients swap their private sides, or both have a third one."""
    rest, (a, b, *_) = dict.fromkeys(CLIENTS, SAME), CLIENTS
    one, other = replace(SAME, **first), replace(SAME, **second)  # type: ignore[arg-type]
    swapped = {a: other, b: one}
    if both is not None:
        swapped = dict.fromkeys((a, b), replace(SAME, **both))  # type: ignore[arg-type]
    worlds = {**rest, a: one, b: other}, {**rest, **swapped}
    return Pair(name, worlds, Settings().changed(**settings))


PAIRS = (
    _pair("weights", {"weight": 3}, {"weight": 7}, max_weight=5),
    _pair("weights 3+7, 5+5", {"weight": 3}, {"weight": 7}, {"weight": 5}, max_weight=6),
    _pair("weight above the own", {"weight": 99}, {"weight": 10}),
    _pair("metrics", {"loss": 2.0}, {"loss": 0.01}, bound=1e-309),
    _pair("small metrics", {"loss": 2.0}, {"loss": 0.01}, bound=0.1),
    _pair("metrics 3+1, 2+2", {"loss": 3.0}, {"loss": 1.0}, {"loss": 2.0}, bound=2.5),
    *(
        _pair(name, *({"vector": vector} for vector in vectors), **settings)
        for name, vectors, settings in (
            ("elements 6+2, 4+4", [(x, 0.0, 0.0) for x in (6.0, 2.0, 4.0)], {"clip": 5.0}),
            ("fractional bits", [(0.25, 0.5, 0.75), (0.75, 0.5, 0.25)], {"bits": 0}),
            ("clipped elements", [(2.0, -3.0, 0.0), (0.25, 0.25, 0.25)], {"clip": 0.5}),
            ("own clip", [(9.0, -9.0, 99.0), (8.0, -8.0, 8.0)], {}),
        )
    ),
    *(
        _pair(name, {"failure": name}, {"weight": 0})  # a failed training is one of weight 0
        for name in ("raises", "nan", "infinite", "shape", "no weight", "float weight")
    ),
    _pair("no metric", {"failure": "no metric", "weight": 0}, {"weight": 0}),
)
"""All pairs; a door names those that it has."""
EVERY = frozenset(pair.name for pair in PAIRS)
WEIGHTED = EVERY - {name for name in EVERY if "metric" in name}
"""Pairs of a door with vectors and weights."""
QUICK = frozenset({"weights", "metrics", "own clip", "raises", "nan", "no weight"})
"""Pairs of the quick tests."""
