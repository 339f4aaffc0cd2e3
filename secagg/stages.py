"""The server's four stages, one for each phase, each holding only what it still needs.

A stage takes the messages of its phase, checking each completely before it changes anything,
and closes into the next stage with the answers to send. Masked inputs are added as they come,
so memory does not grow with clients times elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from secagg import _fast, keys, masks
from secagg.cohort import Cohort
from secagg.errors import RemoteProtocolError, TooFewSurvivors
from secagg.field import M61
from secagg.messages import (
    SEALED_BYTES,
    SHARE_BYTES,
    SHARE_LIMBS,
    AdvertiseKeys,
    MaskedInput,
    ShareKeys,
    Shares,
    UnmaskRequest,
    UnmaskShares,
    decode,
    encode,
    pack_ids,
)
from secagg.params import Entropy, RoundParams
from secagg.recovery import Recovery
from secagg.ring import Lanes
from secagg.rounds import Phase

__all__ = ["Advertising", "Masking", "Sharing", "Unmasked", "Unmasking"]

M = TypeVar("M", bound=Struct)


class _Stage:
    """What the stages have in common: reading a message and refusing one."""

    phase: ClassVar[Phase]

    def __init__(self, params: RoundParams) -> None:
        self.params = params

    def read(self, u: int, data: bytes, kind: type[M]) -> M:
        return decode(data, kind, self.params, sender=u, phase=self.phase)

    def require(self, condition: bool, u: int, check: str, why: str) -> None:
        if not condition:
            raise RemoteProtocolError(why, sender=u, phase=self.phase, check=check)

    def enough(self, survivors: int, needed: int, who: str) -> None:
        if survivors < needed:
            raise TooFewSurvivors(
                f"{survivors} {who} and it takes {needed}; nothing has been unmasked",
                phase=self.phase,
                survivors=survivors,
                needed=needed,
            )


class Advertising(_Stage):
    """Round 0: collect public keys; close into a roster for each client of U1."""

    phase = Phase.ADVERTISE_KEYS
    expected: None = None

    def __init__(self, params: RoundParams, entropy: Entropy) -> None:
        super().__init__(params)
        self._entropy = entropy
        self._publics: dict[int, tuple[bytes, bytes]] = {}
        self._seen: set[bytes] = set()

    def take(self, u: int, data: bytes) -> None:
        """Check and keep a client's public keys."""
        message = self.read(u, data, AdvertiseKeys)
        self.require(message.sender == u, u, "sender", f"it names client {message.sender}")
        same = message.parameters == self.params.digest
        self.require(same, u, "parameters", "its parameters differ from this server's")
        full = len(self._publics) >= self.params.n_clients
        self.require(not full, u, "cohort", f"{self.params.n_clients} clients are in already")
        pair = (message.seal_key, message.mask_key)
        for key in pair:
            self.require(keys.is_usable(key), u, "public key", "a key of low order")
        fresh = pair[0] != pair[1] and self._seen.isdisjoint(pair)
        self.require(fresh, u, "duplicate key", "a public key that was advertised before")
        self._publics[u] = pair
        self._seen.update(pair)

    def close(self) -> tuple[Sharing, dict[int, bytes]]:
        """Draw the graph; answer with rosters."""
        self.enough(len(self._publics), self.params.min_survivors, "clients advertised keys")
        cohort = Cohort(self.params, self._publics, self._entropy)
        return Sharing(cohort), {u: cohort.roster(u) for u in cohort.publics}


class _Session(_Stage):
    """A stage after round 0: it knows the cohort and whose messages it expects."""

    def __init__(self, cohort: Cohort, expected: Iterable[int]) -> None:
        super().__init__(cohort.params)
        self.cohort = cohort
        self.expected = frozenset(expected)

    def check_origin(self, u: int, message: ShareKeys | MaskedInput | UnmaskShares) -> None:
        self.require(message.sender == u, u, "sender", f"it names client {message.sender}")
        same = message.session == self.cohort.session
        self.require(same, u, "session", "a message of another session")

    def seen_by(self, u: int, clients: Iterable[int]) -> list[int]:
        """Return those of `clients` that are u's holders, ascending."""
        among = set(clients)
        return [v for v in self.cohort.graph.holders[u] if v in among]

    def is_enough_for(self, u: int, clients: Iterable[int]) -> bool:
        """Tell whether client u sees enough of `clients` to accept the next message."""
        return len(self.seen_by(u, clients)) >= self.params.min_survivors


