"""The server's stages up to the unmasking, each holding only what it still needs.

A stage takes the messages of its phase, checking each completely before it changes anything,
and closes into the next stage with the answers to send. Masked inputs are added as they come,
so memory does not grow with clients times elements.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np

from secagg import _fast
from secagg.errors import TooFewSurvivors
from secagg.protocol import Phase, Registry, RoundParams, keys
from secagg.protocol.identities import signed_keys, signed_survivors
from secagg.protocol.messages import (
    SEALED_BYTES,
    AdvertiseKeys,
    ConsistencySignature,
    MaskedInput,
    ShareKeys,
    Shares,
    encode,
    pack_ids,
)
from secagg.server.cohort import Cohort
from secagg.server.masked_sum import Question, Summed
from secagg.server.stage import SessionStage, Stage
from secagg.server.unmasking import Unmasking

__all__ = ["Advertising", "Consistency", "Masking", "Sharing"]


class Advertising(Stage):
    """Round 0: collect public keys; close into a roster for each client of U1."""

    phase = Phase.ADVERTISE_KEYS
    expected: None = None

    def __init__(self, params: RoundParams, registry: Registry | None, seed: bytes) -> None:
        super().__init__(params)
        self._registry = registry
        self._seed = seed
        self._publics: dict[int, tuple[bytes, bytes]] = {}
        self._signatures: dict[int, bytes] = {}
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
            self.require(
                keys.is_usable(key), u, "public key", "a key of low order or not canonical"
            )
        fresh = pair[0] != pair[1] and self._seen.isdisjoint(pair)
        self.require(fresh, u, "duplicate key", "a public key that was advertised before")
        self._check_signature(u, message)
        self._publics[u] = pair
        self._signatures[u] = message.signature
        self._seen.update(pair)

    def _check_signature(self, u: int, message: AdvertiseKeys) -> None:
        if self._registry is None:
            self.require(not message.signature, u, "length", "a signature, where nobody signs")
            return
        self.require(u in self._registry, u, "unknown client", "it is not in the registry")
        content = signed_keys(self.params.digest, u, message.seal_key, message.mask_key)
        signed = self._registry.verifies(u, content, message.signature)
        self.require(signed, u, "signature", "it did not sign these keys for this round")

    def close(self) -> tuple[Sharing, dict[int, bytes]]:
        """Draw the graph; answer with rosters."""
        self.enough(len(self._publics), self.params.min_survivors, "clients advertised keys")
        cohort = Cohort(
            self.params, self._publics, self._signatures, self._registry, self._seed
        )
        return Sharing(cohort), {u: cohort.roster(u) for u in cohort.publics}


class Sharing(SessionStage):
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
        answers = {
            u: self._inbox(u, [v for v in self.seen_by(u, u2) if v != u])
            for u in sorted(u2)
            if self.is_enough_for(u, u2)
        }
        return Masking(self.cohort, self._commitments, answers), answers

    def _inbox(self, u: int, senders: list[int]) -> bytes:
        """Gather what the senders sealed for u, each at u's place among their receivers."""
        pieces = []
        for sender in senders:
            place = bisect_left(self.cohort.graph.holders[sender], u) - (u > sender)
            start = SEALED_BYTES * place
            pieces.append(self._sealed[sender][start : start + SEALED_BYTES])
        return encode(Shares(self.cohort.session, pack_ids(senders), b"".join(pieces)))


class Masking(SessionStage):
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

    def close(self) -> tuple[Consistency | Unmasking, dict[int, bytes]]:
        """Answer with U3: to be signed, or with the requests to reveal shares."""
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
        summed = Summed(self.cohort, self._commitments, self._total, self._questions())
        enough = [u for u in summed.asked if self.is_enough_for(u, u3)]
        if self.params.active:
            answers = summed.to_sign(enough)
            return Consistency(summed, answers), answers
        answers = summed.to_unmask(enough)
        return Unmasking(summed, answers), answers

    def _questions(self) -> dict[int, Question]:
        """Make one question for all with the same holders: on the complete graph one in all."""
        u3, dropped = self._u3, self._commitments.keys() - self._u3
        holders, made = self.cohort.graph.holders, {}
        for u in sorted(u3):
            name = id(holders[u])  # there the graph holds one tuple for all
            if name not in made:
                made[name] = Question(self.seen_by(u, u3), self.seen_by(u, dropped))
        return {u: made[id(holders[u])] for u in sorted(u3)}


class Consistency(SessionStage):
    """Round 3, active variant: collect signatures over U3; those who give one are U4."""

    phase = Phase.CONSISTENCY_CHECK

    def __init__(self, summed: Summed, expected: Iterable[int]) -> None:
        super().__init__(summed.cohort, expected)
        self._summed = summed
        self._signatures: dict[int, bytes] = {}

    def take(self, u: int, data: bytes) -> None:
        """Check and keep a client's signature: a bad one would make every client give up."""
        message = self.read(u, data, ConsistencySignature)
        self.check_origin(u, message)
        survivors = pack_ids(self._summed.asked[u].survivors)
        content = signed_survivors(self.cohort.session, u, survivors)
        registry = self.cohort.registry
        signed = registry is not None and registry.verifies(u, content, message.signature)
        self.require(signed, u, "signature", "it did not sign these survivors")
        self._signatures[u] = message.signature

    def close(self) -> tuple[Unmasking, dict[int, bytes]]:
        """Answer U4 with the requests to reveal shares, and all its signatures."""
        u4 = dict(sorted(self._signatures.items()))
        self.enough(len(u4), self.params.min_survivors, "clients signed the survivors")
        answers = self._summed.to_unmask(u4, u4)
        return Unmasking(self._summed, answers), answers
