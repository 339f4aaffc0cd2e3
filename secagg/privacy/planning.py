"""Search for the plan of noised sums that suits a budget."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from secagg._check import check_flag, check_integer
from secagg._printable import in_short
from secagg.encoding.bounded import Bounded
from secagg.errors import ParameterError
from secagg.graph.graph import CORRUPT, DROPOUT, count
from secagg.privacy.budget import Budget
from secagg.privacy.loss import GRAIN
from secagg.privacy.planned import Plan
from secagg.protocol.noise import LARGEST_SHARE, LEAST_SHARE, STEPS

_MOST_STEPS = 1 << 30
_BITS = range(2, 63)
_COST = 1.02
"""Largest factor of the error by which rounding is worth fewer bits."""


def plan(
    n_clients: int,
    length: int,
    *,
    norm: float,
    epsilon: float,
    delta: float,
    rounds: int = 1,
    min_survivors: int | None = None,
    colluders: int | None = None,
    bits: int | None = None,
    count_clipped: bool = False,
) -> Plan:
    """Find the noise, the steps and the bits for a budget.

    Parameters
    ----------
    n_clients : int
        n, 3 to 2^20.
    length : int
        d, elements of a vector, at most 2^30.
    norm : float
        C, the L2 norm to which clients clip their vectors, 2^−100 ≤ C ≤ 2^100.
    epsilon, delta : float
        Budget of all sums together, for a client's vectors or zeros in their place, against
        the parties that `against` names for the parameters.
    rounds : int
        Number of sums, attempts that fail after the masked inputs included.
    min_survivors : int, optional
        m, the fewest clients of a sum. By default a tenth of n may drop out.
    colluders : int, optional
        c ≤ m − 2, clients that tell the server their shares. By default a fifth of n.
    bits : int, optional
        Bits of an element, 2 to 62. By default the fewest with which rounding costs at most
        2 % of the error.
    count_clipped : bool
        True: an element of each sum counts the clipped vectors, with noise.

    Raises
    ------
    ParameterError
        An argument is out of range, or no plan has so few bits.
    MissingExtra
        dp-accounting is not installed: ``pip install "secagg[privacy]"``.
    """
    check_integer("n_clients", n_clients, 3, 1 << 20)
    check_integer("length", length, 1, 1 << 30)
    check_integer("rounds", rounds, 1, 1 << 30)
    check_flag("count_clipped", count_clipped)
    norm = Bounded(norm, 1).norm
    if bits is not None:
        check_integer("bits", bits, _BITS[0], _BITS[-1])
    m = n_clients - count(DROPOUT, n_clients) if min_survivors is None else min_survivors
    check_integer("min_survivors", m, 2, n_clients)
    c = count(CORRUPT, n_clients) if colluders is None else colluders
    check_integer("colluders", c, 0, n_clients)
    if c > m - 2:
        raise ParameterError(
            f"colluders is {c}, but at most {m - 2} of {m} survivors may tell their noise; "
            "take fewer colluders, or more survivors"
        )
    budget = Budget(epsilon, delta)
    if budget.squares <= rounds * Fraction(2, GRAIN):
        raise ParameterError(
            f"epsilon {in_short(epsilon)} and delta {in_short(delta)} are out of range for "
            f"{rounds} sums; take epsilon below 30, a larger delta, or fewer rounds"
        )
    start = Plan(n_clients, length, rounds, m, c, norm, budget, count_clipped, 1, _BITS[0])
    for width in _BITS if bits is None else [bits]:
        found = _finest(replace(start, modulus_bits=width))
        if found and (bits is not None or found.factors["rounding"] <= _COST):
            return found
    few = "no number of bits holds" if bits is None else f"{bits} bits do not hold"
    raise ParameterError(
        f"{few} sums within epsilon {in_short(epsilon)} and delta {in_short(delta)} for "
        f"rounds={rounds}; take more bits, fewer rounds, a larger delta, or a larger epsilon "
        "below 30"
    )


def _finest(start: Plan) -> Plan | None:
    """Return the plan of the most steps that fit into a plan's bits, if any is private."""
    low, high = 0, _MOST_STEPS
    while low < high:
        middle = (low + high + 1) // 2
        fits = replace(start, steps=middle).smallest_modulus <= 1 << start.modulus_bits
        low, high = (middle, high) if fits else (low, middle - 1)
    if not low:
        return None
    found = replace(start, steps=low)
    enough = LEAST_SHARE <= found.share * STEPS <= LARGEST_SHARE
    return found if enough and found.budget.allows(found.loss) else None
