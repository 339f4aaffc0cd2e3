"""Objects and arguments that differ in the earlier releases that are measured."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

_PLACES = {
    "MaskSum": ("secagg.protocol.masks", "secagg.protocol.keys", "secagg.masks"),
    "Ring": ("secagg.encoding", "secagg.ring"),
    "simulate": ("fedmf.data.sets.simulated", "fedmf.datasets.simulated"),
}
"""Modules of an object, the newest first."""


def x25519(kind: Any) -> dict[str, Any]:
    """Return the argument for suite x25519 of a class, which earlier releases lack.

    Their rounds agree on keys by X25519 alone, so a comparison with them needs that suite.
    """
    return {"suite": "x25519"} if "suite" in signature(kind).parameters else {}


def find(name: str) -> Any:
    """Return an object of secagg or fedmf, from the module where this release has it."""
    for place in _PLACES[name]:
        try:
            return getattr(import_module(place), name)
        except ModuleNotFoundError as error:
            if not place.startswith(str(error.name)):
                raise  # a package that secagg needs
    raise ModuleNotFoundError(f"no module has {name}", name=name)
