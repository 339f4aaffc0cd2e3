"""Graph of clients: complete, or a k-regular Harary graph on a random order.

Clients are put on a ring in random order, and each client is linked to the k/2 clients before
and the k/2 clients after (Bell et al. 2020, §3.2, Algorithm 2). The *holders* of a client's
shares are the client and the neighbours, by ascending ids. Holder i, counted from 0, has the
share at the point i + 1. See `recommend` for the number of neighbours.

Further functions turn the fractions of the clients that collude or drop out into numbers of
clients, and give the lowest thresholds that such colluders do not break.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Literal

from secagg._check import is_real
from secagg._printable import in_short
from secagg.errors import ParameterError

SEED_BYTES = 32


@dataclass(frozen=True)
class Graph:
    """Undirected graph of clients.

    Attributes
    ----------
    holders : mapping of id to tuple of ids, both ascending
        Ids of each client and the client's neighbours.
    """

    holders: Mapping[int, tuple[int, ...]]

    def is_connected(self, among: Collection[int]) -> bool:
        """Return True if the clients `among` are connected by edges among themselves.

        If they were not, the server could unmask the sum of each connected part.
        """
        rest = set(among)
        frontier = [rest.pop()] if rest else []
        while frontier and rest:
            reached = rest.intersection(self.holders[frontier.pop()])
            rest -= reached
            frontier.extend(reached)
        return not rest


def draw(clients: Collection[int], neighbours: int | None, seed: bytes) -> Graph:
    """Draw a graph on `clients`. The graph depends on ids and seed, not on the ids' order.

    Parameters
    ----------
    clients : collection of distinct ids
    neighbours : int or None
        k, even. None, or k ≥ len(clients) − 1, gives the complete graph.
    seed : bytes
        32 uniform bytes, which determine the order on the ring.
    """
    ids = tuple(sorted(clients))
    if neighbours is None or neighbours >= len(ids) - 1:
        return Graph(dict.fromkeys(ids, ids))
    # sorting by a digest under a fresh seed is a uniform order
    label = b"secagg/2 graph" + seed
    order = sorted(ids, key=lambda u: hashlib.sha256(label + struct.pack("<Q", u)).digest())
    reach = neighbours // 2
    ring = order[-reach:] + order + order[:reach]
    holders = {u: tuple(sorted(ring[i : i + 2 * reach + 1])) for i, u in enumerate(order)}
    return Graph({u: holders[u] for u in ids})


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


def least_threshold(colluders: int, fewest: int = 3) -> int:
    """Return the smallest t that colluders do not reach, with two honest clients in each sum.

    A sum has at least t clients, and at least `fewest`. If a single client were honest, the
    others could subtract their vectors. So t is c + 1, or c + 2 where `fewest` is below c + 2.
    """
    return colluders + (1 if fewest >= colluders + 2 else 2)


def lowest_complete(n: int, bad: int, security: Adversary) -> int:
    """Return the smallest threshold on the complete graph that `bad` corrupt clients permit.

    The result is more than half of the n holders, and more than the corrupt clients can reach.
    """
    reached = 0 if security == "semi-honest" else (n + bad) // 2
    return max(n // 2 + 1, reached + 1, least_threshold(bad))


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


@dataclass(frozen=True, eq=False)
class Recommendation(tuple[int | None, int]):
    """Pair ``k, t`` of neighbours and threshold, with the guaranteed probabilities.

    Attributes
    ----------
    neighbours : int or None
        k, even. None: the complete graph, because no smaller k is safe.
    threshold : int
        t, the smallest private threshold.
    highest_threshold : int
        Largest safe threshold; all thresholds from `threshold` to this threshold are safe. A
        higher threshold withstands more colluding clients and fewer dropouts.
    privacy_bits : float
        −log2 of the probability, over the random graph, that some client is exposed; infinite
        if the probability is 0.
    completion_bits : float
        −log2 of the probability that dropouts make some client's secret unrecoverable; infinite
        if the probability is 0.
    """

    neighbours: int | None
    threshold: int
    highest_threshold: int
    privacy_bits: float
    completion_bits: float

    # a tuple, so that type checkers know that in `k, t = …` only k can be None
    def __new__(cls, neighbours: int | None, threshold: int, *_: float) -> Recommendation:
        """Make the pair (k, t); the generated ``__init__`` sets the attributes."""
        return super().__new__(cls, (neighbours, threshold))

    def __getnewargs__(self) -> tuple[int | None, int]:
        return self.neighbours, self.threshold
