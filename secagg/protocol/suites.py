"""Suites of every sum: "hybrid" withstands a later quantum computer, "x25519" does not."""

from __future__ import annotations

from typing import Literal

from secagg.errors import ParameterError

SuiteName = Literal["hybrid", "x25519"]

NAMES: tuple[SuiteName, ...] = ("hybrid", "x25519")
"""All suites, in the order of their codes in the parameters' bytes."""


def as_suite(name: str) -> SuiteName:
    """Return the suite of a name, or raise `ParameterError`."""
    if name not in NAMES:
        raise ParameterError(f"suite must be hybrid or x25519, not {name!r}")
    return name
