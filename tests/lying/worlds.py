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
    settings: Settings,
    both: Mapping[str, object] | None = None,
) -> Pair:
    """Return a pair in which two clients swap their private sides, or both have a third one."""
    rest = dict.fromkeys(CLIENTS, SAME)
    one, other = replace(SAME, **first), replace(SAME, **second)  # type: ignore[arg-type]
    a, b = CLIENTS[:2]
    if both is None:
        return Pair(name, ({**rest, a: one, b: other}, {**rest, a: other, b: one}), settings)
    third = replace(SAME, **both)  # type: ignore[arg-type]
    return Pair(name, ({**rest, a: one, b: other}, {**rest, a: third, b: third}), settings)


def _failure(name: str) -> Pair:
    """Return a pair of a failed training against one with weight 0."""
    return _pair(name, {"failure": name}, {"weight": 0}, Settings())


USUAL = Settings()
PAIRS = (
    _pair("weights", {"weight": 3}, {"weight": 7}, USUAL.changed(max_weight=5)),
    _pair(
        "weights 3+7, 5+5",
        {"weight": 3},
        {"weight": 7},
        USUAL.changed(max_weight=6),
        {"weight": 5},
    ),
    _pair("weight above the own", {"weight": 99}, {"weight": 10}, USUAL),
    _pair("metrics", {"loss": 2.0}, {"loss": 0.01}, USUAL.changed(bound=1e-309)),
    _pair("small metrics", {"loss": 2.0}, {"loss": 0.01}, USUAL.changed(bound=0.1)),
    _pair(
        "metrics 3+1, 2+2",
        {"loss": 3.0},
        {"loss": 1.0},
        USUAL.changed(bound=2.5),
        {"loss": 2.0},
    ),
    _pair(
        "elements 6+2, 4+4",
        {"vector": (6.0, 0.0, 0.0)},
        {"vector": (2.0, 0.0, 0.0)},
        USUAL.changed(clip=5.0),
        {"vector": (4.0, 0.0, 0.0)},
    ),
    _pair(
        "fractional bits",
        {"vector": (0.25, 0.5, 0.75)},
        {"vector": (0.75, 0.5, 0.25)},
        USUAL.changed(bits=0),
    ),
    _pair(
        "clipped elements",
        {"vector": (2.0, -3.0, 0.0)},
        {"vector": (0.25, 0.25, 0.25)},
        USUAL.changed(clip=0.5),
    ),
    _pair("own clip", {"vector": (9.0, -9.0, 99.0)}, {"vector": (8.0, -8.0, 8.0)}, USUAL),
    *(
        _failure(name)
        for name in ("raises", "nan", "infinite", "shape", "no weight", "float weight")
    ),
    _pair("no metric", {"failure": "no metric", "weight": 0}, {"weight": 0}, USUAL),
)
"""All pairs; a door names those that it has."""
EVERY = frozenset(pair.name for pair in PAIRS)
UNWEIGHTED = EVERY - {name for name in EVERY if "weight" in name or "metric" in name}
"""Pairs of a door with vectors only."""
WEIGHTED = EVERY - {name for name in EVERY if "metric" in name}
"""Pairs of a door with vectors and weights."""
QUICK = frozenset({"weights", "metrics", "own clip", "raises", "nan", "no weight"})
"""Pairs of the quick tests."""
