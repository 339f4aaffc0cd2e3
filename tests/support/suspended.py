"""Clients suspended in the middle of a round, and states that are rejected."""

from __future__ import annotations

import pytest

from harness import Cohort, make_params
from secagg import Client, LocalProtocolError, Phase, VaultError
from slots import Slot

KINDS = {
    "complete": make_params(5, session=b"one"),
    "graph": make_params(7, neighbours=4, max_weight=3, modulus=(1 << 31) - 1),
    "active": make_params(5, security="active", count_clipped=True),
}
ME = 2
CASES = [
    (kind, phases)
    for kind, params in KINDS.items()
    for phases in range(1, 5 if params.active else 4)
]


def again(client: Client) -> Client:
    """A new client with the same arguments."""
    return Client(
        client.client_id,
        client.params,
        policy=client.policy,
        identity=client._identity,
        registry=client._registry,
        entropy=client._entropy,
    )


def suspended(kind: str, phases: int) -> tuple[Cohort, bytes, Slot]:
    """A cohort after some phases, and the state of its client with the slot of its key."""
    cohort, slot = Cohort(KINDS[kind]), Slot()
    cohort.advance(phases)
    return cohort, cohort.clients[ME].suspend(slot), slot


def refused(client: Client, state: bytes, slot: Slot, checks: str) -> None:
    """Assert that the state is rejected by that check, and that the client has ended."""
    with pytest.raises(VaultError) as caught:
        client.restore(state, slot)
    assert caught.value.check in checks.split("|")
    assert client.phase is Phase.FAILED
    with pytest.raises(LocalProtocolError):
        client.answer(b"")
