"""Closing of round 2 in the active variant: verdicts, dealers without holders, the graph."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness import registry_of
from lying_clients import LiarsCohort, active_params, complains, convicted, named, seals_noise
from raised import rejects
from secagg import (
    ClientPolicy,
    CohortLedger,
    Dispute,
    ParameterError,
    Phase,
    RemoteProtocolError,
    Server,
    TooFewSurvivors,
)

SUITES = pytest.mark.parametrize("suite", ["x25519", "hybrid"])


@SUITES
@pytest.mark.parametrize("complaints", [2, 3])
def test_check59_more_complaints_than_colluders_convict(suite: str, complaints: int) -> None:
    """c is 2 of 13 clients in the server's policy; the round goes on."""
    places = range(complaints)
    params = active_params(13, suite)
    cohort = LiarsCohort(params, {5: [seals_noise(places)]})
    policy = ClientPolicy(colluders=2)
    cohort.server = Server(params, registry=cohort.registry, policy=policy)
    cohort.run()
    result = cohort.server.result()
    assert result.integers.tolist() == cohort.expected(range(13))
    if complaints == 2:
        assert (result.verdicts, result.disputes) == ((), (Dispute(5, 0), Dispute(5, 1)))
    else:
        assert convicted(cohort, result.verdicts) == [(5, "complaints")]
        assert result.disputes == ()


@pytest.mark.parametrize(
    ("complaints", "registered", "guilty"),
    [(3, 13, False), (4, 13, True), (4, 26, False), (5, 26, True)],
)
def test_colluders_are_of_the_registry_and_capped(
    complaints: int, registered: int, guilty: bool
) -> None:
    """A fifth of 13 clients is 3. Of a registry of 26 it is 6, and 2t − n − 1 is 4."""
    params = active_params(13)
    cohort = LiarsCohort(params, {5: [seals_noise(range(complaints))]})
    cohort.server = Server(params, registry=registry_of(range(registered)))
    cohort.advance(2)
    if complaints > 4:  # too few others accept
        rejects("dealer", lambda: cohort.advance(1))
    else:
        cohort.advance(1)
    assert named(cohort.server.verdicts) == [(5, "complaints")] * guilty


def test_a_policy_of_another_type_is_rejected() -> None:
    with pytest.raises(ParameterError, match="policy"):
        Server(active_params(4), registry=registry_of(range(4)), policy=3)


@pytest.mark.parametrize(
    ("places", "gone", "lacks"),
    [
        ([0, 1], [], False),  # seven of nine accept: client 4 itself, and six more
        ([0, 1, 2], [], True),
        ([0, 1], [4], True),  # who drops out does not accept its own
        ([0], [4], False),
        ([0, 1], [0, 1], False),  # nor complain
        ([0, 1], [8], True),
    ],
)
@SUITES
def test_check59_a_dealer_without_t_acceptors_ends_the_round(
    suite: str, places: list[int], gone: list[int], lacks: bool
) -> None:
    cohort = LiarsCohort(active_params(9, suite), {4: [seals_noise(places)]})
    policy = ClientPolicy(colluders=4)
    cohort.server = Server(cohort.params, registry=cohort.registry, policy=policy)
    cohort.advance(2)
    if not lacks:
        cohort.run(gone)
        result = cohort.server.result()
        assert result.integers.tolist() == cohort.expected(result.survivors)
        assert list(result.survivors) == [u for u in range(9) if u not in gone]
        return
    error = rejects("dealer", lambda: cohort.advance(1, without=gone))
    assert (error.sender, error.phase) == (None, Phase.MASKED_INPUT)
    assert error.disputes == tuple(Dispute(4, w) for w in places)
    assert error.verdicts == ()
    assert cohort.server.phase is Phase.FAILED


def test_the_disputes_of_the_error_are_about_the_lacking_dealers() -> None:
    lies = {u: [seals_noise([0, 1, 2])] for u in (4, 6)} | {7: [seals_noise([5])]}
    cohort = LiarsCohort(active_params(9), lies)
    cohort.advance(2)
    error = rejects("dealer", lambda: cohort.advance(1))
    assert error.disputes == tuple(Dispute(v, w) for v in (4, 6) for w in range(3))
    # c is 2
    assert convicted(cohort, error.verdicts) == [(4, "complaints"), (6, "complaints")]


def test_check25_pairs_without_a_mask_are_no_edges() -> None:
    """Two halves of twelve complain of each other: three complaints of and about each."""
    lies = {}
    for u in range(12):
        half, other = (range(6), range(6, 12)) if u < 6 else (range(6, 12), range(6))
        place = half.index(u)
        # of the pair (a, b), a complains of b or b of a
        mine = [v for i, v in enumerate(other) if (i - place) % 6 < 3]
        if u >= 6:
            mine = [v for i, v in enumerate(other) if (place - i) % 6 >= 3]
        lies[u] = [complains(dict.fromkeys(mine, 2))]
    cohort = LiarsCohort(active_params(12, "hybrid"), lies)
    cohort.advance(2)
    with pytest.raises(TooFewSurvivors) as caught:
        cohort.advance(1)
    assert (caught.value.survivors, caught.value.needed) == (12, 12)
    assert caught.value.verdicts == ()


def below_in_inputs(cohort: LiarsCohort) -> None:
    cohort.advance(1, without=[0, 1, 2, 3, 4])


def below_in_signatures(cohort: LiarsCohort) -> None:
    cohort.advance(1)
    cohort.advance(1, without=range(5))


def below_in_shares(cohort: LiarsCohort) -> None:
    cohort.advance(2)
    cohort.advance(1, without=range(5))


def known_cohort(cohort: LiarsCohort) -> None:
    cohort.advance(1)


@pytest.mark.parametrize(
    "end", [below_in_inputs, below_in_signatures, below_in_shares, known_cohort]
)
def test_check59_every_later_error_has_the_verdicts(end: Callable[[LiarsCohort], None]) -> None:
    """Client 12 dealt badly to clients 5 to 8, and the round ends for another reason."""
    cohort = LiarsCohort(active_params(13), {12: [seals_noise(range(5, 9))]})
    ledger = CohortLedger(min_difference=3)
    if end is known_cohort:
        ledger.record(range(12))
    cohort.server = Server(cohort.params, registry=cohort.registry, ledger=ledger)
    cohort.advance(2)
    with pytest.raises((TooFewSurvivors, RemoteProtocolError)) as caught:
        end(cohort)
    assert isinstance(caught.value, TooFewSurvivors)
    assert convicted(cohort, caught.value.verdicts) == [(12, "complaints")]
    assert cohort.server.verdicts == caught.value.verdicts
