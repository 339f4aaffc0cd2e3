"""Last stages of the server: from the shares of round 4 to the sum (Bonawitz 2017, round 4).

See `recovery` for the secrets, `removal` for the masks, and `answers` for wrong shares in the
active variant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from secagg.errors import Verdict
from secagg.protocol import Phase
from secagg.protocol.messages import (
    SHARE_LIMBS,
    UnmaskRequest,
    UnmaskShares,
    encode,
    pack_ids,
)
from secagg.server.answers import Answers
from secagg.server.cohort import PerPeer, made_once
from secagg.server.recovery import Recovery, unrecoverable
from secagg.server.removal import Removal
from secagg.server.result import RoundResult, decode_sum
from secagg.server.stages import SessionStage
from secagg.server.summed import Summed
from secagg.shamir.field import M61, U64

_Groups = list[tuple[list[int], list[int]]]
"""Owners of secrets, with the holders that revealed a share of each of them."""


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
        super().__init__(summed.cohort, requests, summed.verdicts, summed.disputes)
        self._summed = summed
        # a survivor's shares are of b, a dropped client's of s; nobody is asked for both
        owners = made_once(asked, lambda one: np.array([*chain(*one)], dtype=np.uint64))
        self._shares = PerPeer(owners, SHARE_LIMBS, np.uint64)
        self._answers = None
        if summed.complaints is not None:
            # the graph is complete, so all have the same question
            (question,) = {id(one): one for one in asked.values()}.values()
            self._answers = Answers(summed.cohort, summed.complaints, question, self._shares)

    def take(self, u: int, data: bytes) -> None:
        """Validate and store the shares that a client reveals."""
        message = self.read(u, data, UnmaskShares)
        limbs = self._shares.read(u, message.shares)
        if limbs is None:
            count = len(self._shares.items[self._shares.rows[u]])
            self.reject(u, "length", f"expected one share for each of {count} owners")
        if self._answers is None:
            why = "a signature in a semi-honest round, which has none"
            self.require(not message.answer, u, "length", why)
            inside = bool((limbs < M61).all())
            self.require(inside, u, "share", "a share is not a field element")
        else:
            why = "a share is no field element, or withheld without a complaint or not after it"
            self.require(self._answers.are_due(u, limbs), u, "share", why)
            signed = self._answers.take(u, limbs, message.answer)
            self.require(signed, u, "answer", "the client did not sign these shares")
        self._shares.keep(u, limbs)

    def close(self) -> RoundResult:
        """Rebuild the secrets, remove the masks and decode the sum."""
        rows, answers = self._shares.by_peer(), self._answers
        if answers is None:
            groups, what = self._groups(), "clients with a share"
        else:
            self.verdicts += (*answers.verdicts(),)
            rows = {owner: each[answers.good[each]] for owner, each in rows.items()}
            groups, what = self._good_groups(rows), "clients with a good share"
        # count all shares first: below the threshold no secret is rebuilt
        for owners, holders in groups:
            who = f"{what} of client {owners[0]}'s secret answered"
            self.enough(len(holders), self.params.threshold, who)
        recovery = Recovery(self.params.threshold, self._digest())
        removal, lost = Removal(self._summed), list[int]()
        for owners, holders in groups:
            came = set(holders)
            numbered = enumerate(self.cohort.graph.holders[owners[0]], start=1)
            points = np.array([x for x, v in numbered if v in came], dtype=np.uint64)
            shares = self._shares.items[np.stack([rows[owner] for owner in owners], axis=1)]
            if answers is None:
                check = removal.is_published
                secrets = recovery.rebuild(owners, check, holders, points, shares)
                for owner, secret in zip(owners, secrets, strict=True):
                    removal.add(owner, secret)
            else:
                lost += self._judge(owners, points, shares, recovery, removal, answers)
        active = self._summed.complaints is not None
        disputes = self.disputes if active else tuple(sorted(recovery.disputes))
        if lost:
            raise unrecoverable(lost[0], len(self._shares.came), disputes)
        for u, survivor in sorted(removal.mismatches.items())[:1]:
            why = (
                f"its seed gives other contributions for client {survivor} than it promised by "
                "its check; begin a new round without it"
            )
            self.reject(u, "contribution", why)
        removal.apply(self._summed.total)
        survivors = tuple(sorted(self._summed.asked))
        return decode_sum(
            self._summed.total, survivors, disputes, self.params, verdicts=self.verdicts
        )

    def _judge(
        self,
        owners: list[int],
        points: U64,
        shares: U64,
        recovery: Recovery,
        removal: Removal,
        answers: Answers,
    ) -> list[int]:
        """Collect the masks of dealers with good shares; return dealers of lost secrets.

        Dealers whose shares do not give what they published are convicted.
        """
        dealt = recovery.rebuild_dealt(owners, removal.is_published, points, shares)
        for owner, secret in dealt.secrets.items():
            removal.add(owner, secret)
        for column, owner in enumerate(owners):
            verdict = None
            if owner in dealt.suspects:
                verdict = answers.dealt_wrongly(owner, points, shares[:, column])
            elif owner in removal.mismatches:
                about = removal.mismatches[owner]
                verdict = answers.contributed_wrongly(owner, points, shares[:, column], about)
            if verdict is not None:
                self.verdicts += (verdict,)
        return [owner for owner in owners if owner not in dealt.secrets]

    def _digest(self) -> bytes:
        """Return a hash of all answers."""
        seen = hashlib.sha256(self.cohort.session)
        for u in sorted(self._shares.came):
            limbs = self._shares.items[self._shares.rows[u]]
            seen.update(u.to_bytes(8, "little") + limbs.tobytes())
        return seen.digest()

    def _groups(self) -> _Groups:
        """Return the owners, grouped by their holders, with the holders that answered.

        The complete graph has one group of owners. On a sparse graph each owner is a group.
        """
        cohort, groups = self.cohort, dict[int, list[int]]()
        for owner in self._owners():
            holders = cohort.graph.holders[owner]  # on the complete graph one tuple for all
            groups.setdefault(id(holders), []).append(owner)
        came = self._shares.came
        return [(owners, cohort.seen_by(owners[0], came)) for owners in groups.values()]

    def _good_groups(self, rows: Mapping[int, NDArray[np.intp]]) -> _Groups:
        """Return the owners, grouped by the holders that revealed good shares."""
        groups = dict[tuple[int, ...], list[int]]()
        for owner in self._owners():
            good = rows[owner] if owner in rows else np.empty(0, np.intp)
            groups.setdefault(tuple(self._shares.senders(good).tolist()), []).append(owner)
        return [(owners, [*holders]) for holders, owners in groups.items()]

    def _owners(self) -> list[int]:
        """Return the owners of all shares that anybody was asked for, ascending."""
        distinct = {id(question): question for question in self._summed.asked.values()}
        return sorted(set[int]().union(*chain(*distinct.values())))


class Over:
    """Last stage: the session has finished with a result, or failed without one.

    `resumable` is True if the server's journal can continue the round.
    """

    expected: None = None
    asks: Mapping[int, bytes] = {}

    def __init__(
        self,
        result: RoundResult | None,
        *,
        resumable: bool = False,
        verdicts: tuple[Verdict, ...] = (),
    ) -> None:
        self.phase = Phase.FAILED if result is None else Phase.FINISHED
        self.result = result
        self.resumable = resumable
        self.verdicts = verdicts if result is None else result.verdicts
