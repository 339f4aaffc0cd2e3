"""Forged verdicts of complaints (docs/protocol.md, §14.2)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from blamed_round import (
    HONEST,
    IDS,
    LIAR,
    POLICY,
    STRANGERS,
    SignedRound,
    convicts_nobody,
    cut,
    dealt_part,
    guilty,
    joined,
    opened_part,
    with_parts,
)
from harness import make_identity
from raised import rejects
from secagg import ClientPolicy, ParameterError, Registry, blame
from secagg.blame.layout import Openings
from secagg.protocol import dealing


def complaints_about(
    round_: SignedRound, holders: Iterable[int], dealer: int = HONEST, said: int = 1
) -> bytes:
    lists = {round_.place(w): round_.accept(w, {dealer: said}) for w in holders}
    return round_.accuser.complaints(round_.dealt[dealer], lists).data


@pytest.mark.parametrize("colluders", [0, 1, 2])
def test_check58_complaints_of_those_who_may_collude(colluders: int) -> None:
    round_, policy = SignedRound(), ClientPolicy(colluders=colluders)
    data = complaints_about(round_, IDS[:colluders])
    convicts_nobody("count", data, round_, policy)
    data = complaints_about(round_, IDS[: colluders + 1])
    assert blame.check(data, round_.registry, policy) == HONEST


def test_colluders_are_counted_in_the_registry() -> None:
    """One in ten: one of the ten clients of the round, and two of the registry's twelve."""
    ids = range(1, 11)
    round_, policy = SignedRound(ids=ids), ClientPolicy(corrupt=0.1)
    data = complaints_about(round_, [1, 2], dealer=4)
    convicts_nobody("count", data, round_, policy)
    registry = Registry({u: round_.registry[u] for u in ids})
    assert blame.check(data, registry, policy) == 4


def test_policy_counts_the_colluders_in_the_registry() -> None:
    """Three in ten are three of the ten clients of the round, of whom at most three may lie.

    Three in ten of the twelve clients in the registry are four.
    """
    round_, policy = SignedRound(ids=range(1, 11)), ClientPolicy(corrupt=0.3)
    data = complaints_about(round_, [1, 2, 3, 5], dealer=4)
    registry = Registry({u: round_.registry[u] for u in range(1, 11)})
    assert blame.check(data, registry, policy) == 4
    with pytest.raises(ParameterError):
        blame.check(data, round_.registry, policy)


@pytest.mark.parametrize("order", [[0, 0], [1, 0]], ids=str)
def test_complaint_twice_or_out_of_order(order: list[int]) -> None:
    round_ = SignedRound()
    head, (dealt, *complaints) = cut(complaints_about(round_, IDS[:2]))
    chosen = [part for at in order for part in complaints[3 * at : 3 * at + 3]]
    convicts_nobody("ids", joined(head, [dealt, *chosen]), round_)


def test_complaint_of_the_dealer_itself() -> None:
    round_ = SignedRound()
    items = np.concatenate([round_.items(LIAR)[:1], round_.items(LIAR)])
    items[1] = LIAR, round_.leaves_of(round_.dealt[LIAR])[1], 1
    lists = {0: round_.accept(IDS[0], {LIAR: 1}), 1: round_.accept(LIAR, items=items)}
    data = round_.accuser.complaints(round_.dealt[LIAR], lists).data
    convicts_nobody("ids", data, round_)


@pytest.mark.parametrize(("suite", "said"), [("hybrid", 0), ("hybrid", 3), ("x25519", 2)])
def test_list_without_a_complaint(suite: str, said: int) -> None:
    round_ = SignedRound(suite)
    convicts_nobody("leaf", complaints_about(round_, IDS[:3], said=said), round_)


def test_complaint_about_the_leaf_of_another_holder() -> None:
    """A complaint counts about the leaf that the dealer signed for the one who complains."""
    round_ = SignedRound()
    leaves = round_.leaves_of(round_.dealt[HONEST])
    for place, check in ((4, "signature"), (1, "leaf")):
        items = round_.items(LIAR)
        items["leaf"][items["dealer"] == HONEST] = leaves[4]
        items["complaint"][items["dealer"] == HONEST] = 1
        lists = {0: round_.accept(IDS[0], {HONEST: 1}), 4: round_.accept(LIAR, items=items)}
        data = round_.accuser.complaints(round_.dealt[HONEST], lists).data
        opened = opened_part(round_, HONEST, place)
        data = with_parts(data, lambda parts, opened=opened: parts.__setitem__(6, opened))
        convicts_nobody(check, data, round_)


def test_complaint_about_a_leaf_that_the_dealer_did_not_sign() -> None:
    round_ = SignedRound()
    data = complaints_about(round_, IDS[:2])
    signed = dealt_part(round_, HONEST)
    round_.deal(HONEST)
    other = complaints_about(round_, IDS[:2])
    assert blame.check(other, round_.registry, POLICY) == HONEST
    data = with_parts(other, lambda parts: parts.__setitem__(0, signed))
    convicts_nobody("root", data, round_)


@pytest.mark.parametrize("stranger", [STRANGERS[0], 99])
def test_complaint_of_a_client_that_was_not_in_the_round(stranger: int) -> None:
    """The dealer signed no leaf for this client, so no maker of a leaf matters."""
    round_ = SignedRound()
    opened = opened_part(round_, HONEST, 4)
    opened = stranger.to_bytes(8, "little") + opened[8:]
    leaf = Openings.of(opened).leaves(round_.session, HONEST)
    items = round_.items(IDS[0])
    items[items["dealer"] == HONEST] = HONEST, leaf[0], 1
    accepted = round_.accept(stranger, items=items)
    head, parts = cut(complaints_about(round_, [IDS[4]]))
    forged = [parts[0], *accepted, opened, *parts[1:]]
    convicts_nobody("root", joined(head, forged), round_)


