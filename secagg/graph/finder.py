"""Search for the fewest safe neighbours, and for the smallest safe threshold with them.

Bell et al. 2020, section 3, with exact tails in place of their bounds; docs/parameters.md has
the derivation and the figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from secagg._check import check_integer
from secagg.errors import ParameterError
from secagg.graph import tails
from secagg.graph.assumptions import Adversary, check_fractions, count, to_adversary

__all__ = [
    "MOST_SEARCHED",
    "Recommendation",
    "is_private",
    "privacy_bits",
    "recommend",
    "remedy",
]

MOST_SEARCHED = 1024
"""The most neighbours that `remedy` tries, in a fraction of a second."""


@dataclass(frozen=True, eq=False)
class Recommendation(tuple[int | None, int]):
    """The pair ``k, t`` of neighbours and threshold, and the bits that it achieves.

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

    # a tuple, so that type checkers know that in `k, t = …` only k can be None
    def __new__(cls, neighbours: int | None, threshold: int, *_: float) -> Recommendation:
        """Make the pair; the generated ``__init__`` sets the fields."""
        return super().__new__(cls, (neighbours, threshold))

    def __getnewargs__(self) -> tuple[int | None, int]:
        return self.neighbours, self.threshold


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
        Number of clients that advertise keys (3 ≤ n ≤ 2^20). If fewer do, the fractions are of
        those. Rounding up then costs up to about one bit, and as many colluders as among n
        cost far more.
    corrupt, dropout : float
        The largest fractions of the clients that collude with the server, and that drop out
        after they have advertised keys; 0 ≤ corrupt, dropout and corrupt + dropout < 1. Counts
        are rounded up. Neither set may depend on the graph. If fewer than n may turn up, divide
        the expected number of colluders by the fewest.
    security : "semi-honest" or "semi-malicious"
        Semi-malicious: the server draws the graph and forwards messages honestly, but asks
        different clients for different kinds of share. Then no client's two secrets are rebuilt
        together. No choice of (k, t) stops it from reporting false dropouts, to unmask a part
        of the sum or even one vector.
    sigma : int
        Some client is exposed with probability at most 2^−sigma (1 to 128).
    eta : int
        The round fails with probability at most 2^−eta (1 to 128).

    Raises
    ------
    ParameterError
        A value is out of range, or not even the complete graph is safe.

    Notes
    -----
    Bell et al. 2020, section 3, by exact tails: `secagg.graph.tails`.
    """
    check_integer("n", n, 3, 1 << 20)
    check_integer("sigma", sigma, 1, 128)
    check_integer("eta", eta, 1, 128)
    bad, gone = _counts(n, corrupt, dropout, security)
    return _search(int(n), bad, gone, security, int(sigma), int(eta), int(n))


def remedy(n: int, corrupt: float, dropout: float, sigma: int) -> str:
    """Name parameters that keep `sigma` bits; the search has a bounded length."""
    bad, gone = _counts(n, corrupt, dropout, "semi-honest")
    try:
        k, t = _search(n, bad, gone, "semi-honest", sigma, 30, MOST_SEARCHED)
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
) -> float:
    """Return −log2 of the probability that the graph exposes some client.

    0 promises nothing, infinity means never. Above 2048 neighbours it is a lower bound, within
    a fraction of a bit where there are more than a few.

    Parameters
    ----------
    n, corrupt, dropout, security
        See `recommend`.
    neighbours : int or None
        k; None, or n − 1 or more, for the complete graph.
    threshold : int
        t.

    Raises
    ------
    ParameterError
        A value is out of range.
    """
    question = _question(n, neighbours, threshold, corrupt, dropout, security)
    return tails.bits(_not_private(*question))


def is_private(
    n: int,
    neighbours: int | None,
    threshold: int,
    corrupt: float,
    dropout: float,
    sigma: int,
) -> bool:
    """Return True if, without rounding, a semi-honest server is kept to `sigma` bits or more.

    The number of steps is bounded, as a server may propose the parameters. So above 2048
    neighbours the answer is no where a fraction of a bit decides.
    """
    question = _question(n, neighbours, threshold, corrupt, dropout, "semi-honest")
    return _is_private(*question, int(sigma))


def _question(
    n: int,
    neighbours: int | None,
    threshold: int,
    corrupt: float,
    dropout: float,
    security: Adversary,
) -> tuple[int, int, int, int, int, Adversary]:
    check_integer("n", n, 2, 1 << 20)
    check_integer("threshold", threshold, 1, 1 << 20)
    if neighbours is not None:
        check_integer("neighbours", neighbours, 2, 1 << 20)
    bad, gone = _counts(n, corrupt, dropout, security)
    k = n - 1 if neighbours is None else min(neighbours, n - 1)
    return int(n), int(k), int(threshold), bad, gone, security


@lru_cache(maxsize=256)
def _not_private(
    n: int, k: int, threshold: int, bad: int, gone: int, security: Adversary
) -> Fraction:
    """Bound the probability that E1 or E2 fails; cached, as every client asks."""
    if n - bad - gone < 2:
        return Fraction(1)  # the honest clients' sum is one vector
    limit = _corrupt_limit(k, threshold, security)
    if k == n - 1:  # on the complete graph nothing is random
        return Fraction(bad >= limit)
    leak = tails.too_many_corrupt(n, bad, k, limit)
    return min(Fraction(1), leak + tails.in_pieces(n, bad + gone, k))


@lru_cache(maxsize=256)
def _is_private(
    n: int, k: int, threshold: int, bad: int, gone: int, security: Adversary, sigma: int
) -> bool:
    """Return `_not_private` ≤ 2^−sigma, without a sum if that can be avoided."""
    if n - bad - gone < 2:
        return False
    limit, bound = _corrupt_limit(k, threshold, security), Fraction(1, 1 << sigma)
    if k == n - 1:
        return bad < limit
    if not tails.is_rare(n, bad, k, limit, bound):
        return False
    rest = bound - tails.in_pieces(n, bad + gone, k)
    return rest >= 0 and tails.is_rare(n, bad, k, limit, rest)


def _corrupt_limit(k: int, threshold: int, security: Adversary) -> int:
    """Return the number of corrupt neighbours that exposes a client.

    Semi-honest: t of them rebuild the secret that the others keep. Semi-malicious: x corrupt
    ones give both kinds of share, each of the k − x others and the client itself one kind. So
    both secrets have t shares once 2t ≤ 2x + (k − x) + 1.
    """
    return threshold if security == "semi-honest" else max(0, 2 * threshold - k - 1)


@lru_cache(maxsize=64)
def _search(
    n: int, bad: int, gone: int, security: Adversary, sigma: int, eta: int, largest: int
) -> Recommendation:
    """Find the smallest k up to `largest`, or give the complete graph."""
    fails = Fraction(1, 1 << eta)
    highest = 1
    for k in range(2, min(n - 1, largest + 1), 2) if n - bad - gone >= 2 else ():
        # two more neighbours never lower the highest threshold that dropouts allow
        while highest < k and tails.is_rare(n, gone, k, k - highest, fails):
            highest += 1
        t = highest
        if t < 2 or not _is_private(n, k, t, bad, gone, security, sigma):
            continue
        while t > 2 and _is_private(n, k, t - 1, bad, gone, security, sigma):
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
    # more than half of the n holders, and more than the corrupt clients can reach
    lowest = max(n // 2, bad if security == "semi-honest" else (n + bad) // 2) + 1
    highest = n - gone
    if n - bad - gone < 2:
        why = "fewer than two honest ones are left, and their sum is a single vector"
    elif lowest > highest:
        why = f"the threshold must be {lowest}, but only {highest} are sure to answer"
    else:
        why = ""
    if why:
        raise ParameterError(
            f"with {bad} of {n} clients corrupt and {gone} dropping out, not even the "
            f"complete graph is safe: {why}; lower corrupt or dropout, or add clients"
        )
    return Recommendation(None, lowest, highest, float("inf"), float("inf"))


def _counts(n: int, corrupt: float, dropout: float, security: str) -> tuple[int, int]:
    to_adversary(security)
    check_fractions(corrupt, dropout)
    return count(corrupt, int(n)), count(dropout, int(n))
