"""Graphs of clients: neighbours in the graph share secrets and masks with each other.

On the complete graph (Bonawitz 2017) each client exchanges keys with all others. On a k-regular
Harary graph in random order (Bell et al. 2020, §3.2) each client does so with k neighbours, and
the cost of a client does not grow with n. `recommend` finds the smallest k and a threshold t by
exact counting: the probability that privacy fails is at most 2^−σ, and the probability that the
round fails is at most 2^−η. `smallest_cohort` finds the least number of clients that must turn
up.
"""

from __future__ import annotations

from secagg.graph.cohorts import smallest_cohort
from secagg.graph.finder import privacy_bits, recommend
from secagg.graph.graph import SEED_BYTES, Graph, Recommendation, draw

__all__ = [
    "SEED_BYTES",
    "Graph",
    "Recommendation",
    "draw",
    "privacy_bits",
    "recommend",
    "smallest_cohort",
]
