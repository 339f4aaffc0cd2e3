"""Last stages of the server: from the shares of round 4 to the sum (Bonawitz 2017, round 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import chain

import numpy as np

from secagg.protocol import Phase, keys
from secagg.protocol.masks import MaskSum
from secagg.protocol.messages import SHARE_BYTES, SHARE_LIMBS, UnmaskShares
from secagg.server.cohort import Summed, made_once
from secagg.server.per_peer import PerPeer
from secagg.server.recovery import Recovery
from secagg.server.result import RoundResult, decode_sum
from secagg.server.stages import SessionStage
from secagg.shamir.arithmetic import M61


class Unmasking(SessionStage):
    """Round 4: ask for shares, rebuild the secrets with them and remove the masks."""

    phase = Phase.UNMASKING

    def __init__(self, summed: Summed) -> None:
        super().__init__(summed.cohort, summed.to_unmask())
        self._commitments = summed.commitments
        self._total = summed.total
        self._asked = summed.asked
        # a survivor's shares are of b, a dropped client's of s; nobody is asked for both
        owners = made_once(
            {u: self._asked[u] for u in self.asks},
            lambda question: np.array([*chain(*question)], dtype=np.uint64),
        )
        self._shares = PerPeer(owners, SHARE_LIMBS, np.uint64)

    def take(self, u: int, data: bytes) -> None:
        """Validate and store the shares that a client reveals."""
        message = self.read_in_session(u, data, UnmaskShares)
        owners = self._shares.peers_of(u)
        whole = len(message.shares) == SHARE_BYTES * owners
        self.require(whole, u, "length", f"expected one share for each of {owners} owners")
        limbs = np.frombuffer(message.shares, dtype="<u8").reshape(-1, SHARE_LIMBS)
        self.require(bool((limbs < M61).all()), u, "share", "a share is not a field element")
        self._shares.put(u, limbs)

    def close(self) -> RoundResult:
        """Rebuild the secrets, remove the masks and decode the sum."""
        groups = self._groups()
        # count all shares first: below the threshold no secret is rebuilt
        for dealers, holders in groups:
            who = f"clients with a share of client {dealers[0]}'s secret answered"
            self.enough(len(holders), self.params.threshold, who)
        recovery = Recovery(self.params.threshold, self._digest())
        total, rows, came = MaskSum(), self._shares.by_peer(), self._shares.came
        for dealers, holders in groups:
            # the points of the holders that answered
            numbered = enumerate(self.cohort.graph.holders[dealers[0]], start=1)
            points = np.array([x for x, v in numbered if v in came], dtype=np.uint64)
            shares = self._shares.items[np.stack([rows[dealer] for dealer in dealers], axis=1)]
            secrets = recovery.rebuild(dealers, self._is_published, holders, points, shares)
            # never both for one owner: with b and s the server could read the owner's input
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
        for u in sorted(self._shares.came):
            seen.update(u.to_bytes(8, "little") + self._shares.of(u).tobytes())
        return seen.digest()

    def _groups(self) -> list[tuple[list[int], list[int]]]:
        """Return the owners, grouped by their holders, with the holders that answered.

        The complete graph has one group of owners. On a sparse graph each owner is a group.
        """
        cohort, groups = self.cohort, dict[int, list[int]]()
        distinct = {id(question): question for question in self._asked.values()}
        for owner in sorted(set[int]().union(*chain(*distinct.values()))):
            holders = cohort.graph.holders[owner]  # on the complete graph one tuple for all
            groups.setdefault(id(holders), []).append(owner)
        came = self._shares.came
        return [(owners, cohort.seen_by(owners[0], came)) for owners in groups.values()]

    def _is_published(self, owner: int, seed: bytes) -> bool:
        """Return True if `seed` is the b or s that `owner` published a value of."""
        if owner in self._asked:
            commitment = keys.commitment(seed, self.cohort.session, owner)
            return commitment == self._commitments[owner]
        return keys.KeyPair(seed).public == self.cohort.publics[owner][1]

    def _remove_pairwise(self, u: int, seed: bytes, total: MaskSum) -> None:
        """Undo the masks that the survivors made with the dropped client u; `seed` is s_u.

        Of each pair of masks that cancel, the survivor's half is in the total. So u's half,
        which u never sent, is added here.
        """
        publics = self.cohort.publics
        peers = self.cohort.seen_by(u, self._asked)
        ids = np.array(peers, np.uint64)
        rows = keys.rows_of([publics[v][1] for v in peers])
        mine = u, publics[u][1]
        found = keys.revealed_mask_keys(seed, self.cohort.session, mine, ids, rows)
        total.extend(found, keys.subtracts(u, ids))


class Over:
    """Last stage: the session has finished with a result, or failed without one.

    `resumable` is True if the server's journal can continue the round.
    """

    expected: None = None
    asks: Mapping[int, bytes] = {}

    def __init__(self, result: RoundResult | None, *, resumable: bool = False) -> None:
        self.phase = Phase.FAILED if result is None else Phase.FINISHED
        self.result = result
        self.resumable = resumable
