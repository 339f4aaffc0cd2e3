"""Faults of dealers and of contributions, from the table of docs/protocol.md, §14."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from harness import make_params
from liars import (
    LiarsCohort,
    Lie,
    active_params,
    checks_others,
    complains,
    contributes_others,
    convicted,
    deals_no_field_element,
    deals_off,
    hashes_others,
    publishes_another,
    reveals_others,
    seals_noise,
)
from raised import rejects
from secagg import Dispute, Phase, RemoteProtocolError, RoundResult
from secagg.protocol import dealing

SUITES = pytest.mark.parametrize("suite", ["x25519", "hybrid"])
N, T = 9, 7


def ended(cohort: LiarsCohort, *leaving: Collection[int]) -> RoundResult | RemoteProtocolError:
    """Return the result or the error of the rest of a round."""
    try:
        cohort.run(*leaving)
    except RemoteProtocolError as error:
        return error
    result = cohort.server.result()
    assert result.integers.tolist() == cohort.expected(result.survivors)
    return result


@SUITES
@pytest.mark.parametrize("kind", [dealing.B_SHARE, dealing.S_SHARE])
@pytest.mark.parametrize("row", [0, 3, 8])
def test_a_dealer_off_its_polynomial_is_convicted(suite: str, kind: int, row: int) -> None:
    """The round goes on: a share of b, or of s if the dealer drops out."""
    cohort = LiarsCohort(active_params(N, suite), {4: [deals_off([row], kind)]})
    result = ended(cohort, (), (), [4] if kind == dealing.S_SHARE else [])
    assert convicted(cohort, result.verdicts) == [(4, "shares")]
    assert result.disputes == ()


@SUITES
@pytest.mark.parametrize("kind", [dealing.B_SHARE, dealing.S_SHARE])
@pytest.mark.parametrize("lie", [publishes_another, lambda kind: deals_off([0, 1], kind)])
def test_a_dealer_of_a_lost_secret_ends_the_round_by_name(
    suite: str, kind: int, lie: Callable[[int], Lie]
) -> None:
    lies = {4: [lie(kind)], 2: [complains({7: 1})]}
    cohort = LiarsCohort(active_params(N, suite), lies)
    error = ended(cohort, (), (), [4] if kind == dealing.S_SHARE else [])
    assert (error.check, error.sender, error.phase) == ("shares", None, Phase.UNMASKING)
    assert convicted(cohort, error.verdicts) == [(4, "shares")]
    assert error.disputes == (Dispute(7, 2),)


def test_all_dealers_of_lost_secrets_are_convicted_at_once() -> None:
    lies = {u: [publishes_another(dealing.B_SHARE)] for u in (1, 4, 6)}
    lies |= {8: [deals_off([3])], 2: [reveals_others([0, 1])]}
    error = ended(LiarsCohort(active_params(N), lies))
    kinds = [(1, "shares"), (2, "answer"), (4, "shares"), (6, "shares"), (8, "shares")]
    assert convicted(LiarsCohort(active_params(N)), error.verdicts) == kinds


@SUITES
@pytest.mark.parametrize(
    "lie", [seals_noise, hashes_others, deals_no_field_element], ids=lambda lie: lie.__name__
)
@pytest.mark.parametrize("places", [1, 2, 3])
def test_bad_boxes_are_disputes_up_to_c_and_then_a_verdict(
    suite: str, lie: Callable[[range], Lie], places: int
) -> None:
    """c is 2 of nine clients; with three complaints the dealer lacks acceptors, too."""
    cohort = LiarsCohort(active_params(N, suite), {4: [lie(range(places))]})
    found = ended(cohort)
    assert convicted(cohort, found.verdicts) == [(4, "complaints")] * (places > 2)
    if places < 3:
        assert found.disputes == tuple(Dispute(4, w) for w in range(places))
    else:
        assert found.check == "dealer"


def test_a_false_complaint_convicts_nobody() -> None:
    found = ended(LiarsCohort(active_params(N), {3: [complains({0: 1, 5: 1})]}))
    assert (found.verdicts, found.disputes) == ((), (Dispute(0, 3), Dispute(5, 3)))


# ---- contributions


@pytest.mark.parametrize("lie", [checks_others, contributes_others])
def test_contributions_are_not_judged_while_the_client_stays(
    lie: Callable[[list[int]], Lie],
) -> None:
    """A check that misses p and q in the box is complained of."""
    found = ended(LiarsCohort(active_params(N, "hybrid"), {4: [lie([2])]}))
    complained = (Dispute(4, 2),) if lie is checks_others else ()
    assert (found.verdicts, found.disputes) == ((), complained)


@pytest.mark.parametrize("security", ["semi-honest", "active"])
@pytest.mark.parametrize("place", [0, 5])
def test_contributions_of_no_seed_are_the_senders_fault(security: str, place: int) -> None:
    params = make_params(N, T, suite="hybrid", security=security)
    cohort = LiarsCohort(params, {4: [contributes_others([place])]})
    error = ended(cohort, (), (), [4])
    assert (error.check, error.sender, error.phase) == ("contribution", 4, Phase.UNMASKING)
    guilty = [(4, "contribution")] if security == "active" else []
    assert convicted(cohort, error.verdicts) == guilty


def test_contributions_for_clients_without_a_mask_do_not_count() -> None:
    """Client 0 left before its input, and client 1 complained by kind 2."""
    lies = {4: [contributes_others([0, 1])], 1: [complains({4: 2})]}
    found = ended(LiarsCohort(active_params(10, "hybrid"), lies), (), (), [0, 4])
    assert found.verdicts == ()
    assert found.disputes == (Dispute(4, 1),)


def test_all_contributors_of_no_seed_are_convicted_and_the_first_is_the_sender() -> None:
    lies = {u: [contributes_others([2])] for u in (4, 7)}
    cohort = LiarsCohort(active_params(N, "hybrid"), lies)
    error = ended(cohort, (), (), [4, 7])
    assert (error.check, error.sender) == ("contribution", 4)
    assert convicted(cohort, error.verdicts) == [(4, "contribution"), (7, "contribution")]


def test_nothing_is_removed_before_all_contributions_are_checked() -> None:
    cohort = LiarsCohort(active_params(N, "hybrid"), {4: [contributes_others([2])]})
    cohort.advance(2)
    cohort.advance(1, without=[4])
    cohort.advance(1)
    total = cohort.server._stage._summed.total
    before = total.copy()
    rejects("contribution", lambda: cohort.advance(1))
    assert (total == before).all()


def test_a_dealer_off_its_polynomial_and_of_no_seed_is_convicted_of_its_shares() -> None:
    lies = {4: [contributes_others([2]), deals_off([8], dealing.S_SHARE)]}
    cohort = LiarsCohort(active_params(N, "hybrid"), lies)
    cohort.advance(2)
    cohort.advance(1, without=[4])
    cohort.advance(1)
    error = rejects("contribution", lambda: cohort.advance(1))
    assert convicted(cohort, error.verdicts) == [(4, "shares")]
