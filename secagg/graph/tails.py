"""Probabilities that a random graph of neighbours exposes a client or loses a secret.

Bell et al. 2020, section 3, calls a random graph (σ, η)-good if three events hold, for any sets
of colluding and dropped-out clients that were fixed beforehand:

- E1: no client has as many corrupt neighbours as are needed to rebuild the client's secrets,
- E2: the graph of the honest clients that did not drop out is connected,
- E3: every client has at least t neighbours that did not drop out.

E1 or E2 fails with probability at most 2^−σ (privacy), and E3 with at most 2^−η (completion).
Probabilities are exact fractions of Python integers; docs/parameters.md derives them.

A client must judge within seconds the parameters that a server proposes. So above
``MOST_COUNTED`` neighbours, upper bounds replace the exact tails. The bounds are computed from
logarithms of factorials in a fixed number of steps.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, comb, floor, lgamma, log, log2, perm

MOST_COUNTED = 2048
"""Largest number of neighbours with exactly summed tails, which take some 20 ms."""

_SLACK = 2**-16
"""Bits that widen the bounds, for lgamma's error of some 10^-7 bits up to n = 2^20."""

_LEAST = -1024
"""Binary logarithm of the smallest probability that a bound returns; σ is at most 128."""


def at_least(population: int, marked: int, drawn: int, count: int) -> Fraction:
    """Return P[X ≥ count] for X, the number of marked items in a uniform sample.

    The sample has `drawn` items of a `population` with `marked` marked items; 0 ≤ marked,
    drawn ≤ population. Exact if drawn ≤ ``MOST_COUNTED``, else an upper bound.
    """
    lowest, highest = max(0, drawn - (population - marked)), min(marked, drawn)
    if count <= lowest:
        return Fraction(1)
    if count > highest:
        return Fraction(0)
    if drawn > MOST_COUNTED:
        if count * population <= marked * drawn:
            return Fraction(1)
        return _fraction(_bracket(population, marked, drawn, count)[1])
    unmarked = population - marked
    ways = comb(marked, count) * comb(unmarked, drawn - count)
    total = ways
    for x in range(count, highest):
        # one more marked, one fewer unmarked: the quotient of neighbouring terms, exactly
        ways = ways * (marked - x) * (drawn - x) // ((x + 1) * (unmarked - drawn + x + 1))
        total += ways
    return Fraction(total, comb(population, drawn))


def too_many_corrupt(n: int, corrupt: int, neighbours: int, limit: int) -> Fraction:
    """Bound the probability that some client has `limit` or more corrupt neighbours (not E1).

    An honest client's neighbours are a uniform set of k of the n − 1 other clients, `corrupt`
    of them corrupt. The result is the union bound over all n clients.

    If limit ≤ E[X] for X, the number of corrupt neighbours, the bound is 1 without a sum. X is
    distributed as a sum of independent trials (Vatutin and Mikhailov 1982). The median of X is
    not below the whole part of its mean (Jogdeo and Samuels 1968). So
    n · P[X ≥ limit] ≥ n / 2 ≥ 1.
    """
    if limit * (n - 1) <= corrupt * neighbours:
        return Fraction(1)
    return min(Fraction(1), n * at_least(n - 1, corrupt, neighbours, limit))


def is_rare(n: int, marked: int, neighbours: int, count: int, bound: Fraction) -> bool:
    """Return True if n · P[X ≥ count] ≤ bound, X the number of a client's marked neighbours.

    The sum is computed only if its first term leaves the answer open. Above ``MOST_COUNTED``
    neighbours close cases give False. Ranges: 0 ≤ marked, neighbours ≤ n − 1; bound > 0.
    """
    if bound >= 1 or count > min(marked, neighbours):
        return True
    if count * (n - 1) <= marked * neighbours:
        return False
    low, high = _bracket(n - 1, marked, neighbours, count)
    limit = -bits(bound / n)
    if high <= limit or low > limit:
        return high <= limit
    # beyond MOST_COUNTED this is the upper bound again, so the answer is no
    return n * at_least(n - 1, marked, neighbours, count) <= bound


def in_pieces(n: int, removed: int, neighbours: int) -> Fraction:
    """Bound the probability that up to `removed` missing clients disconnect the rest (not E2).

    Each client is linked to k/2 places on either side of the ring. So two consecutive survivors
    are linked unless k/2 or more clients are missing between them. A single such gap leaves a
    path; two gaps disconnect the ring. The bound is the expected number of pairs of gaps, for m
    removed and s = n − m left: C(s, 2) · m (m−1) … (m−k+1) / ((n−1) (n−2) … (n−k)).
    """
    if neighbours >= n - 1 or removed < neighbours:
        return Fraction(0)
    # fewer removed can be worse when hardly any client is left: the bound rises up to `peak`
    peak = (neighbours * n - 2) // (neighbours + 2) + 1
    m = min(removed, peak, n - 2)
    pairs = comb(n - m, 2)
    if neighbours > MOST_COUNTED:
        drawn = _log2_comb(m, neighbours) - _log2_comb(n - 1, neighbours)
        return _fraction(log2(pairs) + drawn + _SLACK)
    return min(Fraction(1), Fraction(pairs * perm(m, neighbours), perm(n - 1, neighbours)))


def few_left(n: int, dropped: int, neighbours: int, threshold: int) -> Fraction:
    """Bound the probability that some client has fewer than t neighbours left (not E3).

    In that event, more than k − t of the client's k neighbours are among the `dropped` of the
    n − 1 other clients. This is the event of `too_many_corrupt`, for other clients.
    """
    return too_many_corrupt(n, min(dropped, n - 1), neighbours, neighbours - threshold + 1)


def bits(probability: Fraction) -> float:
    """Return −log2 of a probability; infinite for zero."""
    if probability == 0:
        return float("inf")
    return log2(probability.denominator) - log2(probability.numerator)


def _bracket(population: int, marked: int, drawn: int, count: int) -> tuple[float, float]:
    """Return a lower and an upper bound of log2 P[X ≥ count], for count above the mean.

    Above the mean the terms fall, and so do the quotients of neighbouring terms. So the sum
    lies between the first term and the geometric series with the first quotient.
    """
    unmarked = population - marked
    first = _log2_comb(marked, count) + _log2_comb(unmarked, drawn - count)
    first -= _log2_comb(population, drawn)
    over = (count + 1) * (unmarked - drawn + count + 1)
    falls = over - (marked - count) * (drawn - count)
    return first - _SLACK, first + log2(over / falls) + _SLACK


def _log2_comb(n: int, k: int) -> float:
    return (lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)) / log(2)


def _fraction(exponent: float) -> Fraction:
    """Return 2^exponent, rounded up, as a probability between 2^_LEAST and 1."""
    whole = floor(max(exponent, _LEAST))
    if whole >= 0:
        return Fraction(1)
    return Fraction(ceil(2 ** (max(exponent, _LEAST) - whole) * 2**20), 1 << (20 - whole))
