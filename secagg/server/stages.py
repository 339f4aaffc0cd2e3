"""Stages of the server: one class for each phase, up to the unmasking.

A stage begins with the server's messages to the clients (`asks`) and collects their replies
with `take`, which changes nothing if a reply is invalid. The table ``NEXT`` gives the next
stage, which is made of the value that `close` returns. Masked inputs are added as they arrive,
so memory does not grow with the number of clients times elements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from secagg import _fast
from secagg.errors import RemoteProtocolError, TooFewSurvivors
from secagg.protocol import Phase, Registry, RoundParams, keys
from secagg.protocol.identities import signed_keys, signed_survivors
from secagg.protocol.messages import (
    SEALED_BYTES,
    AdvertiseKeys,
    ConsistencyRequest,
    ConsistencySignature,
    MaskedInput,
    Roster,
    ShareKeys,
    Shares,
    UnmaskShares,
    decode,
    encode,
    pack_ids,
)
from secagg.protocol.params_bytes import compare
from secagg.server.cohort import Cohort, PerPeer, Question, Summed, made_once

M = TypeVar("M", AdvertiseKeys, ShareKeys, MaskedInput, ConsistencySignature, UnmaskShares)


class Stage(ABC):
    """Base of all stages.

    Attributes
    ----------
    phase : Phase
    params : RoundParams
    asks : mapping of id to bytes
        Messages of the server to the clients at the beginning of the stage.
    expected : collection of ids or None
        Clients that may answer; None if any client may.
    session : bytes or None
        Session of all messages after round 0.
    """

    phase: ClassVar[Phase]
    params: RoundParams
    asks: Mapping[int, bytes]
    expected: Collection[int] | None = None
    session: bytes | None = None

    @abstractmethod
    def take(self, u: int, data: bytes) -> None:
        """Validate a message of client u and store the content, or raise."""

    @abstractmethod
    def close(self) -> object:
        """Return the value that the next stage is made of, or raise to abort the round."""

    def read(self, u: int, data: bytes, kind: type[M]) -> M:
        """Decode a message of client u; raise RemoteProtocolError, also for another sender."""
        message = decode(data, kind, self.params, sender=u, phase=self.phase)
        named = message.sender
        self.require(named == u, u, "sender", f"the message names client {named}")
        same = isinstance(message, AdvertiseKeys) or message.session == self.session
        self.require(same, u, "session", "the message belongs to another session")
        return message

    def require(self, condition: bool, u: int, check: str, why: str) -> None:
        """Raise RemoteProtocolError for client u unless the condition is True."""
        if not condition:
            raise RemoteProtocolError(why, sender=u, phase=self.phase, check=check)

    def enough(self, survivors: int, needed: int, who: str) -> None:
        """Raise TooFewSurvivors if there are fewer survivors than needed."""
        if survivors < needed:
            raise TooFewSurvivors(
                f"{survivors} {who}, but {needed} are needed; nothing has been unmasked: begin "
                "a new round",
                phase=self.phase,
                survivors=survivors,
                needed=needed,
            )


class SessionStage(Stage):
    """Base of the stages after round 0: only the clients that got a message may answer."""

    def __init__(self, cohort: Cohort, asks: Mapping[int, bytes]) -> None:
        self.params, self.asks = cohort.params, asks
        self.cohort, self.session = cohort, cohort.session
        self.expected = frozenset(asks)


class Advertising(Stage):
    """Round 0: collect public keys; `close` returns the cohort U1."""

    phase = Phase.ADVERTISE_KEYS

    def __init__(self, params: RoundParams, registry: Registry | None, seed: bytes) -> None:
        self.params, self.asks = params, {}
        self._registry = registry
        self._seed = seed
        self._publics: dict[int, tuple[bytes, bytes]] = {}
        self._signatures: dict[int, bytes] = {}
        self._seen: set[bytes] = set()

    def take(self, u: int, data: bytes) -> None:
        """Validate and store a client's public keys."""
        message = self.read(u, data, AdvertiseKeys)
        elsewhere, why = compare(self.params.to_bytes(), message.parameters, "at the client")
        self.require(not elsewhere, u, "session", why)
        self.require(not why, u, "parameters", f"{why}; give both sides the same")
        n = self.params.n_clients
        room = len(self._publics) < n
        self.require(room, u, "cohort", f"the round already has its {n} clients")
        pair = (message.seal_key, message.mask_key)
        usable = all(map(keys.is_usable, pair))
        self.require(usable, u, "public key", "a key of low order or not canonical")
        fresh = pair[0] != pair[1] and self._seen.isdisjoint(pair)
        self.require(fresh, u, "duplicate key", "a public key that was advertised before")
        if self._registry is None:
            why = "a signature in a semi-honest round, which has none"
            self.require(not message.signature, u, "length", why)
        else:
            known = u in self._registry
            self.require(known, u, "unknown client", "the client is not in the registry")
            content = signed_keys(self.params.digest, u, *pair)
            signed = self._registry.verifies(u, content, message.signature)
            why = "the client did not sign these keys for this round"
            self.require(signed, u, "signature", why)
        self._publics[u] = pair
        self._signatures[u] = message.signature
        self._seen.update(pair)

    def close(self) -> Cohort:
        """Return the cohort, with a graph drawn on the clients."""
        self.enough(len(self._publics), self.params.min_survivors, "clients advertised keys")
        return Cohort(self.params, self._publics, self._signatures, self._registry, self._seed)


