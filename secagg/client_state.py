"""What a client holds between rounds: one state at a time, and only what is still needed.

Moving on to the next state is what drops the secrets of the one before.
"""

from __future__ import annotations

from dataclasses import dataclass

from secagg import keys
from secagg.rounds import Phase

__all__ = ["Advertised", "ClientState", "Ended", "Masked", "New", "Shared"]


@dataclass(frozen=True, repr=False)
class New:
    """Nothing has been drawn yet."""

    phase = Phase.ADVERTISE_KEYS


@dataclass(frozen=True, repr=False)
class Advertised:
    """After round 0: the key pairs c_u and s_u."""

    seal_pair: keys.KeyPair
    mask_pair: keys.KeyPair
    phase = Phase.SHARE_KEYS


@dataclass(frozen=True, repr=False)
class Shared:
    """After round 1: what it takes to open the others' shares and to make the masks."""

    session: bytes
    mask_pair: keys.KeyPair
    seed: bytes
    own_share: bytes
    mask_publics: dict[int, bytes]
    opening: dict[int, bytes]
    phase = Phase.MASKED_INPUT


@dataclass(frozen=True, repr=False)
class Masked:
    """After round 2: only the shares that others entrusted to this client, by owner."""

    session: bytes
    self_shares: dict[int, bytes]
    mask_shares: dict[int, bytes]
    phase = Phase.UNMASKING


@dataclass(frozen=True)
class Ended:
    """Nothing is left."""

    phase: Phase


ClientState = New | Advertised | Shared | Masked | Ended
