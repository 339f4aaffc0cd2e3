"""Search for the smallest safe number of neighbours, and for its smallest safe threshold.

The method follows Bell et al. 2020, section 3, with exact tail probabilities in place of the
bounds in the paper. See docs/parameters.md for the derivation and figures.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from secagg._check import check_integer
from secagg.errors import ParameterError
from secagg.graph import tails
from secagg.graph.graph import (
    Adversary,
    Recommendation,
    check_fractions,
    count,
    lowest_complete,
    to_adversary,
)

MOST_SEARCHED = 1024
"""Largest number of neighbours that `remedy` tries, which takes a fraction of a second."""


def recommend(
    n: int,
    corrupt: float,
    dropout: float,
    security: Adversary = "semi-honest",
    sigma: int = 40,
    eta: int = 30,
) -> Recommendation:
    """Find the smallest safe number of neighbours, and its smallest safe threshold.

    Parameters
    ----------
    n : int
        Number of clients that advertise keys, 3 ≤ n ≤ 2^20. If only m < n come, the fractions
        below are fractions of m. Rounding up then costs up to about one bit of privacy.
    corrupt, dropout : float
        Largest fractions of the clients that collude with the server, and that drop out after
        they have advertised keys: 0 ≤ corrupt, 0 ≤ dropout, corrupt + dropout < 1. Counts are
        rounded up. Neither set may depend on the graph. If only m < n clients may come, divide
        the number of colluders by m: the same number among fewer clients costs many bits.
    security : "semi-honest" or "semi-malicious"
        Server to protect against. A semi-malicious server draws the graph and forwards messages
        honestly, but asks different clients for shares of different secrets. The threshold then
        keeps this server from rebuilding both secrets of a client. The server can still report
        false dropouts, and so unmask a part of the sum or even one vector, for any k and t.
    sigma : int
        Privacy: some client is exposed with probability at most 2^−sigma, 1 to 128.
    eta : int
        Completion: the round fails with probability at most 2^−eta, 1 to 128.

    Raises
    ------
    ParameterError
        A value is out of range, or not even the complete graph is safe.

    Notes
    -----
    Bell et al. 2020, section 3, with the exact tail probabilities of `secagg.graph.tails`.
    """
    check_integer("n", n, 3, 1 << 20)
    check_integer("sigma", sigma, 1, 128)
    check_integer("eta", eta, 1, 128)
    bad, gone = _counts(n, corrupt, dropout, security)
    return _search(int(n), bad, gone, security, int(sigma), int(eta), int(n))


def remedy(
    n: int, colluders: int, dropout: float, sigma: int, *, holders: int = 3, threshold: int = 2
) -> str:
    """Return advice for an error message: a k and t that keep `sigma` bits of privacy.

    The search ends at ``MOST_SEARCHED`` neighbours. The proposed k + 1 is at least
    `holders`, and the proposed t at least `threshold`.
    """
    bad, gone = _counts(n, 0.0, dropout, "semi-honest", colluders)
    try:
        least = (max(2, holders - 1), max(2, threshold))
        k, t = _search(n, bad, gone, "semi-honest", sigma, 30, MOST_SEARCHED, *least)
    except ParameterError:
        return "no graph of so few clients is safe enough, not even the complete one"
    if k is None and n > MOST_SEARCHED + 2:  # more may suffice; they are not tried
        return f"no graph of up to {MOST_SEARCHED} neighbours is safe enough"
    return f"take neighbours={k} and threshold={t}"


def privacy_bits(
    n: int,
    neighbours: int | None,
    threshold: int,
    corrupt: float,
    dropout: float,
    security: Adversary = "semi-honest",
    *,
    colluders: int | None = None,
) -> float:
    """Return −log2 of the probability that the graph exposes some client.

    0 bits guarantee nothing, and infinity means that no client can be exposed. Above 2048
    neighbours the result is a lower bound, close if there are more than a few bits.

    Parameters
    ----------
    n, corrupt, dropout, security
        See `recommend`; here n ≥ 2.
    neighbours : int or None
        k, 2 to 2^20. None, or a k of n − 1 or more, means the complete graph.
    threshold : int
        t, 1 to 2^20.
    colluders : int, optional
        Number of colluding clients, 0 to 2^20, in place of the fraction `corrupt`.

    Raises
    ------
    ParameterError
        A value is out of range.
    """
    question = _question(n, neighbours, threshold, corrupt, dropout, security, colluders)
    return tails.bits(_not_private(*question))


def is_private(
    n: int,
    neighbours: int | None,
    threshold: int,
    corrupt: float,
    dropout: float,
    sigma: int,
    security: Adversary = "semi-honest",
    *,
    colluders: int | None = None,
) -> bool:
    """Return True if the server exposes a client with probability ≤ 2^−sigma.

    See `privacy_bits` for the parameters. The answer is exact up to 2048 neighbours. Above,
    close cases give False. So the work stays bounded, whatever parameters a server proposes.
    """
    question = _question(n, neighbours, threshold, corrupt, dropout, security, colluders)
    return decide(*question, int(sigma))


def _question(
    n: int,
    neighbours: int | None,
    threshold: int,
    corrupt: float,
    dropout: float,
    security: Adversary,
    colluders: int | None,
) -> tuple[int, int, int, int, int, Adversary]:
    check_integer("n", n, 2, 1 << 20)
    check_integer("threshold", threshold, 1, 1 << 20)
    if neighbours is not None:
        check_integer("neighbours", neighbours, 2, 1 << 20)
    bad, gone = _counts(n, corrupt, dropout, security, colluders)
    k = n - 1 if neighbours is None else min(neighbours, n - 1)
    return int(n), int(k), int(threshold), bad, gone, security


@lru_cache(maxsize=256)
def _not_private(
    n: int, k: int, threshold: int, bad: int, gone: int, security: Adversary
) -> Fraction:
    """Bound the probability that E1 or E2 fails (see `tails`); cached for many clients."""
    if n - bad - gone < 2:
        return Fraction(1)  # the honest clients' sum is one vector
    limit = corrupt_limit(k, threshold, security)
    if k == n - 1:  # on the complete graph nothing is random
        return Fraction(bad >= limit)
    leak = tails.too_many_corrupt(n, bad, k, limit)
    return min(Fraction(1), leak + tails.in_pieces(n, bad + gone, k))


@lru_cache(maxsize=256)
def decide(
    n: int, k: int, threshold: int, bad: int, gone: int, security: Adversary, sigma: int
) -> bool:
    """Return True if `_not_private` ≤ 2^−sigma, if possible without the long sums."""
    if n - bad - gone < 2:
        return False
    limit, bound = corrupt_limit(k, threshold, security), Fraction(1, 1 << sigma)
    if k == n - 1:
        return bad < limit
    # E1 alone may decide, before E2 is computed
    if not tails.is_rare(n, bad, k, limit, bound):
        return False
    rest = bound - tails.in_pieces(n, bad + gone, k)
    return rest >= 0 and tails.is_rare(n, bad, k, limit, rest)


def corrupt_limit(k: int, threshold: int, security: Adversary) -> int:
    """Return the number of corrupt neighbours that exposes a client.

    Semi-honest: t corrupt neighbours rebuild the secret that honest clients do not reveal.
    Semi-malicious: x corrupt neighbours reveal shares of both secrets, the k − x honest
    neighbours and the client itself a single share each. Both secrets have t shares if
    2t ≤ 2x + (k − x) + 1.
    """
    return threshold if security == "semi-honest" else max(0, 2 * threshold - k - 1)


@lru_cache(maxsize=64)
def _search(
    n: int,
    bad: int,
    gone: int,
    security: Adversary,
    sigma: int,
    eta: int,
    largest: int,
    smallest: int = 2,
    least: int = 2,
) -> Recommendation:
    """Return the smallest safe k up to `largest`, or else the complete graph.

    k is `smallest` or more, and t is `least` or more.
    """
    fails = Fraction(1, 1 << eta)
    highest = 1
    # each client is linked to k/2 clients on either side of the ring, so k is even
    tried = range(smallest + smallest % 2, min(n - 1, largest + 1), 2)
    for k in tried if n - bad - gone >= 2 else ():
        # two more neighbours never lower the highest threshold that dropouts allow
        while highest < k and tails.is_rare(n, gone, k, k - highest, fails):
            highest += 1
        t = highest
        if t < least or not decide(n, k, t, bad, gone, security, sigma):
            continue
        while t > least and decide(n, k, t - 1, bad, gone, security, sigma):
            t -= 1
        return Recommendation(
            k,
            t,
            highest,
            tails.bits(_not_private(n, k, t, bad, gone, security)),
            tails.bits(tails.few_left(n, gone, k, t)),
        )
    return _complete(n, bad, gone, security, least)


def _complete(
    n: int, bad: int, gone: int, security: Adversary, least: int = 2
) -> Recommendation:
    """Return the thresholds of the complete graph, which is never random, or raise."""
    lowest = max(least, lowest_complete(n, bad, security))
    highest = n - gone
    if n - bad - gone < 2:
        why = "fewer than two honest ones are left, and their sum is a single vector"
    elif lowest > highest:
        why = f"the threshold must be {lowest}, but only {highest} are sure to answer"
    else:
        return Recommendation(None, lowest, highest, float("inf"), float("inf"))
    raise ParameterError(
        f"with {bad} of {n} clients corrupt and {gone} dropping out, not even the complete "
        f"graph is safe: {why}; lower corrupt or dropout, or add clients"
    )


def _counts(
    n: int, corrupt: float, dropout: float, security: str, colluders: int | None = None
) -> tuple[int, int]:
    to_adversary(security)
    check_fractions(corrupt, dropout)
    if colluders is None:
        colluders = count(corrupt, int(n))
    check_integer("colluders", colluders, 0, 1 << 20)
    return int(colluders), count(dropout, int(n))
