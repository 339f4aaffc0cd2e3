"""All doors, by short names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from lying.door import Door
from lying.helpers import HelperDoor
from lying.sessions import SessionDoor

DOORS: dict[str, Callable[[], Door]] = {
    "take_part": partial(SessionDoor, keyed=True, one_shot=False),
    "take_part-one-shot": partial(SessionDoor, keyed=True, one_shot=True),
    "take_part-semi-honest": partial(SessionDoor, keyed=False, one_shot=False),
    "take_part-one-shot-semi-honest": partial(SessionDoor, keyed=False, one_shot=True),
    "helpers": HelperDoor,
}
if find_spec("flwr"):
    from lying.flower import FlowerDoor
    from lying.recommender import RecommenderDoor

    DOORS |= {
        "flower": partial(FlowerDoor, keyed=True, one_shot=False),
        "flower-one-shot": partial(FlowerDoor, keyed=True, one_shot=True),
        "flower-semi-honest": partial(FlowerDoor, keyed=False, one_shot=False),
        "flower-one-shot-semi-honest": partial(FlowerDoor, keyed=False, one_shot=True),
        "fedmf": RecommenderDoor,
    }
if find_spec("nvflare"):
    from lying.flare import ExecutorDoor, FilterDoor

    DOORS |= {
        "flare-executor": partial(ExecutorDoor, keyed=True),
        "flare-filter": partial(FilterDoor, keyed=True),
        "flare-executor-semi-honest": partial(ExecutorDoor, keyed=False),
        "flare-filter-semi-honest": partial(FilterDoor, keyed=False),
    }
