"""Cohort U1: the clients that advertised keys, their graph and the name of their session."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from secagg import graph
from secagg.protocol import Registry, RoundParams, keys
from secagg.protocol.messages import Roster, encode, pack_ids

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
    graph : Graph
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
        self._signatures = signatures
        # ascending ids, the order of the roster digest and of every message
        self.publics = dict(sorted(publics.items()))
        self.graph = graph.draw(self.publics, params.neighbours, seed)
        self._digest = keys.roster_digest([(u, c, s) for u, (c, s) in self.publics.items()])
        self.session = keys.session_id(params.digest, self._digest)

    def rosters(self) -> dict[int, bytes]:
        """Return each client's message of round 1; clients with the same holders share one."""
        return made_once(self.graph.holders, self._roster)

    def _roster(self, holders: tuple[int, ...]) -> bytes:
        """Return the message of round 1 to a client: the holders and their public keys."""
        return encode(
            Roster(
                self.params.to_bytes(),
                len(self.publics),
                self._digest,
                pack_ids(holders),
                b"".join(self.publics[v][0] for v in holders),
                b"".join(self.publics[v][1] for v in holders),
                b"".join(self._signatures[v] for v in holders),
            )
        )

    def receivers(self) -> dict[int, NDArray[np.uint64]]:
        """Return the ids of the other holders of each client's shares, ascending."""
        ids = made_once(self.graph.holders, lambda holders: np.array(holders, dtype=np.uint64))
        return {u: own[own != u] for u, own in ids.items()}

    def seen_by(self, u: int, clients: Container[int]) -> list[int]:
        """Return the clients of `clients` that are holders of u's shares, ascending."""
        return [v for v in self.graph.holders[u] if v in clients]

    def is_enough_for(self, u: int, clients: Container[int]) -> bool:
        """Return True if enough holders of u are in `clients` for u to answer the server."""
        return len(self.seen_by(u, clients)) >= self.params.min_survivors
