"""Cohort U1 of a session once its keys are known: graph, rosters, session name."""

from __future__ import annotations

from collections.abc import Container

from secagg import graph
from secagg.protocol import Registry, RoundParams, keys
from secagg.protocol.messages import Roster, encode, pack_ids

__all__ = ["Cohort"]


class Cohort:
    """U1: its keys, its graph and the session named after it.

    Attributes
    ----------
    publics : dict of id to (sealing key, masking key), ascending
    registry : Registry or None
        Keys for their signatures, in the active variant.
    graph : Graph
    session : bytes
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
        self.publics = dict(sorted(publics.items()))
        self.graph = graph.draw(self.publics, params.neighbours, seed)
        self._digest = keys.roster_digest([(u, c, s) for u, (c, s) in self.publics.items()])
        self.session = keys.session_id(params.digest, self._digest)

    def roster(self, u: int) -> bytes:
        """Return the roster for client u: its holders and their keys."""
        holders = self.graph.holders[u]
        return encode(
            Roster(
                self.params.digest,
                len(self.publics),
                self._digest,
                pack_ids(holders),
                b"".join(self.publics[v][0] for v in holders),
                b"".join(self.publics[v][1] for v in holders),
                b"".join(self._signatures[v] for v in holders),
            )
        )

    def seen_by(self, u: int, clients: Container[int]) -> list[int]:
        """Return those of `clients` that are u's holders, ascending."""
        return [v for v in self.graph.holders[u] if v in clients]

    def is_enough_for(self, u: int, clients: Container[int]) -> bool:
        """Return whether client u sees enough of `clients` to accept the next message."""
        return len(self.seen_by(u, clients)) >= self.params.min_survivors
