"""How likely a random ring of neighbours fails: exact counting, no floats.

Bell et al. 2020, section 3, calls a way of drawing graphs (σ, η)-good when three events hold
whoever colludes and whoever drops out, as long as both were settled before the graph was drawn:

- E1: no client has as many corrupt neighbours as it takes to rebuild its secrets,
- E2: the graph of the honest clients that did not drop out is in one piece,
- E3: every client has at least t neighbours that did not drop out.

E1 and E2 fail together with probability at most 2^−σ (privacy), E3 with at most 2^−η (the round
completes). Probabilities are fractions of Python integers; docs/parameters.md derives them.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, log2, perm

__all__ = ["at_least", "bits", "few_left", "in_pieces", "too_many_corrupt"]


def at_least(population: int, marked: int, drawn: int, count: int) -> Fraction:
    """Return P[X ≥ count] for X the marked ones among `drawn` of `population`, each set alike.

    Parameters
    ----------
    population, marked, drawn : int
        0 ≤ marked, drawn ≤ population.
    count : int
        Any.
    """
    lowest, highest = max(0, drawn - (population - marked)), min(marked, drawn)
    if count <= lowest:
        return Fraction(1)
    if count > highest:
        return Fraction(0)
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

    An honest client's neighbours are a uniform set of k among the n − 1 others, of which
    `corrupt` are corrupt; the union bound over all n clients.
    """
    return min(Fraction(1), n * at_least(n - 1, corrupt, neighbours, limit))


def in_pieces(n: int, removed: int, neighbours: int) -> Fraction:
    """Bound the probability that a ring loses at most `removed` and falls apart (not E2).

    Neighbours on the ring reach k/2 places either way, so survivors next to each other are
    linked unless k/2 or more in a row are missing between them. One such gap leaves a path;
    it takes two for two pieces. The bound is the expected number of pairs of such gaps:
    C(s, 2) · m (m−1) … (m−k+1) / ((n−1) (n−2) … (n−k)) for m removed and s = n − m left.
    """
    if neighbours >= n - 1 or removed < neighbours:
        return Fraction(0)
    # fewer removed can be worse when hardly anyone is left: the bound rises up to this many
    peak = (neighbours * n - 2) // (neighbours + 2) + 1
    m = min(removed, peak, n - 2)
    pairs = comb(n - m, 2)
    return min(Fraction(1), Fraction(pairs * perm(m, neighbours), perm(n - 1, neighbours)))


def few_left(n: int, dropped: int, neighbours: int, threshold: int) -> Fraction:
    """Bound the probability that some client keeps fewer than t neighbours (not E3).

    More than k − t of k neighbours are among the `dropped` of the n − 1 others; the union
    bound over all n clients.
    """
    missing = neighbours - threshold + 1
    return min(Fraction(1), n * at_least(n - 1, min(dropped, n - 1), neighbours, missing))


def bits(probability: Fraction) -> float:
    """Return −log2 of a probability; infinite for zero."""
    if probability == 0:
        return float("inf")
    return log2(probability.denominator) - log2(probability.numerator)