@dataclass(frozen=True, eq=False)
class KeysShared:
    """Commitment and sealed shares of each client of U2, by id.

    Attributes
    ----------
    cohort : Cohort
    commitments : dict of id to bytes
    sealed : PerPeer of uint8
    present : list of int, ascending
        Clients with enough holders in U2, which can send an input.
    """

    cohort: Cohort
    commitments: dict[int, bytes]
    sealed: PerPeer[np.uint8]
    present: list[int]


class Sharing(SessionStage):
    """Round 1: send rosters and collect sealed shares; `close` returns all sealed shares."""

    phase = Phase.SHARE_KEYS

    def __init__(self, cohort: Cohort) -> None:
        rosters = made_once(
            cohort.graph.holders,
            lambda holders: encode(
                Roster(
                    cohort.params.to_bytes(),
                    len(cohort.publics),
                    cohort.digest,
                    pack_ids(holders),
                    b"".join(cohort.publics[v][0] for v in holders),
                    b"".join(cohort.publics[v][1] for v in holders),
                    b"".join(cohort.signatures[v] for v in holders),
                )
            ),
        )
        super().__init__(cohort, rosters)
        self._commitments: dict[int, bytes] = {}
        ids = made_once(cohort.graph.holders, lambda holders: np.array(holders, np.uint64))
        receivers = {u: own[own != u] for u, own in ids.items()}
        self._sealed = PerPeer(receivers, SEALED_BYTES, np.uint8)

    def take(self, u: int, data: bytes) -> None:
        """Validate and store a client's commitment and sealed shares."""
        message = self.read(u, data, ShareKeys)
        own = self._sealed.items[self._sealed.rows[u]]
        why = f"expected one sealed share for each of {len(own)} receivers"
        self.require(len(message.sealed) == own.nbytes, u, "length", why)
        own[:] = np.frombuffer(message.sealed, np.uint8).reshape(own.shape)
        self._commitments[u] = message.commitment
        self._sealed.came.add(u)

    def close(self) -> KeysShared:
        """Return the commitments and sealed shares."""
        fewest, least, u2 = self.params.min_survivors, self.params.least, self._commitments
        self.enough(len(u2), fewest, "clients shared their keys")
        # a client with too few holders left would reject its shares, so nothing is sent to it
        present = [u for u in sorted(u2) if len(self.cohort.seen_by(u, u2)) >= least]
        self.enough(
            len(present), fewest, f"clients have {least} holders that shared their keys"
        )
        return KeysShared(self.cohort, self._commitments, self._sealed, present)


