"""Last stage of the server: from the shares of round 4 to the sum (Bonawitz 2017, round 4)."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from secagg.protocol import Phase, keys
from secagg.protocol.masks import MaskSum
from secagg.protocol.messages import SHARE_BYTES, SHARE_LIMBS, UnmaskShares
from secagg.server.masked_sum import Question, Summed
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
        questions = {id(question): question for question in self._asked.values()}
        asked = (owner for lists in questions.values() for ids in lists for owner in ids)
        owners = sorted(set(asked))
        # count all shares first: below the threshold no secret is rebuilt
        for owner in owners:
            who = f"clients with a share of client {owner}'s secret answered"
            self.enough(
                len(self.cohort.seen_by(owner, self._answers)), self.params.threshold, who
            )
        recovery = Recovery(self.params.threshold, self._digest())
        total = MaskSum()
        for dealers, holders, points, shares in self._groups(owners):
            checks = {dealer: self._check_of(dealer) for dealer in dealers}
            secrets = recovery.rebuild(checks, holders, points, shares)
            for owner, secret in zip(dealers, secrets, strict=True):
                if owner in self._asked:
                    key = keys.self_mask_key(secret, self.cohort.session, owner)
                    total.add(key, negate=True)
                else:
                    self._remove_pairwise(owner, secret, total)
        total.apply(self._total, self.params.ring)
        self.params.ring.reduce(self._total)
        survivors = tuple(sorted(self._asked))
        disputes = tuple(sorted(recovery.disputes))
        return decode_sum(self._total, survivors, disputes, self.params)

    def _digest(self) -> bytes:
        """Hash all answers."""
        seen = hashlib.sha256(self.cohort.session)
        for u, shares in sorted(self._answers.items()):
            seen.update(u.to_bytes(8, "little") + shares.tobytes())
        return seen.digest()

    def _groups(
        self, owners: Sequence[int]
    ) -> Iterator[tuple[list[int], list[int], NDArray[np.uint64], NDArray[np.uint64]]]:
        """Yield owners with the same holders, those that answered, their points and shares.

        On the complete graph it is one group; on a sparse one each owner is alone.
        """
        groups = dict[int, list[int]]()
        for owner in owners:  # there the graph has one tuple for all
            groups.setdefault(id(self.cohort.graph.holders[owner]), []).append(owner)
        for group in groups.values():
            place = {v: x for x, v in enumerate(self.cohort.graph.holders[group[0]], start=1)}
            holders = list(self.cohort.seen_by(group[0], self._answers))
            points = np.array([place[u] for u in holders], dtype=np.uint64)
            rows = dict[int, list[int]]()  # by question: on the complete graph one in all
            for u in holders:
                question = self._asked[u]
                if id(question) not in rows:
                    rows[id(question)] = self._rows(question, group)
            shares = np.stack([self._answers[u][rows[id(self._asked[u])]] for u in holders])
            yield group, holders, points, shares

    def _rows(self, question: Question, owners: Sequence[int]) -> list[int]:
        """Return the places of the owners in an answer."""
        survivors, dropped = question
        return [
            bisect_left(survivors, owner)
            if owner in self._asked
            else len(survivors) + bisect_left(dropped, owner)
            for owner in owners
        ]

    def _check_of(self, owner: int) -> Callable[[bytes], bool]:
        return self._is_self_mask(owner) if owner in self._asked else self._is_mask_key(owner)

    def _is_self_mask(self, owner: int) -> Callable[[bytes], bool]:
        session, published = self.cohort.session, self._commitments[owner]
        return lambda seed: keys.commitment(seed, session, owner) == published

    def _is_mask_key(self, owner: int) -> Callable[[bytes], bool]:
        published = self.cohort.publics[owner][1]
        return lambda seed: keys.KeyPair(seed).public == published

    def _remove_pairwise(self, u: int, seed: bytes, total: MaskSum) -> None:
        """Undo the masks that the survivors made with the dropped client u; `seed` is s_u.

        The other half of a mask is the one that u would have added, so it is added here.
        """
        publics = self.cohort.publics
        peers = self.cohort.seen_by(u, self._asked)
        ids = np.array(peers, np.uint64)
        rows = keys.rows_of([publics[v][1] for v in peers])
        mine = u, publics[u][1]
        found = keys.revealed_mask_keys(seed, self.cohort.session, mine, ids, rows)
        total.extend(found, keys.subtracts(u, ids))
