"""Contributions of clients that drop out: they are of the seed, or the client is at fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness import make_params
from lying_clients import (
    LiarsCohort,
    Lie,
    active_params,
    checks_others,
    complains,
    contributes_others,
    convicted,
    deals_off,
    ended,
)
from raised import rejects
from secagg import Dispute, Phase, RoundResult
from secagg.protocol import dealing

N, T = 9, 7


@pytest.mark.parametrize("lie", [checks_others, contributes_others])
def test_contributions_are_not_judged_while_the_client_stays(
    lie: Callable[[list[int]], Lie],
) -> None:
    """A check that misses p and q in the box is complained of."""
    found = ended(LiarsCohort(active_params(N, "hybrid"), {4: [lie([2])]}))
    assert isinstance(found, RoundResult)
    complained = (Dispute(4, 2),) if lie is checks_others else ()
    assert (found.verdicts, found.disputes) == ((), complained)


@pytest.mark.parametrize("security", ["semi-honest", "active"])
@pytest.mark.parametrize("place", [0, 5])
def test_check57_contributions_of_no_seed_end_the_round(security: str, place: int) -> None:
    params = make_params(N, T, suite="hybrid", security=security)
    cohort = LiarsCohort(params, {4: [contributes_others([place])]})
    error = ended(cohort, (), (), [4])
    assert (error.check, error.sender, error.phase) == ("contribution", 4, Phase.UNMASKING)
    guilty = [(4, "contribution")] if security == "active" else []
    assert convicted(cohort, error.verdicts) == guilty


def test_check57_contributions_for_clients_without_a_mask_do_not_count() -> None:
    """Client 0 left before its input, and client 1 complained by kind 2."""
    lies = {4: [contributes_others([0, 1])], 1: [complains({4: 2})]}
    found = ended(LiarsCohort(active_params(10, "hybrid"), lies), (), (), [0, 4])
    assert isinstance(found, RoundResult)
    assert (found.verdicts, found.disputes) == ((), (Dispute(4, 1),))


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
