"""Stages of the server: their base class, and the stages that collect keys and signatures.

A stage begins with the server's messages to the clients (`asks`) and collects their replies
with `take`, which changes nothing if a reply is invalid. The table ``NEXT`` gives the next
stage, which is made of the value that `close` returns. See `sharing`, `masking` and `unmasking`
for the other stages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import ClassVar, NoReturn, TypeVar

from secagg.errors import Dispute, RemoteProtocolError, TooFewSurvivors, Verdict
from secagg.protocol import ClientPolicy, Phase, Registry, RoundParams, kem, keys
from secagg.protocol.identities import signed_keys, signed_survivors
from secagg.protocol.messages import (
    AdvertiseKeys,
    ConsistencyRequest,
    ConsistencySignature,
    MaskedInput,
    ShareKeys,
    UnmaskShares,
    decode,
    encode,
    pack_ids,
)
from secagg.protocol.params_bytes import compare
from secagg.server.cohort import Cohort, made_once
from secagg.server.summed import Summed

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
    verdicts : tuple of Verdict
        Proofs against clients that were found until now, in the active variant.
    disputes : tuple of Dispute
        Complaints that convict nobody, in the active variant from the close of round 2 on.
    """

    phase: ClassVar[Phase]
    params: RoundParams
    asks: Mapping[int, bytes]
    expected: Collection[int] | None = None
    session: bytes | None = None
    verdicts: tuple[Verdict, ...] = ()
    disputes: tuple[Dispute, ...] = ()

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
            self.reject(u, check, why)

    def reject(self, u: int, check: str, why: str) -> NoReturn:
        """Raise RemoteProtocolError for client u."""
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

    def __init__(
        self,
        cohort: Cohort,
        asks: Mapping[int, bytes],
        verdicts: tuple[Verdict, ...] = (),
        disputes: tuple[Dispute, ...] = (),
    ) -> None:
        self.params, self.asks = cohort.params, asks
        self.verdicts, self.disputes = verdicts, disputes
        self.cohort, self.session = cohort, cohort.session
        self.expected = frozenset(asks)


class Advertising(Stage):
    """Round 0: collect public keys; `close` returns the cohort U1."""

    phase = Phase.ADVERTISE_KEYS

    def __init__(
        self,
        params: RoundParams,
        registry: Registry | None,
        seed: bytes,
        policy: ClientPolicy | None = None,
    ) -> None:
        self.params, self.asks = params, {}
        self._registry = registry
        self._seed = seed
        self._policy = policy or ClientPolicy()
        self._kem_bytes = kem.KEY_BYTES if params.suite == "hybrid" else 0
        self._publics: dict[int, keys.PublicKeys] = {}
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
        wide = len(message.kem_key) == self._kem_bytes
        why = f"an encapsulation key has {self._kem_bytes} bytes in suite {self.params.suite}"
        self.require(wide, u, "length", why)
        publics = keys.PublicKeys(message.seal_key, message.mask_key, message.kem_key)
        usable = keys.is_usable(publics.seal) and keys.is_usable(publics.mask)
        usable = usable and (not publics.kem or kem.is_valid(publics.kem))
        why = "a key of low order or not canonical, or an encapsulation key is not reduced"
        self.require(usable, u, "public key", why)
        named = {*publics} - {b""}
        fresh = publics.seal != publics.mask and self._seen.isdisjoint(named)
        self.require(fresh, u, "duplicate key", "a public key that was advertised before")
        if self._registry is None:
            why = "a signature in a semi-honest round, which has none"
            self.require(not message.signature, u, "length", why)
        else:
            known = u in self._registry
            self.require(known, u, "unknown client", "the client is not in the registry")
            content = signed_keys(self.params.digest, u, publics)
            signed = self._registry.verifies(u, content, message.signature)
            why = "the client did not sign these keys for this round"
            self.require(signed, u, "signature", why)
        self._publics[u] = publics
        self._signatures[u] = message.signature
        self._seen |= named

    def close(self) -> Cohort:
        """Return the cohort, with a graph drawn on the clients."""
        self.enough(len(self._publics), self.params.min_survivors, "clients advertised keys")
        registered = 0 if self._registry is None else len(self._registry)
        return Cohort(
            self.params,
            self._publics,
            self._signatures,
            self._registry,
            self._seed,
            self._policy.colluders_of(self.params, registered) if self.params.active else 0,
        )


class Consistency(SessionStage):
    """Round 3, active variant: collect signatures over U3; the signers are U4."""

    phase = Phase.CONSISTENCY_CHECK

    def __init__(self, summed: Summed) -> None:
        session = summed.cohort.session
        requests = made_once(
            {u: summed.asked[u] for u in summed.present},
            lambda asked: encode(ConsistencyRequest(session, pack_ids(asked.survivors))),
        )
        super().__init__(summed.cohort, requests, summed.verdicts, summed.disputes)
        self._summed = summed
        self._signatures: dict[int, bytes] = {}

    def take(self, u: int, data: bytes) -> None:
        """Validate and store a client's signature, which would end every client if invalid."""
        message = self.read(u, data, ConsistencySignature)
        survivors = pack_ids(self._summed.asked[u].survivors)
        content = signed_survivors(self.cohort.session, u, survivors)
        signed = self.cohort.verifies(u, content, message.signature)
        self.require(signed, u, "signature", "the client did not sign these survivors")
        self._signatures[u] = message.signature

    def close(self) -> Summed:
        """Return the masked sum with all signatures of U4."""
        u4 = dict(sorted(self._signatures.items()))
        self.enough(len(u4), self.params.least, "clients signed the survivors")
        return replace(self._summed, present=u4.keys(), signatures=u4)
