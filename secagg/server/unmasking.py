"""Last stages of the server: from the shares of round 4 to the sum (Bonawitz 2017, round 4).

A rebuilt secret is checked against the value that the dealer published: b_v against its
commitment, s_u against the advertised public key. All shares are compared with the polynomial,
not only the t shares that define the polynomial.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from secagg import _fast, shamir
from secagg.errors import Dispute, RemoteProtocolError
from secagg.protocol import Phase, keys
from secagg.protocol.keys import SEED_BYTES
from secagg.protocol.masks import MaskSum
from secagg.protocol.messages import (
    SHARE_LIMBS,
    UnmaskRequest,
    UnmaskShares,
    encode,
    pack_ids,
)
from secagg.server.cohort import PerPeer, Summed, made_once
from secagg.server.result import RoundResult, decode_sum
from secagg.server.stages import SessionStage
from secagg.shamir.field import M61, U64

Verify = Callable[[int, bytes], bool]


class Recovery:
    """Rebuild the secrets of a round from the shares that the clients revealed.

    Parameters
    ----------
    threshold : int
        Number of shares that determine a secret, t.
    seed : bytes
        Hash of all revealed shares, from which the decoder draws random coefficients. No client
        knows the coefficients when the client reveals a share. A resumed server draws the same
        coefficients.

    Attributes
    ----------
    disputes : list of Dispute
        Dealer and holder of each wrong share that was found. Wrong shares of a secret are found
        if at most ⌊(n − t) / 2⌋ of the n shares are wrong. The search misses some wrong shares
        if three or more secrets have more wrong shares than that.
    """

    def __init__(self, threshold: int, seed: bytes) -> None:
        self.threshold = threshold
        self.disputes: list[Dispute] = []
        self._seed, self._draws = seed, 0
        self._weights: dict[bytes, U64] = {}

    def rebuild(
        self,
        dealers: Sequence[int],
        verify: Verify,
        holders: Sequence[int],
        points: U64,
        shares: U64,
    ) -> list[bytes]:
        """Return the 32-byte secrets of dealers with the same holders.

        Parameters
        ----------
        dealers : d ids
        verify : callable
            Check of a dealer's id and a candidate for the dealer's secret.
        holders : n ids
            The clients that revealed their shares.
        points : uint64 array, shape (n,)
            The holders' points; n ≥ t.
        shares : uint64 array, shape (n, d, 5)
            Limbs in [0, 2^61 − 1).

        Raises
        ------
        RemoteProtocolError
            A secret cannot be rebuilt; check "shares", with the disputes about the secret.
        """
        secrets: dict[int, bytes] = {}
        columns = list(range(len(dealers)))
        while columns:  # twice at most: liars can end the first search early, not a second
            found = shamir.find_wrong(points, shares[:, columns], self.threshold, self._entropy)
            for place, column in enumerate(columns):
                dealer, rows = dealers[column], found.get(place)
                is_right = partial(verify, dealer)
                secret, wrong = self._secret(points, shares[:, column], rows, is_right)
                if secret is not None:
                    secrets[dealer] = secret
                    self.disputes += (Dispute(dealer, holders[row]) for row in wrong)
                elif place in found:  # without a search, a few wrong shares could be the reason
                    raise _lost(dealer, holders)
            columns = [column for column in columns if dealers[column] not in secrets]
        return [secrets[dealer] for dealer in dealers]

    def _secret(
        self,
        points: U64,
        values: U64,
        wrong: NDArray[np.intp] | None,
        is_right: Callable[[bytes], bool],
    ) -> tuple[bytes | None, Sequence[int]]:
        """Return a secret that verifies, or None, and the rows known to be wrong."""
        if wrong is not None:
            kept = np.delete(np.arange(points.size), wrong)[: self.threshold]
            secret = self._verified(self._at_zero(points[kept], values[kept]), is_right)
            if secret is not None:
                return secret, wrong.tolist()
        # with more wrong shares than decoding corrects, the check still shows a right secret
        first = slice(self.threshold)
        secret = self._verified(self._at_zero(points[first], values[first]), is_right)
        if points.size != self.threshold + 1:
            return secret, ()
        one_left_out = [
            (found, row)
            for row, limbs in enumerate(shamir.leave_one_out(points, values))
            if (found := self._verified(limbs, is_right)) is not None
        ]
        # X25519 ignores five bits of a seed, so two secrets can verify; then no row is named
        rows = [row for _, row in one_left_out]
        secret = one_left_out[0][0] if one_left_out else secret
        return secret, rows if len(rows) == 1 else ()

    def _verified(self, limbs: U64, is_right: Callable[[bytes], bool]) -> bytes | None:
        secret = shamir.from_limbs(limbs, SEED_BYTES)
        return secret if secret is not None and is_right(secret) else None

    def _at_zero(self, points: U64, values: U64) -> U64:
        """Return the constant terms that t shares determine; the points' weights are cached."""
        name = points.tobytes()
        if name not in self._weights:
            self._weights[name] = _fast.m61_lagrange_at_zero(points).reshape(1, -1)
        return _fast.m61_matmul(self._weights[name], np.ascontiguousarray(values)).ravel()

    def _entropy(self, size: int) -> bytes:
        self._draws += 1
        label = b"secagg/2 wrong shares" + self._seed + self._draws.to_bytes(8, "little")
        return hashlib.shake_256(label).digest(size)


