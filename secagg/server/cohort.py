"""Cohort U1: the clients that advertised keys, their graph and the name of their session."""

from __future__ import annotations

from collections.abc import Container

import numpy as np
from numpy.typing import NDArray

from secagg import graph
from secagg.protocol import Registry, RoundParams, keys
from secagg.protocol.messages import Roster, encode, pack_ids


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
        made: dict[int, bytes] = {}
        for holders in self.graph.holders.values():  # one tuple for all on the complete graph
            if id(holders) not in made:
                made[id(holders)] = self._roster(holders)
        return {u: made[id(self.graph.holders[u])] for u in self.publics}

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
        holders = self.graph.holders
        distinct = {id(ids): ids for ids in holders.values()}  # one tuple on the complete graph
        ids = {name: np.array(ids, dtype=np.uint64) for name, ids in distinct.items()}
        return {u: (own := ids[id(holders[u])])[own != u] for u in self.publics}

    def seen_by(self, u: int, clients: Container[int]) -> list[int]:
        """Return the clients of `clients` that are holders of u's shares, ascending."""
        return [v for v in self.graph.holders[u] if v in clients]

    def is_enough_for(self, u: int, clients: Container[int]) -> bool:
        """Return True if enough holders of u are in `clients` for u to answer the server."""
        return len(self.seen_by(u, clients)) >= self.params.min_survivors
