"""Values that a stage of the server passes to the next stage.

`Cohort` has the clients U1, the graph and the session. `PerPeer` has the items that clients
send for their peers: sealed shares and checks in round 1, deposits in round 2, revealed shares
in round 4.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from itertools import accumulate
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from secagg import graph
from secagg.protocol import Registry, RoundParams, keys

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
    rows : dict of id to slice
        Rows of each client's items.
    came : set of ids
        Clients that sent their items.
    """

    def __init__(
        self, peers: Mapping[int, NDArray[np.uint64]], width: int, dtype: type[T]
    ) -> None:
        ends = [*accumulate(map(len, peers.values()))]
        self.rows = {
            u: slice(end - len(ids), end)
            for (u, ids), end in zip(peers.items(), ends, strict=True)
        }
        self._clients, self._ends = np.array([*peers], np.uint64), np.array(ends, np.intp)
        self._peers = np.concatenate([np.empty(0, np.uint64), *peers.values()])
        self.items: NDArray[T] = np.empty((self._peers.size, width), dtype)
        self.came: set[int] = set()

    def read(self, u: int, data: bytes) -> NDArray[T] | None:
        """Return a message's items of client u, not yet stored; None for a wrong length."""
        own = self.items[self.rows[u]]
        if len(data) != own.nbytes:
            return None
        # messages are little-endian; on such machines the type is the same
        return np.frombuffer(data, own.dtype.newbyteorder("<")).reshape(own.shape)

    def keep(self, u: int, items: NDArray[T]) -> None:
        """Store the items of client u, in the shape of `read`."""
        self.items[self.rows[u]] = items
        self.came.add(u)

    def of(self, u: int, peers: NDArray[np.uint64]) -> NDArray[T]:
        """Return a client's items for some peers, which must be in ascending order."""
        rows = self.rows[u]
        return self.items[rows.start + np.searchsorted(self._peers[rows], peers)]

    def by_peer(self) -> dict[int, NDArray[np.intp]]:
        """Return for each peer the rows of `items`, by ascending ids of senders in `came`."""
        came = np.zeros(self._peers.size, dtype=bool)
        for u in self.came:
            came[self.rows[u]] = True
        rows = np.flatnonzero(came)
        # stable: each peer's rows keep the ascending order of the senders
        rows = rows[np.argsort(self._peers[rows], kind="stable")]
        if not rows.size:
            return {}
        peers, first = np.unique(self._peers[rows], return_index=True)
        return dict(zip(peers.tolist(), np.split(rows, first[1:]), strict=True))

    def senders(self, rows: NDArray[np.intp]) -> NDArray[np.uint64]:
        """Return the clients that sent the items in some rows."""
        return self._clients[np.searchsorted(self._ends, rows, side="right")]


K = TypeVar("K")
V = TypeVar("V")


def made_once(keys: Mapping[int, K], make: Callable[[K], V]) -> dict[int, V]:
    """Return `make` of each client's key, called once for clients with the same object.

    On the complete graph all clients have one object.
    """
    distinct = {id(key): key for key in keys.values()}
    made = {name: make(key) for name, key in distinct.items()}
    return {u: made[id(key)] for u, key in keys.items()}


class Cohort:
    """Clients U1 that advertised keys in round 0, on a graph drawn from `seed`.

    Attributes
    ----------
    publics : dict of id to PublicKeys, ascending
        Public keys of every client.
    registry : Registry or None
        Public keys that verify signatures; None in the semi-honest variant.
    signatures : dict of id to bytes
        Signatures of the clients over their keys.
    graph : Graph
    digest : bytes
        Digest of all public keys.
    session : bytes
        Identifier of the session, 32 bytes: a digest of the parameters and all public keys.
    colluders : int
        c, the most clients that collude with the server in the active variant; more complaints
        than that convict a dealer.
    """

    def __init__(
        self,
        params: RoundParams,
        publics: dict[int, keys.PublicKeys],
        signatures: dict[int, bytes],
        registry: Registry | None,
        seed: bytes,
        colluders: int,
    ) -> None:
        self.params = params
        self.registry, self.colluders = registry, colluders
        self.signatures = signatures
        # ascending ids, the order of the roster digest and of every message
        self.publics = dict(sorted(publics.items()))
        self.graph = graph.draw(self.publics, params.neighbours, seed)
        self.digest = keys.roster_digest(self.publics)
        self.session = keys.session_id(params.digest, self.digest)

    def verifies(self, u: int, content: bytes, signature: bytes) -> bool:
        """Return True if client u signed `content`; False also in the semi-honest variant."""
        return self.registry is not None and self.registry.verifies(u, content, signature)

    def seen_by(self, u: int, clients: Container[int]) -> list[int]:
        """Return the clients of `clients` that are holders of u's shares, ascending."""
        return [v for v in self.graph.holders[u] if v in clients]
