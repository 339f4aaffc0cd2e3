"""States of a client: the secrets that the client keeps after each sent message.

After every message the client replaces the whole state. The new state has only the secrets that
a later message needs, so the client drops all other secrets. Only a `SealingKey` can outlive a
round: the application may keep the key for all rounds of a session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from secagg._secrets import Confined
from secagg.errors import LocalProtocolError
from secagg.protocol import Phase, keys
from secagg.protocol.client_ids import ClientKey, identify
from secagg.protocol.kem import KemPair
from secagg.protocol.keys import U8, U64

_PEERS = 4096  # about 1 MB


class SealingKey(Confined):
    """X25519 key pair c_u by which one client seals shares in all rounds of a session.

    Give the sealing key to the `Client` of each round. The first client draws the pair. Each
    client agrees only with peers that are new or have another key. So a later round takes one
    X25519 for each neighbour, not two. The keys that seal are new in every round; the secrets
    of the round's masking keys enter, too (docs/protocol.md, §5.3). On a sparse graph, the
    neighbours stay the same with ``Server(graph_seed=…)``.

    A thief of the sealing key can open boxes of earlier rounds that this client exchanged with
    peers, but only if the server has rebuilt the masking seed of the peer or of this client,
    and not in suite hybrid. Make a new sealing key for each session, and drop the key at the
    end.

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

    def agree(self, peers: Mapping[int, bytes]) -> U8:
        """Return the X25519 secrets with usable sealing keys of peers, shape (m, 32).

        Secrets with peers of earlier rounds that have the same key are remembered.
        """
        agreed = self._agreed
        fresh = {v: key for v, key in peers.items() if agreed.get(v, (None,))[0] != key}
        made = map(bytes, self.pair.agree(keys.rows_of(fresh.values())))
        new = dict(zip(fresh, made, strict=True))
        for v, key in fresh.items():
            # bounded: new peers in every round must not fill the memory
            if v in agreed or len(agreed) < _PEERS:
                agreed[v] = key, new[v]
        return keys.rows_of(new.get(v) or agreed[v][1] for v in peers)


@dataclass(frozen=True, repr=False)
class ClientState(Confined):
    """State of a client; `phase` is the message that is due next."""

    _remedy = "its masks are for one vector; make a new client for a new session"

    phase: Phase


@dataclass(frozen=True, repr=False)
class New(ClientState):
    """State before round 0: the client has no secret yet."""


@dataclass(frozen=True, repr=False)
class Advertised(ClientState):
    """State after round 0: the key pairs c_u (sealing) and s_u (masking).

    `kem_pair` is e_u in suite hybrid, and None in suite x25519.
    """

    sealing: SealingKey
    mask_pair: keys.KeyPair
    kem_pair: KemPair | None

    @property
    def publics(self) -> keys.PublicKeys:
        """The public keys of all pairs."""
        kem = b"" if self.kem_pair is None else self.kem_pair.public
        return keys.PublicKeys(self.sealing.pair.public, self.mask_pair.public, kem)


@dataclass(frozen=True, eq=False, repr=False)
class Peers(Confined):
    """Secrets that a client keeps between rounds 1 and 2, with a row for each peer.

    Attributes
    ----------
    ids : uint64 array, shape (m,)
        Ascending ids of the holders of this client's shares, without this client.
    mask_publics : uint8 array, shape (m, 32)
        The peers' masking keys s_v, which a peer's signed dealing has; in the semi-honest
        variant of shape (m, 0).
    opening : uint8 array, shape (m, 32)
        Key of the box from each peer; in suite hybrid B, from which the key follows.
    masking : uint8 array, shape (m, 16) or (m, 32)
        Key of the mask with each peer; in suite hybrid the agreement A.
    own_p, own_q : uint8 arrays, shape (m, 32)
        Contributions of this client for each peer; in suite x25519 of shape (m, 0).
    """

    _remedy = "its masks are for one vector; make a new client for a new session"

    ids: U64
    mask_publics: U8
    opening: U8
    masking: U8
    own_p: U8
    own_q: U8

    def of(self, ids: U64) -> Peers:
        """Return the rows of some peers, by ascending ids."""
        rows = self.ids.searchsorted(ids)
        columns = (self.mask_publics, self.opening, self.masking, self.own_p, self.own_q)
        return Peers(ids, *(column[rows] for column in columns))


@dataclass(frozen=True, eq=False, repr=False)
class Shared(ClientState):
    """State after round 1: b_u, and what opens the peers' boxes and derives the masks.

    `own_share` is the client's own share of b. `kem_pair` is as in `Advertised`.
    """

    session: bytes
    seed: bytes
    own_share: bytes
    kem_pair: KemPair | None
    peers: Peers


@dataclass(frozen=True, repr=False)
class Entrusted(ClientState):
    """State after round 2: the shares of other clients' secrets, by the owner's id.

    `self_shares` includes the client's own share of b. Both shares of an owner that the client
    complained of are `dealing.NO_SHARE`. `signed` has the packed ids of U3 after round 3, and
    is None before.
    """

    session: bytes
    self_shares: dict[int, bytes]
    mask_shares: dict[int, bytes]
    signed: bytes | None = None


@dataclass(frozen=True, repr=False)
class Ended(ClientState):
    """State after the round has finished or failed: no secret is left."""
