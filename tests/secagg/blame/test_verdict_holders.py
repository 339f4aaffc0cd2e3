"""Forged verdicts of answers and of contributions (docs/protocol.md, §14.2)."""

from __future__ import annotations

import numpy as np
import pytest

from blamed_round import (
    HONEST,
    IDS,
    LIAR,
    POLICY,
    SignedRound,
    convicts_nobody,
    dealt_part,
    guilty,
    opened_part,
    with_parts,
)
from harness import make_identity
from raised import rejects
from secagg import Registry, blame
from secagg.blame import Signed
from secagg.protocol import dealing


def answer_about(
    round_: SignedRound, accepted: Signed | None, answer: Signed, dealer: int = LIAR
) -> bytes:
    """A claim about an answer of the honest holder."""
    place = round_.place(HONEST)
    return round_.accuser.answer(round_.dealt[dealer], place, accepted, answer).data


@pytest.mark.parametrize("dropped", [(), (LIAR,), (IDS[0],), (LIAR, IDS[0])], ids=len)
def test_right_answer_is_innocent(dropped: tuple[int, ...]) -> None:
    round_ = SignedRound()
    accepted, answer = round_.accept(HONEST), round_.answer(HONEST, dropped)
    convicts_nobody("innocent", answer_about(round_, accepted, answer), round_)
    convicts_nobody("innocent", answer_about(round_, None, answer, HONEST), round_)


def test_wrong_answer_about_one_dealer_is_none_about_another() -> None:
    round_ = SignedRound()
    answer = round_.answer(HONEST, [IDS[5]], wrong=[IDS[0], IDS[5]])
    data = answer_about(round_, round_.accept(HONEST), answer)
    convicts_nobody("innocent", data, round_)


def test_check58_answer_after_a_complaint_is_of_no_share() -> None:
    """An honest holder that complained answers with 40 bytes ff."""
    round_ = SignedRound()
    answer = round_.answer(HONEST, withheld=[LIAR])
    for complaint in (1, 2):
        accepted = round_.accept(HONEST, {LIAR: complaint})
        convicts_nobody("leaf", answer_about(round_, accepted, answer), round_)


def test_answer_about_another_leaf_of_the_dealer_for_this_holder() -> None:
    """Acceptance is of the leaf: a dealer can sign a second one, with other hashes."""
    round_ = SignedRound()
    accepted, answer = round_.accept(HONEST), round_.answer(HONEST)
    round_.deal(LIAR)
    convicts_nobody("leaf", answer_about(round_, accepted, answer), round_)


def test_answer_about_a_dealer_that_is_not_in_the_list() -> None:
    round_ = SignedRound()
    items = round_.items(HONEST)
    accepted = round_.accept(HONEST, items=items[items["dealer"] != LIAR])
    answer = round_.answer(HONEST, wrong=[LIAR])
    convicts_nobody("leaf", answer_about(round_, accepted, answer), round_)


def test_statements_of_another_session() -> None:
    before, round_ = SignedRound(name=b"before"), SignedRound()
    data = answer_about(round_, round_.accept(HONEST), before.answer(HONEST))
    convicts_nobody("signature", data, round_)
    data = answer_about(round_, before.accept(HONEST), round_.answer(HONEST))
    convicts_nobody("signature", data, round_)


def test_statements_that_another_client_signed() -> None:
    round_ = SignedRound()
    wrong = round_.answer(HONEST, wrong=[LIAR])
    content = dealing.signed_answer(round_.session, HONEST, wrong.content)
    forged = Signed(wrong.content, make_identity(LIAR).sign(content))
    convicts_nobody("signature", answer_about(round_, round_.accept(HONEST), forged), round_)
    accepted = round_.accept(HONEST, signer=LIAR)
    convicts_nobody("signature", answer_about(round_, accepted, wrong), round_)


def test_list_with_two_leaves_of_one_dealer() -> None:
    round_ = SignedRound()
    items = round_.items(HONEST)
    answer = round_.answer(HONEST, wrong=[LIAR])
    for wrong in (np.concatenate([items[:2], items[1:]]), items[::-1]):
        accepted = round_.accept(HONEST, items=wrong)
        convicts_nobody("ids", answer_about(round_, accepted, answer), round_)


