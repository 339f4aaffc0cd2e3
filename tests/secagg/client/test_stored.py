"""Bytes of suspended clients: authenticated, bound to client and round, read strictly."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from harness import Cohort, make_identity, registry_of
from secagg import Client, RoundParams, VaultError, testing
from secagg.client import stored
from slots import Slot
from suspended import CASES, KINDS, ME, again, refused, suspended


@pytest.mark.parametrize(("kind", "phases"), CASES)
def test_check48_damaged_states_are_rejected(kind: str, phases: int) -> None:
    """Truncated at any length, longer, or with any byte changed: nothing is restored."""
    cohort, state, slot = suspended(kind, phases)
    client = cohort.clients[ME]
    for size in range(len(state)):
        refused(again(client), state[:size], slot, "length|latest")
    refused(again(client), state + b"\0", slot, "latest")
    for at in range(len(state)):
        flipped = state[:at] + bytes([state[at] ^ 1 << at % 8]) + state[at + 1 :]
        checks = "version|length|client|session|parameters|latest"
        refused(again(client), flipped, slot, checks)
    again(client).restore(state, slot)


def content_of(kind: str, phases: int) -> tuple[bytes, RoundParams]:
    cohort = Cohort(KINDS[kind])
    cohort.advance(phases)
    client = cohort.clients[ME]
    return stored.pack(client._state, ME, client.clipped), cohort.params


@pytest.mark.parametrize(("kind", "phases"), CASES)
def test_content_is_read_strictly(kind: str, phases: int) -> None:
    """Content of another length, phase or ids is rejected, and the right one is canonical."""
    data, params = content_of(kind, phases)
    state, clipped = stored.unpack(data, ME, params)
    assert stored.pack(state, ME, clipped) == data  # type: ignore[arg-type]
    others = [data[:size] for size in range(len(data))]
    others += [data + b"\0", data + bytes(72), b"\x04" + data[1:]]
    others += [bytes([due]) + data[1:] for due in range(4) if due != data[0]]
    for other in others:
        with pytest.raises(VaultError) as caught:
            stored.unpack(other, ME, params)
        assert caught.value.check == "content"
    if phases > 1:
        for me in (ME + 100, 1 << 63):
            with pytest.raises(VaultError):
                stored.unpack(data, me, params)
        with pytest.raises(VaultError):
            stored.unpack(data, ME, replace(params, n_clients=3, threshold=3, neighbours=None))


@examples(50)
@given(st.binary(max_size=300), st.sampled_from(sorted(KINDS)))
def test_check26_any_bytes_are_no_state(data: bytes, kind: str) -> None:
    params = KINDS[kind]
    registry = registry_of(range(params.n_clients)) if params.active else None
    identity = make_identity(ME) if params.active else None
    client = Client(
        ME, params, policy=testing.toy_policy(params), identity=identity, registry=registry
    )
    refused(client, data, Slot(bytes(32)), "version|length|parameters|client|latest")
