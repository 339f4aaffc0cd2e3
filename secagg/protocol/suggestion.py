"""Default threshold, graph and suite of a sum: the only place where this library chooses them.

Up to `COMPLETE_UP_TO` clients, and always against a server that lies, the graph is complete.
The threshold is then 70 % of the clients, or against a lying server the smallest number above
two thirds. For more clients `secagg.graph.recommend` finds both. See docs/parameters.md.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor, inf
from typing import Literal

from secagg._check import check_integer, is_integer
from secagg.errors import ParameterError
from secagg.graph import Recommendation, recommend
from secagg.graph.graph import (
    CORRUPT,
    DROPOUT,
    Adversary,
    check_fractions,
    count,
    least_threshold,
    lowest_complete,
    to_float,
)
from secagg.protocol.kem import KEY_BYTES as KEM_KEY_BYTES
from secagg.protocol.suites import SuiteName

COMPLETE_UP_TO = 100
"""Number of clients up to which the complete graph is cheap."""
HYBRID_UP_TO = 300
"""Number of clients up to which a server keeps the boxes of suite hybrid in little memory."""
HYBRID_BYTES_A_PEER = 1216
"""Bytes that a client sends more for each peer: in its box, a check and a deposit."""


def seventy_percent(n: int) -> int:
    """Return ⌈0.7 n⌉."""
    return -(-7 * n // 10)


def suggest_graph(
    n: int,
    corrupt: float = CORRUPT,
    dropout: float = DROPOUT,
    security: Adversary | Literal["active"] = "semi-honest",
    sigma: int = 40,
    eta: int = 30,
    *,
    complete: bool = False,
) -> Recommendation:
    """Return the neighbours and the threshold of a round of n clients.

    See `secagg.graph.recommend` for the parameters; `sigma` and `eta` concern sparse graphs
    only. "active" stands for a server that may lie, which requires the complete graph.
    `complete` demands that graph in any case.

    Raises
    ------
    ParameterError
        A value is out of range, or no graph is safe under such assumptions.
    """
    _check_clients(n)
    check_integer("sigma", sigma, 1, 128)
    check_integer("eta", eta, 1, 128)
    if n > COMPLETE_UP_TO and security != "active" and not complete:
        found = recommend(n, corrupt, dropout, security, sigma, eta)
        # the finder may say that only the complete graph is safe
        if found.neighbours is not None:
            return found
    check_fractions(corrupt, dropout)
    n = int(n)
    bad, gone = count(corrupt, n), count(dropout, n)
    if security == "active":  # two thirds against liars, half of the others against lists
        wanted = least = max(2 * n // 3 + 1, lowest_complete(n, bad, "semi-malicious"))
    else:
        wanted, least = seventy_percent(n), lowest_complete(n, bad, security)
    threshold = _between(wanted, least, n, bad, dropout)
    completion = inf if threshold <= n - gone else 0.0
    return Recommendation(None, threshold, max(threshold, n - gone), inf, completion)


def suggest_pair(
    n: int,
    corrupt: float,
    dropout: float,
    security: Literal["semi-honest", "active"],
    neighbours: int | Literal["auto"] | None,
    threshold: int | None,
    sigma: int = 40,
) -> tuple[int | None, int]:
    """Return k and t, with the caller's choices kept; see `RoundParams.suggest`."""
    _check_clients(n)
    k: int | None
    if neighbours == "auto":
        k, t = suggest_graph(n, corrupt, dropout, security, sigma)
    elif neighbours is not None:
        check_integer("neighbours", neighbours, 2, 1 << 20)
        k = int(neighbours)
        t = min(k, seventy_percent(k + 1))
    elif threshold is None:
        k, t = suggest_graph(n, corrupt, dropout, security, sigma, complete=True)
    else:
        k, t = None, threshold
    return k, t if threshold is None else threshold


def suggest_suite(n: int, holders: int, packed: int) -> SuiteName:
    """Return the suite of a four-exchange sum whose parameters name none.

    Parameters
    ----------
    n : int
        Largest number of clients.
    holders : int
        h, the holders of each client's secrets, the client included.
    packed : int
        Bytes of a masked vector.

    Returns
    -------
    "hybrid" or "x25519"
        "hybrid" if n is at most `HYBRID_UP_TO` and a client sends fewer bytes more than the
        vector has: 1,184 for the key and 1,216 for each other holder.
    """
    return "hybrid" if n <= HYBRID_UP_TO and hybrid_bytes(holders) < packed else "x25519"


def hybrid_bytes(holders: int) -> int:
    """Return the bytes that a client sends more in suite hybrid, of `holders` holders."""
    return KEM_KEY_BYTES + (holders - 1) * HYBRID_BYTES_A_PEER


def _check_clients(n: int) -> None:
    if is_integer(n) and n == 2:  # an array or a duration could not be compared
        raise ParameterError(
            "n is 2: each client would learn the other's input; take 3 or more, or accept "
            "that: RoundParams(n_clients=2, threshold=2, …, allow_two_clients=True)"
        )
    check_integer("n", n, 3, 1 << 20)


def suggest_fewest(n: int, corrupt: float = CORRUPT, dropout: float = DROPOUT) -> int:
    """Return the smallest number of clients, of n, that a one-shot sum is opened for.

    n is from 2 to 2^20. The number is ⌈0.7 n⌉, at least 3 and at most n. Raise
    `ParameterError` if no sum of n clients has two honest vectors.
    """
    check_fractions(corrupt, dropout)
    least = fewest_hiding(n, corrupt)
    return _between(max(least, seventy_percent(n)), least, n, count(corrupt, n), dropout)


def fewest_hiding(n: int, corrupt: float = CORRUPT) -> int:
    """Return the smallest number of clients, of n, with two honest vectors in their sum.

    The number is at least 3, or 2 for n = 2. Raise `ParameterError` if n clients are too few.
    """
    colluders = count(corrupt, n)
    if colluders + 2 > n:
        raise ParameterError(
            f"with {colluders} of {n} clients corrupt no sum has two honest vectors; lower "
            "corrupt, or add clients"
        )
    return min(n, max(3, least_threshold(colluders)))


def _between(wanted: int, least: int, n: int, bad: int, dropout: float) -> int:
    """Return `wanted`, at least `least` and at most the clients that stay, or raise."""
    # rounded down: the most clients that stay
    most = n - floor(Fraction(str(to_float(dropout))) * n)
    if least > most:
        raise ParameterError(
            f"with {bad} of {n} clients corrupt and {n - most} dropping out no sum is safe: "
            f"{least} clients must be in it, but only {most} stay; lower corrupt or dropout, "
            "or add clients"
        )
    return min(max(wanted, least), most)