class Masking(SessionStage):
    """Round 2: send sealed shares and add up masked inputs; `close` returns their sum."""

    phase = Phase.MASKED_INPUT

    def __init__(self, shared: KeysShared) -> None:
        cohort, items, rows = shared.cohort, shared.sealed.items, shared.sealed.by_peer()
        inboxes = {}
        for u in shared.present:
            senders = pack_ids([v for v in cohort.seen_by(u, shared.commitments) if v != u])
            inboxes[u] = encode(Shares(cohort.session, senders, items[rows[u]].tobytes()))
        super().__init__(cohort, inboxes)
        self._commitments = shared.commitments
        self._total = self.params.ring.zeros(self.params.elements)
        # one array, in which each input is unpacked before its addition
        self._values = np.empty_like(self._total)
        self._u3: set[int] = set()

    def take(self, u: int, data: bytes) -> None:
        """Validate a masked input and add the input to the total; only the total is stored."""
        message = self.read(u, data, MaskedInput)
        ring, values = self.params.ring, self._values
        try:
            _fast.unpack_bits(message.values, ring.bits, values)
        except ValueError:
            why = f"expected {values.size} elements of {ring.bits} bits"
            self.require(False, u, "length", why)
        # with R = 2^b no pattern of b bits is out of range
        if not ring.is_power_of_two:
            inside = int(values.max()) < ring.modulus
            self.require(inside, u, "range", f"an element outside [0, {ring})")
        ring.add_into(self._total, values)
        self._u3.add(u)

    def close(self) -> Summed:
        """Return the masked sum; abort if U3 is too small or not connected in the graph."""
        least, u2, u3 = self.params.least, self._commitments.keys(), self._u3
        self.enough(len(u3), self.params.min_survivors, "clients sent an input")
        if not self.cohort.graph.is_connected(u3):
            raise TooFewSurvivors(
                f"the graph of the {len(u3)} survivors is not connected, which would reveal "
                "the sum of each part; nothing has been unmasked",
                phase=self.phase,
                survivors=len(u3),
                needed=len(u2),
            )
        dropped, holders = u2 - u3, self.cohort.graph.holders
        asked = made_once(
            {u: holders[u] for u in sorted(u3)},
            lambda them: Question(
                [v for v in them if v in u3], [v for v in them if v in dropped]
            ),
        )
        present = [u for u in asked if len(self.cohort.seen_by(u, u3)) >= least]
        threshold = self.params.threshold
        self.enough(len(present), threshold, f"clients have {least} holders that sent an input")
        return Summed(self.cohort, self._commitments, self._total, asked, present)


class Consistency(SessionStage):
    """Round 3, active variant: collect signatures over U3; the signers are U4."""

    phase = Phase.CONSISTENCY_CHECK

    def __init__(self, summed: Summed) -> None:
        session = summed.cohort.session
        requests = made_once(
            {u: summed.asked[u] for u in summed.present},
            lambda asked: encode(ConsistencyRequest(session, pack_ids(asked.survivors))),
        )
        super().__init__(summed.cohort, requests)
        self._summed = summed
        self._signatures: dict[int, bytes] = {}

    def take(self, u: int, data: bytes) -> None:
        """Validate and store a client's signature, which would end every client if invalid."""
        message = self.read(u, data, ConsistencySignature)
        survivors = pack_ids(self._summed.asked[u].survivors)
        content = signed_survivors(self.cohort.session, u, survivors)
        registry = self.cohort.registry
        signed = registry is not None and registry.verifies(u, content, message.signature)
        self.require(signed, u, "signature", "the client did not sign these survivors")
        self._signatures[u] = message.signature

    def close(self) -> Summed:
        """Return the masked sum with all signatures of U4."""
        u4 = dict(sorted(self._signatures.items()))
        self.enough(len(u4), self.params.least, "clients signed the survivors")
        return replace(self._summed, present=u4.keys(), signatures=u4)
