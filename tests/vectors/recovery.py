"""Conclusions of a round's server: complaints, rebuilt secrets, masks to remove, verdicts.

It names whom docs/protocol.md §8.3 and §8.5 name, and ends a round as they say. It is written
for few clients: it tries every t shares of a secret.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import TYPE_CHECKING

from kinds import get

import independent_dealing as dealing
import independent_keys as keys
import independent_pairs as pairs
from independent_policy import Policy
from independent_primitives import agreement, cut, integers, split

if TYPE_CHECKING:
    from whole_round import Round

Verdict = tuple[int, str]  # the client and the kind
Pair = tuple[int, int]  # dealer and holder


@dataclass
class Ended(Exception):
    """End of a round without a sum."""

    error: str
    check: str | None = None
    sender: int | None = None
    needed: int | None = None
    survivors: int | None = None
    disputes: list[Pair] = field(default_factory=list)


class Recovery:
    """The server's part of round `r` that follows masked inputs."""

    def __init__(self, r: Round) -> None:
        self.r, self.p = r, r.params
        self.complaints: dict[Pair, int] = {}
        self.deposits: dict[Pair, bytes] = {}  # by the one who made it, and its peer
        self.disclosed: dict[Pair, bytes] = {}  # by holder and dealer
        self.verdicts: list[Verdict] = []
        self.disputes: list[Pair] = []
        self.shares: dict[int, dict[int, bytes]] = {}  # by dealer and holder

    def _convict(self, client: int, kind: str) -> None:
        self.verdicts = sorted({*self.verdicts, (client, kind)})

    def judge_complaints(self) -> None:
        """§8.3, at the closing."""
        r, p = self.r, self.p
        for w in r.u3:
            sent, senders = r.sent["masked_input"][w], [v for v in r.seen(w, r.u2) if v != w]
            deposits = cut(get(sent, "deposits"), 32)
            self.deposits |= {(w, v): d for v, d in zip(senders, deposits, strict=False)}
            rows = [(*integers(row[:8]), row[8]) for row in cut(get(sent, "complaints"), 9)]
            self.complaints |= {(v, w): kind for v, kind in rows}
            told = [v for v, kind in rows if kind == 2]
            disclosed = cut(get(sent, "disclosed"), 96)
            self.disclosed |= {(w, v): d for v, d in zip(told, disclosed, strict=True)}
        if not p.active:
            return
        about: dict[int, list[int]] = {v: [] for v in r.u2}
        for v, w in self.complaints:
            about[v].append(w)
        most = Policy().lying(p, len(r.registry or {}))
        dealers = [v for v, of in about.items() if len(of) > most]
        for v in dealers:
            self._convict(v, "complaints")
        self.disputes = sorted(pair for pair in self.complaints if pair[0] not in dealers)
        few = {v for v in r.u2 if len({*r.u3} - {*about[v]}) < p.t}
        if few:
            pairs_ = sorted(pair for pair in self.complaints if pair[0] in few)
            raise Ended("RemoteProtocolError", "dealer", disputes=pairs_)

    def total(self, answered: list[int]) -> list[int]:
        """The sum of the masked inputs without their masks (§8.5)."""
        r, p = self.r, self.p
        for u in answered:
            revealed = cut(get(r.sent["unmasking"][u], "shares"), 40)
            survivors, dropped = r.named(u)
            kinds = [0] * len(survivors) + [1] * len(dropped)
            for v, kind, share in zip(chain(survivors, dropped), kinds, revealed, strict=True):
                self._take(v, u, kind, share)
        fewest = min(map(len, self.shares.values()))
        if fewest < p.t:
            raise Ended("TooFewSurvivors", needed=p.t, survivors=fewest)
        secrets = {v: self._rebuilt(v) for v in self.shares}
        added, less = [r.masked(u) for u in r.u3], []
        for v, secret in secrets.items():
            if v in r.u3:
                less.append(p.mask(keys.self_mask_key(r.session, v, secret)))
        for u, v, key in [*self._of_dropped(secrets), *self._of_disclosed()]:
            (less if u < v else added).append(p.mask(key))
        return p.add(*added, minus=less)

    def _take(self, v: int, u: int, kind: int, share: bytes) -> None:
        """Keep a share of v that u revealed, unless it is not the one that v dealt."""
        r = self.r
        if (v, u) in self.complaints:
            return
        self.shares.setdefault(v, {})
        if self.p.active:
            signed = split(r.openings(v)[u].hashes, 32)[kind]
            if dealing.share_hash(r.session, kind, v, u, share) != signed:
                self._convict(u, "answer")
                return
        elif share != r.clients[u]._shares[v][kind]:
            self.disputes = sorted([*self.disputes, (v, u)])
            return
        self.shares[v][u] = share

    def _fits(self, v: int, secret: bytes | None) -> bool:
        """The secret is the one that v published."""
        r = self.r
        if secret is None:
            return False
        if v in r.u3:
            published = get(r.sent["share_keys"][v], "commitment")
            return keys.commitment(r.session, v, secret) == published
        return keys.masking_key(secret) == r.clients[v].own[1]

    def _rebuilt(self, v: int) -> bytes:
        """The secret; v is named if all its shares do not give it."""
        r = self.r
        points = {r.holders[v].index(u) + 1: share for u, share in self.shares[v].items()}
        found = {
            keys.rebuilt({x: points[x] for x in some})
            for some in combinations(points, self.p.t)
        }
        right = [secret for secret in found if self._fits(v, secret)]
        if self.p.active and len(found) > len(right):
            self._convict(v, "shares")
        if not right:
            raise Ended("RemoteProtocolError", "shares", disputes=self.disputes)
        return right[0]

    def _of_dropped(self, secrets: dict[int, bytes]) -> list[tuple[int, int, bytes]]:
        """Return each pair of a survivor and a dropped client with the key of their mask."""
        r, found = self.r, []
        for v, seed in secrets.items():
            for u in r.seen(v, r.u3) if v not in r.u3 else []:
                if self.complaints.get((v, u)) == 2:
                    continue
                pair = {w: r.clients[w].own for w in (u, v)}
                shared = agreement(keys.masking_private(seed), pair[u][1]) or b""
                p = {u: b"", v: b""}
                if self.p.hybrid:
                    p[v], q = pairs.contribution(r.session, seed, v, u)
                    if pairs.check(r.session, v, u, p[v], q) != r.checked(v, u):
                        if self.p.active:
                            self._convict(v, "contribution")
                        raise Ended("RemoteProtocolError", "contribution", sender=v)
                    p[u] = pairs.deposit(r.session, u, v, self.deposits[u, v], q)
                agreed = pairs.agreement(r.session, shared, pair)
                found.append((u, v, pairs.mask_key(r.session, agreed, p)))
        return found

    def _of_disclosed(self) -> list[tuple[int, int, bytes]]:
        """The masks that v alone put on, since w complained 2 of it."""
        r, found = self.r, []
        for (w, v), disclosed in self.disclosed.items():
            if v in r.u3 and (v, w) not in self.disclosed:
                agreed, p_w, q_w = split(disclosed, 32, 32)
                p_v = pairs.deposit(r.session, v, w, self.deposits[v, w], q_w)
                key = pairs.mask_key(r.session, agreed, {v: p_v, w: p_w})
                found.append((v, w, key))
        return found
