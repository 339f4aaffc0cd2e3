"""Verdicts that a server makes of each fault, and their bytes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import independent_dealing as plain
from blamed_round import (
    CASES,
    IDS,
    POLICY,
    SignedRound,
    add_one,
    as_bytes,
    cut,
    guilty,
    other_constant,
)
from secagg import ClientPolicy, Verdict, blame
from secagg.blame import layout

U64LE = [u.to_bytes(8, "little") for u in IDS]


@pytest.mark.parametrize(("suite", "kind"), CASES)
def test_each_fault_convicts_its_client(suite: str, kind: str) -> None:
    round_ = SignedRound(suite)
    verdict = guilty(round_, kind)
    assert verdict.kind == kind.removeprefix("own ")
    accused = IDS[2] if kind in ("shares", "complaints", "contribution") else IDS[1]
    assert verdict.client == accused
    assert blame.check(verdict.data, round_.registry, POLICY) == accused
    assert blame.check(memoryview(verdict.data), round_.registry, POLICY) == accused
    assert layout.unpack(verdict.data).kind == verdict.kind
    for again in (copy.copy(verdict), pickle.loads(pickle.dumps(verdict))):  # noqa: S301
        assert again == verdict
    assert repr(verdict.data) not in repr(verdict)


def off(verdict: Verdict | None, round_: SignedRound) -> int:
    assert verdict is not None
    return blame.check(verdict.data, round_.registry, POLICY)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("place", range(7))
def test_one_share_off_the_polynomial_convicts_wherever_it_is(kind: int, place: int) -> None:
    round_ = SignedRound()
    round_.deal(IDS[3], add_one(kind, place))
    assert off(round_.verdict_of_shares(IDS[3], kind, IDS), round_) == IDS[3]
    assert round_.verdict_of_shares(IDS[3], 1 - kind, IDS) is None
    others = [w for w in IDS if w != IDS[place]]
    assert round_.verdict_of_shares(IDS[3], kind, others) is None


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(("limb", "add"), [(0, 1), (4, 1), (4, 1 << 32), (1, 1 << 56)], ids=str)
def test_another_secret_convicts_also_one_that_is_no_secret(
    kind: int, limb: int, add: int
) -> None:
    round_ = SignedRound()
    round_.deal(IDS[0], other_constant(kind, limb, add))
    for holders in (IDS, IDS[:5], IDS[2:]):
        assert off(round_.verdict_of_shares(IDS[0], kind, holders), round_) == IDS[0]


@given(data=st.data())
def test_shares_convict_exactly_if_they_are_not_on_the_published_polynomial(
    data: st.DataObject,
) -> None:
    suite = data.draw(st.sampled_from(["hybrid", "x25519"]))
    round_ = SignedRound(suite, IDS[:5], seed=data.draw(st.integers(0, 99)))
    kind = data.draw(st.sampled_from([0, 1]))
    dealer = data.draw(st.sampled_from(IDS[:5]))
    wrong = data.draw(st.sets(st.sampled_from(range(5))))
    present = sorted(data.draw(st.sets(st.sampled_from(range(5)), min_size=4)))

    def spoil(shares: np.ndarray) -> None:
        # ones could cancel: those at X = 1, 2 do among the shares at 1, 2, 4, 5
        for place in wrong:
            shares[kind, place, 0] = round_.rng.integers(1 << 60)

    round_.deal(dealer, spoil)
    verdict = round_.verdict_of_shares(dealer, kind, [IDS[place] for place in present])
    # with t = 4 of 5 present shares: a wrong share changes the secret of some four
    if not wrong.intersection(present):
        assert verdict is None
    else:
        assert off(verdict, round_) == dealer


def test_wrong_shares_convict_before_a_wrong_contribution() -> None:
    round_ = SignedRound()
    for wrong in (0, 6):
        round_.deal(IDS[2], add_one(1, wrong), checks={IDS[5]: bytes(32)})
        at = np.arange(7)
        verdict = round_.accuser.contribution(
            round_.dealt[IDS[2]], at, round_.shares[IDS[2]][1], 5
        )
        assert verdict.kind == "shares"
        assert off(verdict, round_) == IDS[2]


@pytest.mark.parametrize("place", [0, 3, 6])
def test_wrong_answer_convicts_for_either_kind_of_share(place: int) -> None:
    round_ = SignedRound()
    holder, dealers = IDS[place], [v for v in IDS if v != IDS[place]]
    for dealer in dealers[:2]:
        for dropped in ([], [dealer]):
            answer = round_.answer(holder, dropped, wrong=[dealer])
            accepted = round_.accept(holder)
            verdict = round_.accuser.answer(round_.dealt[dealer], place, accepted, answer)
            assert off(verdict, round_) == holder


@pytest.mark.parametrize("count", [2, 3, 5])
def test_complaints_of_both_kinds_convict(count: int) -> None:
    round_ = SignedRound()
    said = {w: 1 + at % 2 for at, w in enumerate(IDS[1 : 1 + count])}
    lists = {round_.place(w): round_.accept(w, {IDS[0]: one}) for w, one in said.items()}
    verdict = round_.accuser.complaints(round_.dealt[IDS[0]], lists)
    assert off(verdict, round_) == IDS[0]
    # 2t − n = 3 are more than any policy's colluders
    _, parts = cut(verdict.data)
    assert len(parts) == 1 + 3 * min(count, 3)


def test_complaints_convict_under_the_strictest_policy() -> None:
    round_ = SignedRound()
    lists = {round_.place(w): round_.accept(w, {IDS[0]: 1}) for w in IDS[1:]}
    verdict = round_.accuser.complaints(round_.dealt[IDS[0]], lists)
    strictest = ClientPolicy(colluders=2)
    assert blame.check(verdict.data, round_.registry, strictest) == IDS[0]


def head_of(round_: SignedRound, kind: int, client: int) -> bytes:
    packed = round_.params.to_bytes()
    head = bytes([4, kind]) + len(packed).to_bytes(2, "little") + packed + round_.roster
    return head + client.to_bytes(8, "little")


def dealt_of(round_: SignedRound, v: int) -> bytes:
    dealt = round_.dealt[v]
    root = plain.root([bytes(leaf) for leaf in round_.leaves_of(dealt)])
    return dealt.commitment + dealt.mask_key + root + dealt.dealt


def rest_of(round_: SignedRound, v: int, place: int) -> bytes:
    dealt = round_.dealt[v]
    leaves = [bytes(leaf) for leaf in round_.leaves_of(dealt)]
    return bytes(dealt.checks[place]) + bytes(dealt.boxes[place]) + plain.path(leaves, place)


def opened_of(round_: SignedRound, v: int, place: int) -> bytes:
    x = (place + 1).to_bytes(4, "little")
    hashes = bytes(round_.dealt[v].hashes[place])
    return U64LE[place] + x + hashes + rest_of(round_, v, place)


def shares_of(round_: SignedRound, v: int, kind: int, places: Sequence[int]) -> list[bytes]:
    other = slice(32) if kind else slice(32, 64)
    return [
        U64LE[place]
        + (place + 1).to_bytes(4, "little")
        + bytes(as_bytes(round_.shares[v][kind, [place]])[0])
        + bytes(round_.dealt[v].hashes[place, other])
        + rest_of(round_, v, place)
        for place in places
    ]


@pytest.mark.parametrize(("suite", "kind"), CASES)
def test_bytes_are_as_the_document_defines_them(suite: str, kind: str) -> None:
    round_ = SignedRound(suite)
    verdict = guilty(round_, kind)
    head, parts = cut(verdict.data)
    dealer, holder = IDS[2], IDS[1]
    accepted, answer = round_.accept(holder), round_.answer(holder, wrong=[dealer])
    own = round_.answer(holder, wrong=[holder])
    accused = [v for place, v in enumerate(IDS) if place not in (1, 6)]
    expected: dict[str, tuple[int, list[bytes]]] = {
        "shares": (1, [dealt_of(round_, dealer), b"\0"]),
        "answer": (2, [U64LE[2], *accepted, *answer, opened_of(round_, dealer, 1)[:140]]),
        "own answer": (
            2,
            [U64LE[1], dealt_of(round_, holder), b"", *own, opened_of(round_, holder, 1)],
        ),
        "complaints": (3, [dealt_of(round_, dealer)]),
        "contribution": (4, [dealt_of(round_, dealer)]),
        "complainer": (5, [*round_.accept(holder, dict.fromkeys(accused, 1))]),
    }
    number, listed = expected[kind]
    if kind == "shares":
        listed += shares_of(round_, dealer, 0, [0, 1, 2, 3, 6])
    if kind == "contribution":
        listed += [*shares_of(round_, dealer, 1, range(5)), opened_of(round_, dealer, 6)]
    if kind == "complaints":
        for place in (0, 6):
            signed = round_.accept(IDS[place], {dealer: 1})
            listed += [*signed, opened_of(round_, dealer, place)]
    if kind == "complainer":
        for v in (0, 2, 3, 4, 5):
            listed += [dealt_of(round_, IDS[v]), opened_of(round_, IDS[v], 1)]
    assert head == head_of(round_, number, verdict.client)
    assert parts == listed
