"""Faults of dealers and of contributions, from the table of docs/protocol.md, §14."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lying_clients import (
    LiarsCohort,
    Lie,
    active_params,
    complains,
    convicted,
    deals_no_field_element,
    deals_off,
    ended,
    hashes_others,
    hashes_withheld,
    publishes_another,
    reveals_others,
    seals_noise,
)
from secagg import Dispute, Phase, RoundResult
from secagg.protocol import dealing

SUITES = pytest.mark.parametrize("suite", ["x25519", "hybrid"])
N, T = 9, 7


@SUITES
@pytest.mark.parametrize("kind", [dealing.B_SHARE, dealing.S_SHARE])
@pytest.mark.parametrize("row", [0, 3, 8])
def test_check59_dealer_off_its_polynomial_is_convicted(
    suite: str, kind: int, row: int
) -> None:
    """The round goes on: a share of b, or of s if the dealer drops out."""
    cohort = LiarsCohort(active_params(N, suite), {4: [deals_off([row], kind)]})
    result = ended(cohort, (), (), [4] if kind == dealing.S_SHARE else [])
    assert isinstance(result, RoundResult)
    assert convicted(cohort, result.verdicts) == [(4, "shares")]
    assert result.disputes == ()


@SUITES
@pytest.mark.parametrize("kind", [dealing.B_SHARE, dealing.S_SHARE])
@pytest.mark.parametrize("lie", [publishes_another, lambda kind: deals_off([0, 1], kind)])
def test_check59_a_dealer_of_a_lost_secret_ends_the_round_by_name(
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
def test_check59_bad_boxes_are_disputes_up_to_c_and_then_a_verdict(
    suite: str, lie: Callable[[range], Lie], places: int
) -> None:
    """c is 2 of nine clients; with three complaints the dealer lacks acceptors, too."""
    cohort = LiarsCohort(active_params(N, suite), {4: [lie(range(places))]})
    found = ended(cohort)
    assert convicted(cohort, found.verdicts) == [(4, "complaints")] * (places > 2)
    if places < 3:
        assert isinstance(found, RoundResult)
        assert found.disputes == tuple(Dispute(4, w) for w in range(places))
    else:
        assert found.check == "dealer"


@SUITES
@pytest.mark.parametrize("gone", [[], [4]])
def test_check60_a_withheld_share_is_no_share_whatever_the_dealer_hashed(
    suite: str, gone: list[int]
) -> None:
    """The bytes ff of two holders have the hash that the dealer signed."""
    cohort = LiarsCohort(active_params(11, suite), {4: [hashes_withheld([0, 10])]})
    found = ended(cohort, (), (), gone)
    assert (found.verdicts, found.disputes) == ((), (Dispute(4, 0), Dispute(4, 10)))
    assert found.survivors == tuple(u for u in range(11) if u not in gone)


def test_check60_a_false_complaint_convicts_nobody() -> None:
    found = ended(LiarsCohort(active_params(N), {3: [complains({0: 1, 5: 1})]}))
    assert (found.verdicts, found.disputes) == ((), (Dispute(0, 3), Dispute(5, 3)))
