"""Smallest cohort with enough privacy under a graph's neighbours and threshold.

The number of colluders is fixed: colluders do not stay away because other clients do. So a
cohort smaller than the cohort that k and t were chosen for has a larger fraction of colluders.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from secagg.errors import ParameterError
from secagg.graph import tails
from secagg.graph.finder import corrupt_limit, decide, is_private
from secagg.graph.graph import Adversary, count


def smallest_cohort(
    n: int,
    neighbours: int | None,
    threshold: int,
    colluders: int,
    dropout: float,
    security: Adversary = "semi-honest",
    sigma: int = 40,
) -> int:
    """Return the smallest m such that every cohort of m to n clients keeps `sigma` bits.

    The result is the smallest cohort that a `secagg.ClientPolicy` with these assumptions
    accepts.

    Parameters
    ----------
    n : int
        Number of clients that k and t were chosen for, 2 to 2^20.
    neighbours, threshold, security
        See `privacy_bits`.
    colluders : int
        Number of colluding clients, 0 to 2^20, however many clients turn up.
    dropout : float
        Largest fraction of the m clients that drop out, 0 ≤ dropout < 1; rounded up.
    sigma : int
        Privacy: some client is exposed with probability at most 2^−sigma, 1 to 128.

    Raises
    ------
    ParameterError
        A value is out of range, or not even n clients keep `sigma` bits.
    """
    question = (n, neighbours, threshold, 0.0, dropout, sigma, security)
    if not is_private(*question, colluders=colluders):
        raise ParameterError(
            f"{neighbours} neighbours and threshold {threshold} among {n} clients do not keep "
            f"{sigma} bits if {colluders} collude; take those of secagg.graph.recommend"
        )
    smallest, width = int(n), 1
    least = max(3, int(threshold))  # fewer never unmask a sum
    complete = 0 if neighbours is None else neighbours + 1  # so few are all neighbours
    while smallest > least:
        floor = complete + 1 if smallest > complete + 1 else least
        low = max(floor, least, smallest - width)
        # from low to smallest − 1, none is exposed more than low with the most dropouts
        gone = count(dropout, smallest - 1)
        k = low - 1 if neighbours is None else min(neighbours, low - 1)
        if decide(low, k, int(threshold), int(colluders), gone, security, int(sigma)):
            smallest, width = low, 2 * width
        elif smallest - low > 1:
            width = (smallest - low) // 2
        else:
            break
    return smallest


@lru_cache(maxsize=256)
def exposure(
    n: int,
    neighbours: int | None,
    threshold: int,
    colluders: int,
    survivors: int,
    security: Adversary = "semi-honest",
) -> float:
    """Bound the probability that a round exposes some client, for every cohort that may come.

    The cohort has n clients or fewer, and `survivors` of the cohort stay at least. On the
    complete graph nothing is random, and most can be rebuilt in the largest cohort.

    A cohort of N clients loses N − `survivors` clients at most. So a graph falls into pieces
    with the largest probability for n clients: each factor (N − s − i) / (N − 1 − i) of
    `tails.in_pieces` grows with N, for s honest clients that stay. A client has too many
    corrupt neighbours with the largest probability in the smallest cohort.

    Parameters
    ----------
    n : int
        Largest number of clients, up to 2^20.
    neighbours, threshold, colluders, security
        See `smallest_cohort`. On a sparse graph the server follows the protocol.
    survivors : int
        Smallest number of inputs of a sum, `colluders` + 2 to n.
    """
    if neighbours is None:
        return float(colluders >= corrupt_limit(n - 1, threshold, security))
    drawn = min(neighbours, survivors - 1)
    corrupt = tails.too_many_corrupt(survivors, colluders, drawn, threshold)
    pieces = tails.in_pieces(n, n - survivors + colluders, neighbours)
    return float(min(Fraction(1), Fraction(n, survivors) * corrupt + pieces))
