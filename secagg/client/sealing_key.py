"""Sealing key of a client, and the secrets agreed on, over the rounds of a session."""

from __future__ import annotations

from collections.abc import Callable

from secagg._secrets import Confined
from secagg.errors import LocalProtocolError
from secagg.protocol import keys
from secagg.protocol.client_ids import ClientKey, identify

_PEERS = 4096  # about 1 MB


class SealingKey(Confined):
    """X25519 key pair c_u by which one client seals shares in all rounds of a session.

    Give the sealing key to the `Client` of each round. The first client draws the pair. Each
    client agrees only with peers that are new or have another key. So a later round takes one
    X25519 for each neighbour, not two. The keys that seal are new in every round; the secrets
    of the round's masking keys enter, too (docs/protocol.md, §5.3). On a sparse graph, the
    neighbours stay the same with ``Server(graph_seed=…)``.

    A thief of the sealing key can open boxes of earlier rounds that this client exchanged with
    peers, but only if the server has rebuilt the peer's masking seed. Make a new sealing key
    for each session, and drop the key at the end.

    Parameters
    ----------
    client_id : int or str
        Id or name of the client, as in `Client`.

    Attributes
    ----------
    client_id : int
        Id of the client.

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
        """Make the pair from a seed of 32 bytes, unless an earlier call has made the pair."""
        if not self._pairs:
            # if two threads draw, the first pair counts
            self._pairs.append(keys.KeyPair(seed()))

    @property
    def pair(self) -> keys.KeyPair:
        """The pair; LocalProtocolError before `draw`."""
        if not self._pairs:
            raise LocalProtocolError(
                f"the sealing key of client {self.client_id} has no pair yet; give it to its "
                "Client"
            )
        return self._pairs[0]

    @property
    def peers(self) -> int:
        """Number of remembered secrets, at most 4096: the secrets of the earliest peers."""
        return len(self._agreed)

    def agree(self, peer: int, public: bytes) -> bytes | None:
        """Return `KeyPair.agree` with a peer's sealing key, maybe from an earlier round."""
        known, shared = self._agreed.get(peer, (None, None))
        if known == public:
            return shared
        shared = self.pair.agree(public)
        # bounded: new peers in every round must not fill the memory
        if shared is not None and (peer in self._agreed or len(self._agreed) < _PEERS):
            self._agreed[peer] = public, shared
        return shared
