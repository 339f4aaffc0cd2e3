"""A server and c liars claim anything of what clients signed; no honest client is named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blamed_round import (
    CASES,
    IDS,
    SignedRound,
    add_one,
    as_bytes,
    dealt_part,
    guilty,
    joined,
    opened_part,
    other_constant,
)
from secagg import ClientPolicy, RemoteProtocolError, blame
from secagg.blame import Signed
from secagg.protocol import dealing

KINDS = {"shares": 1, "answer": 2, "own answer": 2, "complaints": 3, "contribution": 4}
KINDS["complainer"] = 5
Pools = dict[str, list[bytes]]


class Statements:
    """Everything that the clients of a round signed, as parts of verdicts by their type."""

    def __init__(self, round_: SignedRound, liars: Iterable[int], data: st.DataObject) -> None:
        self.round, self.liars = round_, [*liars]
        self.honest = [u for u in round_.ids if u not in self.liars]
        self.pools: Pools = defaultdict(list)
        self.dropped = data.draw(st.sets(st.sampled_from(round_.ids), max_size=2))
        hold = st.sampled_from([0, 1, 2] if round_.params.suite == "hybrid" else [0, 1])
        # an honest holder complains of liars alone, in one list, and answers as it accepted
        said = {w: {v: data.draw(hold) for v in self.liars if v != w} for w in round_.ids}
        for w in self.honest:
            self._collect_dealt(w)
            self._state(w, said[w])
        for v in self.liars:
            for spoil in (None, add_one(0, 0, 3), other_constant(1)):
                self.round.deal(v, spoil)
                self._collect_dealt(v)
                self._state(v, said[v] | {w: data.draw(hold) for w in self.honest})
                items = self.round.items(v, dict.fromkeys(self.round.ids, 1))
                items["leaf"][0] = self._leaf(data.draw(st.sampled_from(self.honest)), data)
                self._add(self.round.accept(v, items=items), "list", "accepted")

    def _leaf(self, v: int, data: st.DataObject) -> np.ndarray:
        place = data.draw(st.integers(0, len(self.round.ids) - 1))
        return self.round.leaves_of(self.round.dealt[v])[place]

    def _collect_dealt(self, v: int) -> None:
        laid = self.round.accuser._laid(self.round.dealt[v])
        self.pools["dealt"].append(laid.signed)
        places = np.arange(len(self.round.ids))
        for kind in (0, 1):
            self.pools["share"] += laid.shown(kind, places, self.round.shares[v][kind])
        for place in places.tolist():
            self.pools["opened"].append(laid.opened(place))
            self.pools["leaf"].append(laid.opened(place)[:140])

    def _state(self, w: int, said: dict[int, int]) -> None:
        self._add(self.round.accept(w, said), "list", "accepted")
        withheld = [v for v, one in said.items() if one]
        self._add(self.round.answer(w, self.dropped, withheld=withheld), "answers", "answer")

    def _add(self, signed: Signed, *types: str) -> None:
        for one, part in zip(types, signed, strict=True):
            self.pools[one].append(part)

    def claim(self, kind: str, client: int, data: st.DataObject) -> bytes:
        """A claim of this kind, right in its form, with some parts of anybody's statements."""
        round_ = self.round
        place, t = round_.place(client), round_.params.threshold
        other = data.draw(st.sampled_from([u for u in round_.ids if u != client]))
        own = self._own(client)
        at = sorted(data.draw(st.permutations(range(len(round_.ids))))[:t])
        laid = round_.accuser._laid(round_.dealt[client])
        secret = data.draw(st.sampled_from([0, 1]))
        shown = [
            ("share", part)
            for part in laid.shown(secret, np.array(at), round_.shares[client][secret, at])
        ]
        dealt = "dealt", dealt_part(round_, client)
        parts: list[tuple[str, bytes]] = []
        if kind == "shares":
            parts = [dealt, ("", bytes([secret])), *shown]
        elif kind == "contribution":
            about = data.draw(st.integers(0, len(round_.ids) - 1))
            parts = [dealt, *shown, ("opened", opened_part(round_, client, about))]
        elif kind == "answer":
            leaf = opened_part(round_, other, place)[:140]
            parts = [("", other.to_bytes(8, "little")), *own, ("leaf", leaf)]
        elif kind == "own answer":
            leaf = opened_part(round_, client, place)
            parts = [
                ("", client.to_bytes(8, "little")),
                dealt,
                ("", b""),
                *own[2:],
                ("opened", leaf),
            ]
        elif kind == "complaints":
            holders = data.draw(st.sets(st.sampled_from(round_.ids), min_size=2, max_size=4))
            parts = [dealt]
            for w in sorted(holders):
                opened = opened_part(round_, client, round_.place(w))
                parts += [*self._own(w)[:2], ("opened", opened)]
        else:
            dealers = data.draw(st.sets(st.sampled_from(round_.ids), max_size=4))
            parts = own[:2]
            for v in sorted(dealers):
                opened = "opened", opened_part(round_, v, place)
                parts += [("dealt", dealt_part(round_, v)), opened]
        for _ in range(data.draw(st.integers(0, 3))):
            changed = data.draw(st.integers(0, len(parts) - 1))
            if (one := parts[changed][0]) in self.pools:
                parts[changed] = one, data.draw(st.sampled_from(self.pools[one]))
        packed = round_.params.to_bytes()
        head = bytes([4, KINDS[kind]]) + len(packed).to_bytes(2, "little") + packed
        head += round_.roster + client.to_bytes(8, "little")
        return joined(head, [part for _, part in parts])

    def _own(self, w: int) -> list[tuple[str, bytes]]:
        """The statements of a client, of a liar's the first."""
        order = self.honest + [v for v in self.liars for _ in range(6)]
        at = order.index(w)
        lists = {"list": at, "accepted": at}
        answers = self.honest + [v for v in self.liars for _ in range(3)]
        lists |= dict.fromkeys(("answers", "answer"), answers.index(w))
        return [(one, self.pools[one][place]) for one, place in lists.items()]