@pytest.mark.parametrize("cut_off", [slice(0), slice(-1), slice(40)])
def test_lists_that_are_empty_or_have_a_part_of_an_item(cut_off: slice) -> None:
    """A holder can sign any bytes."""
    round_, sign = SignedRound(), make_identity(HONEST).sign
    accepted, answer = round_.accept(HONEST), round_.answer(HONEST, wrong=[LIAR])
    listed, answers = accepted.content[cut_off], answer.content[cut_off]
    short = Signed(listed, sign(dealing.signed_accepted(round_.session, HONEST, listed)))
    convicts_nobody("length", answer_about(round_, short, answer), round_)
    short = Signed(answers, sign(dealing.signed_answer(round_.session, HONEST, answers)))
    convicts_nobody("length", answer_about(round_, accepted, short), round_)


def test_accepted_leaf_of_another_holder() -> None:
    round_ = SignedRound()
    items = round_.items(HONEST)
    items["leaf"][items["dealer"] == LIAR] = round_.leaves_of(round_.dealt[LIAR])[5]
    accepted, answer = round_.accept(HONEST, items=items), round_.answer(HONEST)
    data = answer_about(round_, accepted, answer)
    other = opened_part(round_, LIAR, 5)[:140]
    data = with_parts(data, lambda parts: parts.__setitem__(5, other))
    convicts_nobody("ids", data, round_)


def test_own_leaf_of_another_holder() -> None:
    """The dealer's leaf for another has other hashes than the dealer's own share."""
    round_ = SignedRound()
    data = answer_about(round_, None, round_.answer(HONEST), HONEST)
    other = opened_part(round_, HONEST, 5)
    data = with_parts(data, lambda parts: parts.__setitem__(5, other))
    convicts_nobody("ids", data, round_)


def test_own_leaf_that_the_dealer_did_not_sign() -> None:
    round_ = SignedRound()
    signed = dealt_part(round_, HONEST)
    round_.deal(HONEST)
    data = answer_about(round_, None, round_.answer(HONEST), HONEST)
    data = with_parts(data, lambda parts: parts.__setitem__(1, signed))
    convicts_nobody("root", data, round_)


def test_own_answer_has_no_signature_of_an_acceptance() -> None:
    round_ = SignedRound()
    data = guilty(round_, "own answer").data
    data = with_parts(data, lambda parts: parts.__setitem__(2, bytes(64)))
    convicts_nobody("length", data, round_)


def test_dealer_or_holder_of_an_answer_that_is_not_in_the_registry() -> None:
    round_ = SignedRound()
    data = guilty(round_, "answer").data
    for missing in (IDS[2], LIAR):
        rest = {u: round_.registry[u] for u in round_.registry if u != missing}
        rejects("unknown client", lambda r=rest: blame.check(data, Registry(r), POLICY))


def contribution_of(round_: SignedRound, v: int, about: int, kind: int = 1) -> bytes:
    """A claim about the check for a holder, whatever the shares give."""
    laid, at = round_.accuser._laid(round_.dealt[v]), np.arange(5)
    parts = laid.signed, *laid.shown(1, at, round_.shares[v][kind, at]), laid.opened(about)
    return round_.accuser._verdict("contribution", v, *parts).data


def test_right_contributions_are_innocent() -> None:
    round_ = SignedRound()
    for about in (0, 1, 6):
        convicts_nobody("innocent", contribution_of(round_, HONEST, about), round_)


def test_own_leaf_has_no_check() -> None:
    round_ = SignedRound()
    convicts_nobody("ids", contribution_of(round_, HONEST, 3), round_)


def test_rounds_of_suite_x25519_have_no_contributions() -> None:
    round_ = SignedRound("x25519")
    convicts_nobody("kind", contribution_of(round_, HONEST, 0), round_)


def test_shares_of_another_seed_prove_nothing_about_contributions() -> None:
    round_ = SignedRound()

    def other(shares: np.ndarray) -> None:
        shares[1] = np.roll(shares[1], 1, axis=0)

    round_.deal(LIAR, other)
    convicts_nobody("kind", contribution_of(round_, LIAR, 0), round_)


def test_check_that_the_dealer_did_not_sign() -> None:
    round_ = SignedRound()
    opened = opened_part(round_, HONEST, 0)
    other = opened[:76] + bytes(32) + opened[108:]
    data = with_parts(
        contribution_of(round_, HONEST, 0), lambda parts: parts.__setitem__(-1, other)
    )
    convicts_nobody("root", data, round_)


def test_contributions_of_b_shares() -> None:
    """The seed is shared in s; shares of b are no shares of s."""
    round_ = SignedRound()
    convicts_nobody("root", contribution_of(round_, HONEST, 0, kind=0), round_)
