"""Assumptions that a graph relies on: the server, and fractions that collude or drop out."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Literal

from secagg._check import is_real
from secagg._printable import in_short
from secagg.errors import ParameterError

Adversary = Literal["semi-honest", "semi-malicious"]

CORRUPT, DROPOUT = 0.2, 0.1
"""Fractions of the clients that all defaults of this library expect to collude, to drop out."""


def check_fractions(corrupt: float, dropout: float) -> None:
    """Raise `ParameterError` unless both fractions are numbers in [0, 1)."""
    for name, value in (("corrupt", corrupt), ("dropout", dropout)):
        if not is_real(value) or not 0 <= value < 1:
            raise ParameterError(
                f"{name} is {in_short(value)}; it must be a fraction of the clients, from 0 to "
                "below 1"
            )


def to_float(fraction: float) -> float:
    """Return the float of the decimal that `str` shows, for example 0.07 for np.float32(0.07).

    The exact value of that float32, 0.07000000029802322, would be rounded up to a client more.
    """
    return float(str(fraction))


@lru_cache(maxsize=256, typed=True)  # every client asks in every round
def count(fraction: float, n: int) -> int:
    """Return a fraction of n clients, rounded up, for example 7 for 0.07 and n = 100.

    The product is exact for the decimal as written; the product of floats is 7.000000000000001.
    """
    return ceil(Fraction(str(to_float(fraction))) * n)


def most_left(fraction: float, n: int) -> int:
    """Return n less a fraction of n that is rounded down: the most clients that stay."""
    return n - floor(Fraction(str(to_float(fraction))) * n)


def least_threshold(colluders: int, fewest: int = 3) -> int:
    """Return the smallest t that colluders do not reach, with two honest clients in each sum.

    A sum has at least t clients, and at least `fewest`. If a single client were honest, the
    others could subtract their vectors. So t is c + 1, or c + 2 where `fewest` is below c + 2.
    """
    return colluders + (1 if fewest >= colluders + 2 else 2)


def to_adversary(security: str) -> Adversary:
    """Return `security` if graphs support it, or raise `ParameterError`."""
    if security == "semi-honest":
        return "semi-honest"
    if security == "semi-malicious":
        return "semi-malicious"
    if security == "active":
        raise ParameterError(
            "security 'active' has no graph, because a lying server would draw it; take the "
            "complete graph and a threshold above two thirds of n"
        )
    raise ParameterError(
        f"security {security!r} has no graph; take 'semi-honest' or 'semi-malicious'"
    )
