"""States of a client: the secrets that the client keeps after each sent message.

The client replaces its state after every message, and takes the new phase from ``NEXT``. So
every secret is dropped as soon as no later message needs that secret.
"""

from __future__ import annotations

from dataclasses import dataclass

from secagg._secrets import Confined
from secagg.client.sealing_key import SealingKey
from secagg.protocol import Phase, keys


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
    """State after round 0: the key pairs c_u (sealing) and s_u (masking)."""

    sealing: SealingKey
    mask_pair: keys.KeyPair


@dataclass(frozen=True, repr=False)
class Shared(ClientState):
    """State after round 1: b_u, and for each peer the keys of masks and of received shares."""

    session: bytes
    seed: bytes
    own_share: bytes
    mask_keys: dict[int, bytes]
    opening: dict[int, bytes]


@dataclass(frozen=True, repr=False)
class Entrusted(ClientState):
    """State after round 2: the shares of other clients' secrets, by the owner's id.

    `self_shares` includes the client's own share of b. `signed` has the packed ids of U3 after
    round 3, and is None before.
    """

    session: bytes
    self_shares: dict[int, bytes]
    mask_shares: dict[int, bytes]
    signed: bytes | None = None


@dataclass(frozen=True, repr=False)
class Ended(ClientState):
    """State after the round has finished or failed: no secret is left."""