@pytest.mark.parametrize("kind", ["complaints", "complainer"])
def test_complaint_of_or_about_a_client_that_is_not_in_the_registry(kind: str) -> None:
    round_ = SignedRound()
    data = guilty(round_, kind).data
    for missing in (IDS[0], IDS[2], IDS[-1] if kind == "complaints" else LIAR):
        rest = {u: round_.registry[u] for u in round_.registry if u != missing}
        rejects("unknown client", lambda r=rest: blame.check(data, Registry(r), POLICY))


def test_complaint_that_another_client_signed() -> None:
    round_ = SignedRound()
    lists = {
        0: round_.accept(IDS[0], {HONEST: 1}),
        4: round_.accept(IDS[4], {HONEST: 1}, None, LIAR),
    }
    data = round_.accuser.complaints(round_.dealt[HONEST], lists).data
    convicts_nobody("signature", data, round_)


def test_more_complaints_than_clients_in_the_round() -> None:
    """A dealer can sign leaves for more holders than the parameters allow."""
    round_ = SignedRound()
    holders = sorted([u for u in IDS if u != LIAR] + [*STRANGERS])
    assert len(holders) == 8 == round_.params.n_clients + 1
    columns = (np.zeros((8, width), np.uint8) for width in (64, 32, 32))
    crowd = Openings(
        np.array(holders, np.uint64),
        np.arange(1, 9, dtype=np.uint64),
        *columns,
        np.zeros((8, 0, 32), np.uint8),
    )
    leaves = crowd.leaves(round_.session, LIAR)
    nodes = dealing.tree(leaves)
    crowd = crowd._replace(paths=nodes[dealing.siblings(8)])
    values = bytes(32), bytes(32), nodes[-1].tobytes()
    signature = make_identity(LIAR).sign(dealing.signed_dealt(round_.session, LIAR, *values))
    parts = [b"".join(values) + signature]
    for w, leaf, opened in zip(holders, leaves, crowd.parts(), strict=True):
        items = np.array([(LIAR, leaf, 1)], dealing.LIST_ITEM)
        parts += [*round_.accept(w, items=items), opened]
    head, _ = cut(complaints_about(round_, IDS[2:4], dealer=LIAR))
    convicts_nobody("length", joined(head, parts), round_)
    assert blame.check(joined(head, parts[:-3]), round_.registry, POLICY) == LIAR


def complainer_of(round_: SignedRound, dealers: Iterable[int], holder: int = LIAR) -> bytes:
    accepted = round_.accept(holder, dict.fromkeys(dealers, 1))
    place = round_.place(holder)
    return round_.accuser.complainer(place, accepted, round_.dealt.__getitem__).data


@pytest.mark.parametrize("count", [0, 1, 2])
def test_holder_may_complain_of_as_many_dealers_as_may_lie(count: int) -> None:
    round_ = SignedRound()
    convicts_nobody("count", complainer_of(round_, IDS[2 : 2 + count]), round_)
    for more in (3, 5):
        data = complainer_of(round_, IDS[2 : 2 + more])
        assert blame.check(data, round_.registry, POLICY) == LIAR


def test_list_that_another_client_signed() -> None:
    round_ = SignedRound()
    accepted = round_.accept(HONEST, dict.fromkeys(IDS[4:], 1), signer=LIAR)
    data = round_.accuser.complainer(3, accepted, round_.dealt.__getitem__).data
    convicts_nobody("signature", data, round_)


def test_complainer_that_lists_itself() -> None:
    round_ = SignedRound()
    items = np.concatenate(
        [round_.items(LIAR, {IDS[0]: 1})[:1], round_.items(LIAR, {IDS[2]: 1})]
    )
    items[1] = LIAR, round_.leaves_of(round_.dealt[LIAR])[1], 1
    accepted = round_.accept(LIAR, items=items)
    data = round_.accuser.complainer(1, accepted, round_.dealt.__getitem__).data
    convicts_nobody("ids", data, round_)


def test_complaints_of_leaves_that_no_dealer_signed() -> None:
    round_ = SignedRound()
    data = complainer_of(round_, IDS[3:6])
    signed = dealt_part(round_, IDS[4])
    round_.deal(IDS[4])
    other = complainer_of(round_, IDS[3:6])
    forged = with_parts(other, lambda parts: parts.__setitem__(4, signed))
    convicts_nobody("root", forged, round_)
    unsigned = signed[:-1] + bytes([signed[-1] ^ 1])
    forged = with_parts(data, lambda parts: parts.__setitem__(4, unsigned))
    convicts_nobody("signature", forged, round_)


def test_complaints_of_leaves_of_another_holder() -> None:
    round_ = SignedRound()
    other = opened_part(round_, IDS[4], 0)
    data = with_parts(
        complainer_of(round_, IDS[3:6]), lambda parts: parts.__setitem__(5, other)
    )
    convicts_nobody("ids", data, round_)


def test_complaints_of_other_leaves_than_the_opened() -> None:
    round_ = SignedRound()
    accepted = round_.accept(LIAR, dict.fromkeys(IDS[3:6], 1))
    round_.deal(IDS[4])
    data = round_.accuser.complainer(1, accepted, round_.dealt.__getitem__).data
    convicts_nobody("leaf", data, round_)


@pytest.mark.parametrize(("suite", "said"), [("hybrid", 3), ("x25519", 2)])
def test_complaints_of_unknown_kinds(suite: str, said: int) -> None:
    round_ = SignedRound(suite)
    accepted = round_.accept(LIAR, dict.fromkeys(IDS[3:6], said))
    data = round_.accuser.complainer(1, accepted, round_.dealt.__getitem__).data
    convicts_nobody("leaf", data, round_)
