"""Assumptions behind a graph: the server, and the fractions that collude or drop out."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Literal

import numpy as np

from secagg.errors import ParameterError

__all__ = ["Adversary", "check_fractions", "count", "to_adversary", "to_float"]

Adversary = Literal["semi-honest", "semi-malicious"]


def check_fractions(corrupt: float, dropout: float) -> None:
    """Raise `ParameterError` unless both are fractions in [0, 1)."""
    for name, value in (("corrupt", corrupt), ("dropout", dropout)):
        number = isinstance(value, float | int | np.integer | np.floating)
        if not number or isinstance(value, bool) or not 0 <= value < 1:
            raise ParameterError(
                f"{name} is {value!r}; it must be a fraction of the clients, from 0 to below 1"
            )


def to_float(fraction: float) -> float:
    """Return a number as the float of its shown decimal: np.float32(0.07) as 0.07.

    Its float value, 0.07000000029802322, would round up.
    """
    return float(str(fraction))


def count(fraction: float, n: int) -> int:
    """Return a fraction of n clients, rounded up; 0.07 · 100 is 7.

    The decimal that was written is meant, not the 7.000000000000001 of floats.
    """
    return ceil(Fraction(str(to_float(fraction))) * n)


def to_adversary(security: str) -> Adversary:
    """Return `security` as an `Adversary`; raise `ParameterError` if no graph is for it."""
    if security == "semi-honest":
        return "semi-honest"
    if security == "semi-malicious":
        return "semi-malicious"
    if security == "active":
        raise ParameterError(
            "security 'active' has no graph, because a lying server would draw it; take "
            "neighbours=None and a threshold above two thirds of n"
        )
    raise ParameterError(
        f"security {security!r} has no graph; take 'semi-honest' or 'semi-malicious'"
    )
