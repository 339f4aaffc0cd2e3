"""Sealing key of a client, and the secrets that it agreed on, over the rounds of a session."""

from __future__ import annotations

from collections.abc import Callable

from secagg._secrets import Confined
from secagg.errors import LocalProtocolError
from secagg.protocol import keys
from secagg.protocol.client_ids import ClientKey, identify

_PEERS = 4096  # about 1 MB


class SealingKey(Confined):
    """X25519 key pair c_u by which one client seals its shares in all rounds of a session.

    Give it to the `Client` of each round. The first one draws the pair, and each agrees only
    with peers that are new or have another key. So a later round takes one X25519 for each
    neighbour, not two. The keys that seal are derived anew in every round, from what the
    masking keys of the round agree on, too (docs/protocol.md, §5.3). On a sparse graph, the
    neighbours stay the same with ``Server(graph_seed=…)``.

    Whoever steals it can open this client's boxes of earlier rounds with those peers alone
    whose masking seed was rebuilt. Make a new one for each session, and drop it at the end.

    Parameters
    ----------
    client_id : int or str
        The client, as in `Client`.

    Attributes
    ----------
    client_id : int
        Its id.

    Raises
    ------
    ParameterError
        The id is neither an int from 0 to 2^64 − 1 nor a name.
    """

    __slots__ = ("_agreed", "_pairs", "client_id")
    _remedy = "make one in the process of its client"

    def __init__(self, client_id: ClientKey) -> None:
        self.client_id, _ = identify(client_id)
        self._pairs: list[keys.KeyPair] = []
        self._agreed: dict[int, tuple[bytes, bytes]] = {}  # public key and secret, by peer

    def __repr__(self) -> str:
        return f"SealingKey({self.client_id})"

    def draw(self, seed: Callable[[], bytes]) -> None:
        """Make the pair of a seed of 32 bytes, unless an earlier call has made it."""
        if not self._pairs:
            self._pairs.append(keys.KeyPair(seed()))  # of two threads the first one counts

    @property
    def pair(self) -> keys.KeyPair:
        """The pair, after `draw`; raises LocalProtocolError before."""
        if not self._pairs:
            raise LocalProtocolError(
                f"the sealing key of client {self.client_id} has no pair yet; give it to its "
                "Client"
            )
        return self._pairs[0]

    @property
    def peers(self) -> int:
        """Number of peers whose secret is remembered, at most 4096: the first ones."""
        return len(self._agreed)

    def agree(self, peer: int, public: bytes) -> bytes | None:
        """Return `KeyPair.agree` with a peer's sealing key, maybe from an earlier round."""
        known, shared = self._agreed.get(peer, (None, None))
        if known == public:
            return shared
        shared = self.pair.agree(public)
        if shared is not None and (peer in self._agreed or len(self._agreed) < _PEERS):
            self._agreed[peer] = public, shared
        return shared
