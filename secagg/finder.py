"""How many neighbours, and which threshold: the smallest graph that is safe.

Bell et al. 2020, section 3, with exact tails in place of their bounds; docs/parameters.md has
the derivation and the figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Literal

import numpy as np

from secagg import tails
from secagg.errors import ParameterError
from secagg.params import check_integer

__all__ = [
    "Adversary",
    "Recommendation",
    "check_fractions",
    "is_private",
    "privacy_bits",
    "recommend",
]

Adversary = Literal["semi-honest", "semi-malicious"]


@dataclass(frozen=True)
class Recommendation:
    """The neighbours k and the threshold t to take; unpacks as ``k, t``.

    Attributes
    ----------
    neighbours : int or None
        k, even. None: the complete graph, where the cohort is too small for less.
    threshold : int
        t, the smallest that is private.
    highest_threshold : int
        Any threshold from `threshold` to this one keeps both promises; a higher one withstands
        more colluding clients and fewer dropouts.
    privacy_bits : float
        −log2 of the probability, over the graph, that a client is exposed; infinite where it
        cannot happen.
    completion_bits : float
        −log2 of the probability that dropouts leave some client's secret beyond recovery.
    """

    neighbours: int | None
    threshold: int
    highest_threshold: int
    privacy_bits: float
    completion_bits: float

    def __iter__(self) -> Iterator[int | None]:
        """Yield k and t, as ``RoundParams(neighbours=k, threshold=t)`` takes them."""
        return iter((self.neighbours, self.threshold))


def recommend(
    n: int,
    corrupt: float,
    dropout: float,
    security: Adversary = "semi-honest",
    sigma: int = 40,
    eta: int = 30,
) -> Recommendation:
    """Find the fewest neighbours, and for them the smallest threshold, that are safe.

    Parameters
    ----------
    n : int
        The clients that advertise keys (3 ≤ n ≤ 2^20). If fewer do, it is as safe, but for
        less than half a bit that rounding up can cost.
    corrupt, dropout : float
        The largest fractions of them that collude with the server, and that vanish after they
        have advertised keys; 0 ≤ corrupt, dropout and corrupt + dropout < 1. Counts are
        rounded up. Who they are must not depend on the graph.
    security : "semi-honest" or "semi-malicious"
        Semi-malicious: the server draws the graph and hands on keys and shares honestly, and
        later asks different clients for different kinds of share. Then no client's two secrets
        are rebuilt together. That such a server pretends that clients have dropped out, to
        unmask a part of the sum or even one vector, is not excluded by a choice of (k, t).
    sigma : int
        Some client is exposed with probability at most 2^−sigma (1 to 128).
    eta : int
        The round fails with probability at most 2^−eta (1 to 128).

    Returns
    -------
    Recommendation

    Raises
    ------
    ParameterError
        A value is out of range, or not even the complete graph is safe.

    Notes
    -----
    Bell et al. 2020, section 3, by exact tails: `secagg.tails`.
    """
    check_integer("n", n, 3, 1 << 20)
    check_integer("sigma", sigma, 1, 128)
    check_integer("eta", eta, 1, 128)
    bad, gone = _counts(n, corrupt, dropout, security)
    return _search(int(n), bad, gone, security, int(sigma), int(eta))


def privacy_bits(
    n: int,
    neighbours: int | None,
    threshold: int,
    corrupt: float,
    dropout: float,
    security: Adversary = "semi-honest",
) -> float:
    """Return −log2 of the probability that the graph exposes some client.

    Parameters
    ----------
    n, corrupt, dropout, security
        As of `recommend`.
    neighbours : int or None
        k; None, or n − 1 or more, for the complete graph.
    threshold : int
        t.

    Returns
    -------
    float
        0 if nothing is promised, infinite if it cannot happen.

    Raises
    ------
    ParameterError
        A value is out of range.
    """
    return tails.bits(_exposure(n, neighbours, threshold, corrupt, dropout, security))


def is_private(
    n: int,
    neighbours: int | None,
    threshold: int,
    corrupt: float,
    dropout: float,
    sigma: int,
) -> bool:
    """Tell, without rounding, whether a semi-honest server is kept to `sigma` bits or more."""
    exposure = _exposure(n, neighbours, threshold, corrupt, dropout, "semi-honest")
    return exposure <= Fraction(1, 1 << sigma)


def _exposure(
    n: int,
    neighbours: int | None,
    threshold: int,
    corrupt: float,
    dropout: float,
    security: Adversary,
) -> Fraction:
    check_integer("n", n, 2, 1 << 20)
    check_integer("threshold", threshold, 1, 1 << 20)
    if neighbours is not None:
        check_integer("neighbours", neighbours, 2, 1 << 20)
    bad, gone = _counts(n, corrupt, dropout, security)
    k = n - 1 if neighbours is None else min(neighbours, n - 1)
    return _not_private(int(n), int(k), int(threshold), bad, gone, security)


@lru_cache(maxsize=256)
def _not_private(
    n: int, k: int, threshold: int, bad: int, gone: int, security: Adversary
) -> Fraction:
    """Bound the probability that E1 or E2 fails; remembered, for every client asks."""
    if n - bad - gone < 2:
        return Fraction(1)  # the sum of the honest is the vector of one
    limit = _corrupt_limit(k, threshold, security)
    if k == n - 1:  # nothing is left to chance
        return Fraction(bad >= limit)
    leak = tails.too_many_corrupt(n, bad, k, limit)
    return min(Fraction(1), leak + tails.in_pieces(n, bad + gone, k))


def _corrupt_limit(k: int, threshold: int, security: Adversary) -> int:
    """Return how many corrupt neighbours it takes to expose a client.

    Semi-honest: t of them rebuild the secret that the others keep. Semi-malicious: x corrupt
    ones give both kinds of share, each of the k − x others and the client itself one kind, so
    that both secrets have t shares once 2t ≤ 2x + (k − x) + 1.
    """
    return threshold if security == "semi-honest" else max(0, 2 * threshold - k - 1)


@lru_cache(maxsize=64)
def _search(
    n: int, bad: int, gone: int, security: Adversary, sigma: int, eta: int
) -> Recommendation:
    exposed, fails = Fraction(1, 1 << sigma), Fraction(1, 1 << eta)
    highest = 1
    for k in range(2, n - 1, 2) if n - bad - gone >= 2 else ():
        # two more neighbours never lower the highest threshold that dropouts allow
        while highest < k and tails.few_left(n, gone, k, highest + 1) <= fails:
            highest += 1
        if highest < 2 or tails.in_pieces(n, bad + gone, k) > exposed:
            continue
        t = highest
        if _not_private(n, k, t, bad, gone, security) > exposed:
            continue
        while t > 2 and _not_private(n, k, t - 1, bad, gone, security) <= exposed:
            t -= 1
        return Recommendation(
            k,
            t,
            highest,
            tails.bits(_not_private(n, k, t, bad, gone, security)),
            tails.bits(tails.few_left(n, gone, k, t)),
        )
    return _complete(n, bad, gone, security)


def _complete(n: int, bad: int, gone: int, security: Adversary) -> Recommendation:
    """Return the complete graph's thresholds; nothing there is left to chance."""
    # more than half of the n holders, always; and beyond the reach of the corrupt
    lowest = max(n // 2, bad if security == "semi-honest" else (n + bad) // 2) + 1
    highest = n - gone
    if n - bad - gone < 2:
        why = "fewer than two are left, whose sum is one client's vector"
    elif lowest > highest:
        why = f"it takes a threshold of {lowest}, and {highest} are sure to answer"
    else:
        why = ""
    if why:
        raise ParameterError(
            f"with {bad} of {n} clients corrupt and {gone} dropping out, not even the complete "
            f"graph is safe: {why}; expect less of both, or gather more clients"
        )
    return Recommendation(None, lowest, highest, float("inf"), float("inf"))


def check_fractions(corrupt: float, dropout: float) -> None:
    """Refuse fractions of the clients that are none.

    Raises
    ------
    ParameterError
        Names the fraction and its value.
    """
    for name, value in (("corrupt", corrupt), ("dropout", dropout)):
        number = isinstance(value, float | int | np.integer) and not isinstance(value, bool)
        if not number or not 0 <= value < 1:
            raise ParameterError(
                f"{name} is {value!r}; it must be a fraction of the clients, from 0 to below 1"
            )


def _counts(n: int, corrupt: float, dropout: float, security: str) -> tuple[int, int]:
    if security not in ("semi-honest", "semi-malicious"):
        raise ParameterError(
            f"security {security!r} has no graph; take 'semi-honest' or 'semi-malicious'"
        )
    check_fractions(corrupt, dropout)
    # the decimal that was written is meant: 0.07 · 100 is 7, and not the 7.000000000000001 of
    # floats, which would round up to 8
    bad, gone = (ceil(Fraction(str(float(x))) * int(n)) for x in (corrupt, dropout))
    return bad, gone