class Sharing(_Session):
    """Round 1: collect sealed shares; close into what each client of U2 is to open."""

    phase = Phase.SHARE_KEYS

    def __init__(self, cohort: Cohort) -> None:
        super().__init__(cohort, cohort.publics)
        self._commitments: dict[int, bytes] = {}
        self._sealed: dict[int, bytes] = {}

    def take(self, u: int, data: bytes) -> None:
        """Check and keep a client's commitment and sealed shares."""
        message = self.read(u, data, ShareKeys)
        self.check_origin(u, message)
        receivers = len(self.cohort.graph.holders[u]) - 1
        whole = len(message.sealed) == SEALED_BYTES * receivers
        self.require(whole, u, "length", f"not one sealed share for each of {receivers}")
        self._commitments[u] = message.commitment
        self._sealed[u] = message.sealed

    def close(self) -> tuple[Masking, dict[int, bytes]]:
        """Answer with what was sealed for each client."""
        u2 = self._sealed.keys()
        self.enough(len(u2), self.params.min_survivors, "clients shared their keys")
        inbox: dict[int, list[tuple[int, bytes]]] = {u: [] for u in sorted(u2)}
        for sender in inbox:
            receivers = [v for v in self.cohort.graph.holders[sender] if v != sender]
            for i, receiver in enumerate(receivers):
                if receiver in u2:
                    piece = self._sealed[sender][SEALED_BYTES * i : SEALED_BYTES * (i + 1)]
                    inbox[receiver].append((sender, piece))
        answers = {
            u: encode(
                Shares(
                    self.cohort.session,
                    pack_ids([sender for sender, _ in pieces]),
                    b"".join(piece for _, piece in pieces),
                )
            )
            for u, pieces in inbox.items()
            if self.is_enough_for(u, u2)
        }
        return Masking(self.cohort, self._commitments, answers), answers


class Masking(_Session):
    """Round 2: add up masked inputs; close into a request to the clients of U3."""

    phase = Phase.MASKED_INPUT

    def __init__(
        self, cohort: Cohort, commitments: dict[int, bytes], expected: Iterable[int]
    ) -> None:
        super().__init__(cohort, expected)
        self._commitments = commitments
        self._total = self.params.ring.zeros(self.params.elements)
        self._values = np.empty_like(self._total)
        self._u3: set[int] = set()

    def take(self, u: int, data: bytes) -> None:
        """Check a masked input, add it to the total and forget it."""
        message = self.read(u, data, MaskedInput)
        self.check_origin(u, message)
        ring, values = self.params.ring, self._values
        try:
            _fast.unpack_bits(message.values, ring.bits, values)
        except ValueError:
            why = f"not {values.size} elements of {ring.bits} bits"
            self.require(False, u, "length", why)
        inside = ring.is_power_of_two or int(values.max()) < ring.modulus
        self.require(inside, u, "range", f"an element outside [0, {ring})")
        ring.add_into(self._total, values)
        self._u3.add(u)

    def close(self) -> tuple[Unmasking, dict[int, bytes]]:
        """Answer with requests to reveal shares."""
        u2, u3 = self._commitments.keys(), self._u3
        self.enough(len(u3), self.params.min_survivors, "clients sent an input")
        if not self.cohort.graph.is_connected(u3):
            raise TooFewSurvivors(
                f"the graph of the {len(u3)} survivors is in pieces, which would be unmasked "
                "one by one; nothing has been unmasked",
                phase=self.phase,
                survivors=len(u3),
                needed=len(u2),
            )
        requests = {u: (self.seen_by(u, u3), self.seen_by(u, u2 - u3)) for u in sorted(u3)}
        answers = {
            u: encode(UnmaskRequest(self.cohort.session, *map(pack_ids, request)))
            for u, request in requests.items()
            if self.is_enough_for(u, u3)
        }
        return Unmasking(
            self.cohort, self._commitments, self._total, requests, answers
        ), answers


