"""Items that clients send for their peers, such as shares, regrouped by peer."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", np.uint8, np.uint64)


class PerPeer(Generic[T]):
    """Items of equal width that clients send for their peers.

    Parameters
    ----------
    peers : mapping of id to uint64 array
        The clients, by ascending ids, and for each client the peers with an item, in the order
        of the items.
    width : int
        Length of an item.
    dtype : type of numpy
        Type of an item's elements.

    Attributes
    ----------
    items : array of `dtype`, shape (all peers of all clients, width)
        Only the rows of clients in `came` have content.
    came : set of ids
        Clients that sent their items.
    """

    def __init__(
        self, peers: Mapping[int, NDArray[np.uint64]], width: int, dtype: type[T]
    ) -> None:
        ends = accumulate(map(len, peers.values()))
        self._rows = {
            u: slice(end - len(ids), end)
            for (u, ids), end in zip(peers.items(), ends, strict=True)
        }
        self._peers = np.concatenate([np.empty(0, np.uint64), *peers.values()])
        self.items: NDArray[T] = np.empty((self._peers.size, width), dtype)
        self.came: set[int] = set()

    def peers_of(self, u: int) -> int:
        """Return the number of peers of client u."""
        return self._rows[u].stop - self._rows[u].start

    def of(self, u: int) -> NDArray[T]:
        """Return the items that client u sent, shape (`peers_of`, width)."""
        return self.items[self._rows[u]]

    def put(self, u: int, items: NDArray[T]) -> None:
        """Keep the items of client u, shape (`peers_of`, width)."""
        self.items[self._rows[u]] = items
        self.came.add(u)

    def by_peer(self) -> dict[int, NDArray[np.intp]]:
        """Return for each peer the rows of `items`, by ascending ids of senders in `came`."""
        came = np.zeros(self._peers.size, dtype=bool)
        for u in self.came:
            came[self._rows[u]] = True
        rows = np.flatnonzero(came)
        # stable: each peer's rows keep the ascending order of the senders
        rows = rows[np.argsort(self._peers[rows], kind="stable")]
        peers, first = np.unique(self._peers[rows], return_index=True)
        return dict(zip(peers.tolist(), np.split(rows, first[1:]), strict=True))
