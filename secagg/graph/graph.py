"""Graph of clients: complete, or a k-regular Harary graph on a random order.

Clients are put on a ring in random order, and each client is linked to the k/2 clients before
and the k/2 clients after (Bell et al. 2020, §3.2, Algorithm 2). The *holders* of a client's
shares are the client and the neighbours, by ascending ids. Holder i, counted from 0, has the
share at the point i + 1. See `recommend` for the number of neighbours.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass

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
