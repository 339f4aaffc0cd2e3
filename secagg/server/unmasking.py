"""Last stage of the server: from the shares of round 4 to the sum (Bonawitz 2017, round 4)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from secagg.protocol import Phase, keys
from secagg.protocol.messages import SHARE_BYTES, SHARE_LIMBS, UnmaskShares
from secagg.server.masked_sum import Summed
from secagg.server.recovery import Recovery
from secagg.server.result import RoundResult, decode_sum
from secagg.server.stages import SessionStage
from secagg.shamir.field import M61

__all__ = ["Unmasking"]


class Unmasking(SessionStage):
    """Round 4: ask for shares, rebuild the secrets with them and remove the masks."""

    phase = Phase.UNMASKING

    def __init__(self, summed: Summed) -> None:
        super().__init__(summed.cohort, summed.to_unmask())
        self._commitments = summed.commitments
        self._total = summed.total
        self._asked = summed.asked
        # one array for each client that answers: a row for each survivor it was asked about,
        # with a share of that one's b, and a row for each of the dropped, with one of its s
        self._answers: dict[int, NDArray[np.uint64]] = {}

    def take(self, u: int, data: bytes) -> None:
        """Check and keep the shares a client reveals."""
        message = self.read(u, data, UnmaskShares)
        self.check_origin(u, message)
        survivors, dropped = self._asked[u]
        owners = len(survivors) + len(dropped)
        whole = len(message.shares) == SHARE_BYTES * owners
        self.require(whole, u, "length", f"expected one share for each of {owners} owners")
        limbs = np.frombuffer(message.shares, dtype="<u8").astype(np.uint64)
        self.require(bool((limbs < M61).all()), u, "share", "a share is not a field element")
        self._answers[u] = limbs.reshape(-1, SHARE_LIMBS)

    def close(self) -> RoundResult:
        """Rebuild the secrets, remove the masks and decode the sum."""
        asked = (owner for lists in self._asked.values() for ids in lists for owner in ids)
        owners = sorted(set(asked))
        # count all shares first: below the threshold no secret is rebuilt
        for owner in owners:
            who = f"clients with a share of client {owner}'s secret answered"
            self.enough(
                len(self.cohort.seen_by(owner, self._answers)), self.params.threshold, who
            )
        recovery = Recovery(self.params.threshold)
        total = keys.MaskSum()
        for owner in owners:
            holders, shares = self.cohort.graph.holders[owner], self._shares_of(owner)
            if owner in self._asked:
                secret = recovery.rebuild(owner, holders, shares, self._is_self_mask(owner))
                key = keys.self_mask_key(secret, self.cohort.session, owner)
                total.add(key, negate=True)
            else:
                secret = recovery.rebuild(owner, holders, shares, self._is_mask_key(owner))
                self._remove_pairwise(owner, keys.KeyPair(secret), total)
        total.apply(self._total, self.params.ring)
        self.params.ring.reduce(self._total)
        survivors = tuple(sorted(self._asked))
        faulty = tuple(sorted(recovery.faulty))
        return decode_sum(self._total, survivors, faulty, self.params)

    def _shares_of(self, owner: int) -> dict[int, NDArray[np.uint64]]:
        shares = {}
        for u in self.cohort.seen_by(owner, self._answers):
            survivors, dropped = self._asked[u]
            if owner in self._asked:
                row = bisect_left(survivors, owner)
            else:
                row = len(survivors) + bisect_left(dropped, owner)
            shares[u] = self._answers[u][row]
        return shares

    def _is_self_mask(self, owner: int) -> Callable[[bytes], bool]:
        session, published = self.cohort.session, self._commitments[owner]
        return lambda seed: keys.commitment(seed, session, owner) == published

    def _is_mask_key(self, owner: int) -> Callable[[bytes], bool]:
        published = self.cohort.publics[owner][1]
        return lambda seed: keys.KeyPair(seed).public == published

    def _remove_pairwise(self, u: int, pair: keys.KeyPair, total: keys.MaskSum) -> None:
        """Undo the masks that the survivors made with the dropped client u."""
        for v in self.cohort.seen_by(u, self._asked):
            public = self.cohort.publics[v][1]
            shared = pair.agree(public)
            assert shared is not None, "checked when it was advertised"  # noqa: S101
            key = keys.pairwise_mask_key(
                shared, self.cohort.session, (u, pair.public), (v, public)
            )
            total.add(key, negate=not keys.subtracts(v, u))
