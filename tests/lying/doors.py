"""All doors, by short names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from lying.browser import BrowserDoor
from lying.collector import CollectorDoor
from lying.door import Door
from lying.helpers import HelperDoor
from lying.sessions import SessionDoor
from report_page import NODE

DOORS: dict[str, Callable[[], Door]] = {"helpers": HelperDoor}
KINDS = {"": True, "-semi-honest": False}
"""Ends of the names of doors, and whether the clients have keys."""


def _add(name: str, door: Callable[..., Door]) -> None:
    for kind, keyed in KINDS.items():
        DOORS[name + kind] = partial(door, keyed=keyed)


_add("collector", CollectorDoor)
if NODE is not None:
    _add("browser", BrowserDoor)
for shape, one_shot in {"": False, "-one-shot": True}.items():
    _add(f"take_part{shape}", partial(SessionDoor, one_shot=one_shot))
if find_spec("flwr"):
    from lying.flower import FlowerDoor
    from lying.recommender import RecommenderDoor

    DOORS["fedmf"] = RecommenderDoor
    for shape, one_shot in {"": False, "-one-shot": True}.items():
        _add(f"flower{shape}", partial(FlowerDoor, one_shot=one_shot))
if find_spec("nvflare"):
    from lying.flare import ExecutorDoor, FilterDoor

    _add("flare-executor", ExecutorDoor)
    _add("flare-filter", FilterDoor)
