"""Golden vectors of suspended clients: their bytes, what they send when restored, faults."""

from __future__ import annotations

from typing import Any

import pytest

from secagg import Client, Phase, VaultError
from secagg.client import stored
from slots import Slot
from vectors_reader import Replay, b, load

VECTORS = load("states")


class Given(Slot):
    """A slot whose next key is given."""

    def renew(self) -> bytes:
        assert self.key is not None
        return self.key


def fresh(replay: Replay, u: int) -> Client:
    """A client with the entropy that an earlier one has left."""
    left = replay.fed.get(u)
    client = replay.client(u)
    if left is not None:
        replay.fed[u] = client._entropy = left
    return client


@pytest.mark.parametrize(
    "case", VECTORS["states"], ids=lambda c: f"{c['round']} {c['client']} {c['phase']}"
)
def test_check27_state_bytes_and_the_messages_after_them(case: dict[str, Any]) -> None:
    replay, u, phase = Replay(case["round"]), int(case["client"]), case["phase"]
    client, slot = replay.client_in(u, phase), Given(b(case["key"]))
    content = stored.pack(client._state, client.client_id, client.clipped)  # type: ignore[arg-type]
    assert content == b(case["content"])
    assert client.suspend(slot) == b(case["bytes"])
    client = fresh(replay, u)
    client.restore(b(case["bytes"]), slot)
    assert slot.key is None
    for due in replay.phases[replay.phases.index(phase) :]:
        assert replay.call(client, due, replay.answered(u, due)) == replay.sent[due][u]
    assert client.phase is Phase.FINISHED
    assert not replay.fed[u].left


@pytest.mark.parametrize("case", VECTORS["refused"], ids=lambda c: c["name"])
def test_check27_malformed_states_are_rejected(case: dict[str, Any]) -> None:
    replay, slot = Replay(case["round"]), Slot(b(case["key"]))
    client = replay.client(int(case["client"]))
    with pytest.raises(VaultError) as caught:
        client.restore(b(case["bytes"]), slot)
    assert caught.value.check == case["check"]
    assert client.phase is Phase.FAILED
    assert slot.key == b(case["key"])
