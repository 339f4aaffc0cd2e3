"""Values that a stage of the server passes to the next stage.

`Cohort` has the clients U1, the graph and the session. `PerPeer` has the items that clients
send for their peers: sealed shares in round 1, revealed shares in round 4. `Summed` has the
masked sum of U3, from the end of round 2 on, with the questions of round 4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from secagg import graph
from secagg.encoding import Lanes
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
        ends = accumulate(map(len, peers.values()))
        self.rows = {
            u: slice(end - len(ids), end)
            for (u, ids), end in zip(peers.items(), ends, strict=True)
        }
        self._peers = np.concatenate([np.empty(0, np.uint64), *peers.values()])
        self.items: NDArray[T] = np.empty((self._peers.size, width), dtype)
        self.came: set[int] = set()

    def by_peer(self) -> dict[int, NDArray[np.intp]]:
        """Return for each peer the rows of `items`, by ascending ids of senders in `came`."""
        came = np.zeros(self._peers.size, dtype=bool)
        for u in self.came:
            came[self.rows[u]] = True
        rows = np.flatnonzero(came)
        # stable: each peer's rows keep the ascending order of the senders
        rows = rows[np.argsort(self._peers[rows], kind="stable")]
        peers, first = np.unique(self._peers[rows], return_index=True)
        return dict(zip(peers.tolist(), np.split(rows, first[1:]), strict=True))


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
    publics : dict of id to (sealing key, masking key), ascending
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
    """

    def __init__(
        self,
        params: RoundParams,
        publics: dict[int, tuple[bytes, bytes]],
        signatures: dict[int, bytes],
        registry: Registry | None,
        seed: bytes,
    ) -> None:
        self.params = params
        self.registry = registry
        self.signatures = signatures
        # ascending ids, the order of the roster digest and of every message
        self.publics = dict(sorted(publics.items()))
        self.graph = graph.draw(self.publics, params.neighbours, seed)
        self.digest = keys.roster_digest([(u, c, s) for u, (c, s) in self.publics.items()])
        self.session = keys.session_id(params.digest, self.digest)

    def seen_by(self, u: int, clients: Container[int]) -> list[int]:
        """Return the clients of `clients` that are holders of u's shares, ascending."""
        return [v for v in self.graph.holders[u] if v in clients]


class Question(NamedTuple):
    """Owners of the shares that a client is asked for: survivors and dropped, ascending ids."""

    survivors: list[int]
    dropped: list[int]


@dataclass(frozen=True, eq=False)
class Summed:
    """Sum of the masked inputs of U3.

    Attributes
    ----------
    cohort : Cohort
    commitments : dict of id to bytes
        Commitments to b_u of every client of U2.
    total : array in the ring's lanes
        The sum, still under its masks.
    asked : dict of id to Question, ascending
        Question to every client of U3; clients with the same holders share one object.
    present : collection of ids, ascending
        Receivers of the next request: the clients of U3 that see enough survivors. After round
        3 they are U4, the clients that signed.
    signatures : mapping of id to bytes, ascending
        Signatures of U4 over U3; empty before round 3 and in the semi-honest variant.
    """

    cohort: Cohort
    commitments: Mapping[int, bytes]
    total: Lanes
    asked: Mapping[int, Question]
    present: Collection[int]
    signatures: Mapping[int, bytes] = field(default_factory=dict)
