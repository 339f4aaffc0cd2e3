"""Graph of clients: complete, or a k-regular Harary graph on a random order.

Clients are put on a ring in random order and each is linked to the k/2 before and the k/2 after
it (Bell et al. 2020, §3.2, Algorithm 2). A client's *holders* are its neighbours and itself, in
ascending order; the i-th of them holds its share at the point i + 1. See `recommend` for the
number of neighbours.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass

__all__ = ["SEED_BYTES", "Graph", "draw"]

SEED_BYTES = 32


@dataclass(frozen=True)
class Graph:
    """Undirected graph of clients.

    Attributes
    ----------
    holders : mapping of id to ascending tuple of ids
        A client's neighbours and itself.
    """

    holders: Mapping[int, tuple[int, ...]]

    def is_connected(self, among: Collection[int]) -> bool:
        """Return True if the graph restricted to `among` is in one piece.

        Pieces would be unmasked one by one, and so give away more than the one sum.
        """
        rest = set(among)
        frontier = [rest.pop()] if rest else []
        while frontier and rest:
            reached = rest.intersection(self.holders[frontier.pop()])
            rest -= reached
            frontier.extend(reached)
        return not rest


def draw(clients: Collection[int], neighbours: int | None, seed: bytes) -> Graph:
    """Draw a graph on `clients`; the same from the same seed, whatever their order.

    Parameters
    ----------
    clients : collection of distinct ids
    neighbours : int or None
        k, even. None, or k ≥ len(clients) − 1: the complete graph.
    seed : bytes
        32 uniform bytes, from which the order on the ring follows.
    """
    ids = tuple(sorted(clients))
    if neighbours is None or neighbours >= len(ids) - 1:
        return Graph(dict.fromkeys(ids, ids))
    # sorting by a digest under a fresh seed is a uniform order
    label = b"secagg/1 graph" + seed
    order = sorted(ids, key=lambda u: hashlib.sha256(label + struct.pack("<Q", u)).digest())
    reach = neighbours // 2
    ring = order[-reach:] + order + order[:reach]
    return Graph({u: tuple(sorted(ring[i : i + 2 * reach + 1])) for i, u in enumerate(order)})
