"""States of a client, one for each message sent, with only the secrets still needed.

Each state belongs to a phase, which the client looks up in the transition table.
Moving on to the next state drops the secrets of the one before.
"""

from __future__ import annotations

from dataclasses import dataclass

from secagg.protocol import Phase, keys

__all__ = ["Advertised", "ClientState", "Ended", "Entrusted", "New", "Shared"]


@dataclass(frozen=True, repr=False)
class ClientState:
    """State of a client; `phase` is the message that is due next."""

    phase: Phase


@dataclass(frozen=True, repr=False)
class New(ClientState):
    """Before round 0: nothing has been drawn."""


@dataclass(frozen=True, repr=False)
class Advertised(ClientState):
    """After round 0: the key pairs c_u and s_u."""

    seal_pair: keys.KeyPair
    mask_pair: keys.KeyPair


@dataclass(frozen=True, repr=False)
class Shared(ClientState):
    """After round 1: the keys to the others' shares, and the secrets behind the masks."""

    session: bytes
    mask_pair: keys.KeyPair
    seed: bytes
    own_share: bytes
    mask_publics: dict[int, bytes]
    opening: dict[int, bytes]


@dataclass(frozen=True, repr=False)
class Entrusted(ClientState):
    """After round 2: the shares that others entrusted to this client, by owner.

    Its own is among the b-shares. `signed` is U3, packed, once signed in round 3.
    """

    session: bytes
    self_shares: dict[int, bytes]
    mask_shares: dict[int, bytes]
    signed: bytes | None = None


@dataclass(frozen=True, repr=False)
class Ended(ClientState):
    """Finished or failed: no secret is left."""