class Unmasking(_Session):
    """Round 4: collect shares; close by rebuilding the secrets and removing the masks.

    `requests` has, for every client of U3, the survivors and the dropped among its holders.
    """

    phase = Phase.UNMASKING

    def __init__(
        self,
        cohort: Cohort,
        commitments: dict[int, bytes],
        total: Lanes,
        requests: dict[int, tuple[list[int], list[int]]],
        expected: Iterable[int],
    ) -> None:
        super().__init__(cohort, expected)
        self._commitments = commitments
        self._total = total
        self._requests = requests
        # owner -> holder -> its share of the owner's b (survivors) or s (dropped)
        self._shares: dict[int, dict[int, NDArray[np.uint64]]] = {
            owner: {} for lists in requests.values() for ids in lists for owner in ids
        }

    def take(self, u: int, data: bytes) -> None:
        """Check and keep the shares a client reveals."""
        message = self.read(u, data, UnmaskShares)
        self.check_origin(u, message)
        survivors, dropped = self._requests[u]
        owners = survivors + dropped
        whole = len(message.shares) == SHARE_BYTES * len(owners)
        self.require(whole, u, "length", f"not one share for each of {len(owners)}")
        limbs = np.frombuffer(message.shares, dtype="<u8").astype(np.uint64)
        self.require(bool((limbs < M61).all()), u, "share", "a share is not a field element")
        for owner, share in zip(owners, limbs.reshape(-1, SHARE_LIMBS), strict=True):
            self._shares[owner][u] = share

    def close(self) -> tuple[Unmasked, dict[int, bytes]]:
        """Rebuild the secrets and remove the masks; there are no answers."""
        # every count before any secret: below the threshold nothing is rebuilt at all
        for owner, shares in self._shares.items():
            who = f"shares of client {owner}'s secret came"
            self.enough(len(shares), self.params.threshold, who)
        recovery = Recovery(self.params.threshold)
        total = masks.MaskSum()
        for owner, shares in self._shares.items():
            holders = self.cohort.graph.holders[owner]
            if owner in self._requests:
                secret = recovery.rebuild(owner, holders, shares, self._is_self_mask(owner))
                key = keys.self_mask_key(secret, self.cohort.session, owner)
                total.add(key, negate=True)
            else:
                secret = recovery.rebuild(owner, holders, shares, self._is_mask_key(owner))
                self._remove_pairwise(owner, keys.KeyPair(secret), total)
        total.apply(self._total, self.params.ring)
        self.params.ring.reduce(self._total)
        survivors = tuple(sorted(self._requests))
        return Unmasked(self._total, survivors, tuple(sorted(recovery.faulty))), {}

    def _is_self_mask(self, owner: int) -> Callable[[bytes], bool]:
        session, published = self.cohort.session, self._commitments[owner]
        return lambda seed: keys.commitment(seed, session, owner) == published

    def _is_mask_key(self, owner: int) -> Callable[[bytes], bool]:
        published = self.cohort.publics[owner][1]
        return lambda seed: keys.KeyPair(seed).public == published

    def _remove_pairwise(self, u: int, pair: keys.KeyPair, total: masks.MaskSum) -> None:
        """Undo the masks that the survivors made with the dropped client u."""
        for v in self.seen_by(u, self._requests):
            public = self.cohort.publics[v][1]
            shared = pair.agree(public)
            assert shared is not None, "checked when it was advertised"  # noqa: S101
            key = keys.pairwise_mask_key(
                shared, self.cohort.session, (u, pair.public), (v, public)
            )
            total.add(key, negate=not masks.subtracts(v, u))


@dataclass(frozen=True)
class Unmasked:
    """The end: the sum modulo R, whose it is, and who sent wrong shares."""

    total: Lanes
    survivors: tuple[int, ...]
    faulty: tuple[int, ...]
