"""The transition table: client and server follow it alone."""

from __future__ import annotations

import pytest

from harness import Cohort, make_params
from secagg import LocalProtocolError, Phase, RemoteProtocolError
from secagg.protocol import NEXT

ENTRIES = [(security, phase) for security, table in NEXT.items() for phase in table]


def at(security: str, phase: Phase) -> Cohort:
    """A cohort about to make its messages of `phase`."""
    cohort = Cohort(make_params(5, security=security))
    cohort.advance(cohort.phases().index(phase))
    return cohort


@pytest.mark.parametrize(("security", "phase"), ENTRIES)
def test_client_phases_follow_the_transition_table(security, phase, monkeypatch):
    for other in Phase:
        cohort = at(security, phase)
        with monkeypatch.context() as rerouted:
            rerouted.setitem(NEXT[security], phase, other)
            cohort.step()
        assert {client.phase for client in cohort.clients.values()} == {other}


@pytest.mark.parametrize(("security", "phase"), ENTRIES)
def test_server_phases_follow_the_transition_table(security, phase, monkeypatch):
    """The server fails if the phase is closed with less than the next one needs."""
    due = NEXT[security][phase]
    for other in set(Phase) - {due}:
        cohort = at(security, phase)
        sent = cohort.step()
        with monkeypatch.context() as rerouted:
            rerouted.setitem(NEXT[security], phase, other)
            try:
                cohort.deliver(sent)
            except (AttributeError, KeyError, TypeError):
                assert cohort.server.phase is Phase.FAILED
            else:
                assert cohort.server.phase is other


def test_active_client_that_signed_nothing_reveals_nothing(monkeypatch):
    """Clients require the consistency check even if the table leaves it out."""
    cohort = at("active", Phase.MASKED_INPUT)
    monkeypatch.setitem(NEXT["active"], Phase.MASKED_INPUT, Phase.UNMASKING)
    requests = cohort.advance(1)
    for u, request in requests.items():
        with pytest.raises(RemoteProtocolError) as caught:
            cohort.clients[u].answer(request)
        assert caught.value.check == "consistency"


@pytest.mark.parametrize("security", NEXT)
def test_call_in_any_phase_but_its_own_changes_nothing(security: str) -> None:
    cohort = Cohort(make_params(5, security=security))
    while cohort.server.phase in NEXT[security]:
        client, phase = cohort.clients[0], cohort.clients[0].phase
        calls = {
            Phase.ADVERTISE_KEYS: client.advertise_keys,
            Phase.SHARE_KEYS: lambda c=client: c.share_keys(b""),
            Phase.MASKED_INPUT: lambda c=client: c.masked_input(b"", cohort.vectors[0]),
            Phase.CONSISTENCY_CHECK: lambda c=client: c.check_consistency(b""),
            Phase.UNMASKING: lambda c=client: c.unmask(b""),
        }
        for due, call in calls.items():
            if due is not phase:
                with pytest.raises(LocalProtocolError):
                    call()
        assert client.phase is phase
        cohort.advance(1)
    assert cohort.server.phase is Phase.FINISHED
