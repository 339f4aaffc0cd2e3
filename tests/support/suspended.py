"""Clients suspended in the middle of a round, and states that are rejected."""

from __future__ import annotations

import pytest

from harness import Cohort, make_params
from secagg import Client, LocalProtocolError, Phase, VaultError
from secagg.client import SealingKey
from secagg.client.states import Peers
from slots import Slot

KINDS = {
    "complete": make_params(5, session=b"one"),
    "graph": make_params(7, neighbours=4, max_weight=3, modulus=(1 << 31) - 1),
    "active": make_params(5, security="active", count_clipped=True),
    "hybrid": make_params(5, suite="hybrid", session=b"one"),
    "hybrid active": make_params(5, suite="hybrid", security="active"),
}
ME = 2
CASES = [
    (kind, phases)
    for kind, params in KINDS.items()
    for phases in range(1, 5 if params.active else 4)
]


def again(client: Client) -> Client:
    """A new client with the same arguments."""
    return type(client)(
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


def secrets_of(client: Client) -> list[bytes]:
    """Every secret byte string of 16 bytes or more in a client's state."""
    found: list[bytes] = []
    for name, value in vars(client._state).items():
        if name in ("session", "signed"):
            continue
        if isinstance(value, dict):
            found += value.values()
        elif isinstance(value, bytes):
            found.append(value)
        elif isinstance(value, SealingKey):
            found.append(value.pair.seed)
        elif isinstance(value, Peers):
            columns = (value.opening, value.masking, value.own_p, value.own_q)
            found += (bytes(row) for column in columns for row in column if row.size)
        elif not isinstance(value, Phase) and value is not None:
            found.append(value.seed)
    return found


def refused(client: Client, state: bytes, slot: Slot, checks: str) -> None:
    """Assert that the state is rejected by that check, and that the client has ended."""
    with pytest.raises(VaultError) as caught:
        client.restore(state, slot)
    assert caught.value.check in checks.split("|")
    assert client.phase is Phase.FAILED
    with pytest.raises(LocalProtocolError):
        client.answer(b"")
