"""Graphs of clients; neighbours share keys and masks.

On the complete graph (Bonawitz 2017) every client exchanges keys with every other. On a
k-regular Harary graph in random order (Bell et al. 2020, §3.2) it does so with k of them, and
its cost no longer grows with n. `recommend` finds the smallest k and its threshold t by exact
counting: privacy fails with probability 2^−σ at most and the round with 2^−η at most.
"""

from __future__ import annotations

from secagg.graph.finder import Recommendation, privacy_bits, recommend
from secagg.graph.graph import SEED_BYTES, Graph, draw

__all__ = ["SEED_BYTES", "Graph", "Recommendation", "draw", "privacy_bits", "recommend"]
