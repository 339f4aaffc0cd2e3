"""Session of simulated rounds: sealing keys of the clients, and the order of their graph."""

from __future__ import annotations

import os

from secagg.client import SealingKey
from secagg.graph import SEED_BYTES
from secagg.protocol import RoundParams

_PAIRS = 1 << 20  # about 250 MB in all clients together


class SimulatedSession:
    """Session of simulated rounds: each client keeps its `SealingKey`, the server the graph.

    No client has a secret of another client. Later rounds of the same clients are faster than
    the first. All clients are in one memory. So a session forgets the keys when the clients
    and their holders come to more than a million pairs. A single round with more pairs does not
    use the session's keys.
    """

    def __init__(self) -> None:
        self._graph_seed = os.urandom(SEED_BYTES)
        self._keys: dict[int, SealingKey] = {}

    def __repr__(self) -> str:
        return f"<SimulatedSession: {len(self._keys):,} clients>"

    def __reduce__(self) -> tuple[type[SimulatedSession], tuple[()]]:
        """Copy and pickle as a new session: keys stay in the process."""
        return SimulatedSession, ()

    def begin(self, params: RoundParams) -> bytes | None:
        """Return the seed of a round's graph; None if the round is too large for this session.

        Forget all sealing keys if old keys and this round could have over a million pairs.
        """
        known = sum(key.peers for key in self._keys.values())
        if known + params.n_clients * params.holders > _PAIRS:
            # costs time only: the clients draw new keys and agree again
            self._keys.clear()
        return self._graph_seed if _fits(params) else None

    def sealing_key(self, client_id: int, params: RoundParams) -> SealingKey | None:
        """Return the sealing key of a client; None in a round too large for this session."""
        if not _fits(params):
            return None
        if client_id not in self._keys:
            self._keys[client_id] = SealingKey(client_id)
        return self._keys[client_id]


def _fits(params: RoundParams) -> bool:
    return params.n_clients * params.holders <= _PAIRS
