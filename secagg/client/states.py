"""What a client holds between rounds: one state at a time, and only what is still needed.

Moving on to the next state is what drops the secrets of the one before.
"""

from __future__ import annotations

from dataclasses import dataclass

from secagg.protocol import Phase, keys

__all__ = [
    "Advertised",
    "Agreed",
    "ClientState",
    "Ended",
    "Entrusted",
    "Masked",
    "New",
    "Shared",
]


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
class Entrusted:
    """The shares that others entrusted to this client, by owner: all it holds from round 2 on.

    Among the b-shares is its own.
    """

    session: bytes
    self_shares: dict[int, bytes]
    mask_shares: dict[int, bytes]


@dataclass(frozen=True, repr=False)
class Masked:
    """After round 2 of the active variant: it has not signed any U3 yet."""

    entrusted: Entrusted
    phase = Phase.CONSISTENCY_CHECK


@dataclass(frozen=True, repr=False)
class Agreed:
    """After round 3, with the U3 it signed, packed; semi-honest after round 2, with None."""

    entrusted: Entrusted
    survivors: bytes | None
    phase = Phase.UNMASKING


@dataclass(frozen=True)
class Ended:
    """Nothing is left."""

    phase: Phase


ClientState = New | Advertised | Shared | Masked | Agreed | Ended