def _lost(dealer: int, holders: Sequence[int]) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"the {len(holders)} shares of client {dealer}'s secret do not give the one that it "
        "published: it dealt wrong shares, or too many were changed; begin a new round",
        sender=None,
        phase=Phase.UNMASKING,
        check="shares",
        disputes=tuple(Dispute(dealer, holder) for holder in sorted(holders)),
    )


class Unmasking(SessionStage):
    """Round 4: ask for shares, rebuild the secrets with them and remove the masks."""

    phase = Phase.UNMASKING

    def __init__(self, summed: Summed) -> None:
        session = summed.cohort.session
        signers, proof = pack_ids(list(summed.signatures)), b"".join(summed.signatures.values())
        asked = {u: summed.asked[u] for u in summed.present}
        requests = made_once(
            asked,
            lambda one: encode(
                UnmaskRequest(
                    session, pack_ids(one.survivors), pack_ids(one.dropped), signers, proof
                )
            ),
        )
        super().__init__(summed.cohort, requests)
        self._commitments = summed.commitments
        self._total = summed.total
        self._asked = summed.asked
        # a survivor's shares are of b, a dropped client's of s; nobody is asked for both
        owners = made_once(asked, lambda one: np.array([*chain(*one)], dtype=np.uint64))
        self._shares = PerPeer(owners, SHARE_LIMBS, np.uint64)

    def take(self, u: int, data: bytes) -> None:
        """Validate and store the shares that a client reveals."""
        message = self.read(u, data, UnmaskShares)
        own = self._shares.items[self._shares.rows[u]]
        why = f"expected one share for each of {len(own)} owners"
        self.require(len(message.shares) == own.nbytes, u, "length", why)
        limbs = np.frombuffer(message.shares, dtype="<u8").reshape(own.shape)
        self.require(bool((limbs < M61).all()), u, "share", "a share is not a field element")
        own[:] = limbs
        self._shares.came.add(u)

    def close(self) -> RoundResult:
        """Rebuild the secrets, remove the masks and decode the sum."""
        groups = self._groups()
        # count all shares first: below the threshold no secret is rebuilt
        for dealers, holders in groups:
            who = f"clients with a share of client {dealers[0]}'s secret answered"
            self.enough(len(holders), self.params.threshold, who)
        seen = hashlib.sha256(self.cohort.session)  # of all answers
        for u in sorted(self._shares.came):
            limbs = self._shares.items[self._shares.rows[u]]
            seen.update(u.to_bytes(8, "little") + limbs.tobytes())
        recovery = Recovery(self.params.threshold, seen.digest())
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
        total.add(found, negate=keys.subtracts(u, ids))


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