@given(data=st.data())
def test_check58_no_honest_client_is_named(data: st.DataObject) -> None:
    suite = data.draw(st.sampled_from(["hybrid", "x25519"]))
    n = data.draw(st.integers(4, 7))
    round_ = SignedRound(suite, IDS[:n], seed=data.draw(st.integers(0, 9)))
    most = 2 * round_.params.threshold - n - 1
    colluders = data.draw(st.integers(0, most))
    liars = data.draw(st.permutations(IDS[:n]))[:colluders]
    statements = Statements(round_, liars, data)
    policy = ClientPolicy(colluders=colluders)
    for _ in range(20):
        kind = data.draw(st.sampled_from([*KINDS]))
        accused = data.draw(st.sampled_from(statements.honest))
        claim = statements.claim(kind, accused, data)
        try:
            named = blame.check(claim, round_.registry, policy)
        except RemoteProtocolError:
            continue
        raise AssertionError(f"{kind}: client {named} is named, and {liars} are liars")


@pytest.mark.parametrize(("suite", "kind"), CASES)
def test_check58_no_verdict_has_a_share_or_seed_of_an_honest_client(
    suite: str, kind: str
) -> None:
    round_ = SignedRound(suite)
    data = guilty(round_, kind).data
    shown = {("shares", IDS[2], 0), ("contribution", IDS[2], 1)}
    for v in IDS:
        assert all(seed not in data for seed in round_.seeds[v])
        for secret in (dealing.B_SHARE, dealing.S_SHARE):
            found = sum(bytes(row) in data for row in as_bytes(round_.shares[v][secret]))
            expected = round_.params.threshold if (kind, v, secret) in shown else 0
            assert found == expected
