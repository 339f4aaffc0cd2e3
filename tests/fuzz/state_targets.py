"""Fuzz target of suspended clients' states.

The first byte selects a round and what the rest is: a state, or the content of one, which is
encrypted correctly. A content that is accepted is canonical, and its client answers the round's
next message or rejects it.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from harness import Cohort, make_identity, make_params
from secagg import Client, Phase, RemoteProtocolError, RoundParams, VaultError, testing
from secagg.client import stored
from slots import Slot

ME = 2
KEY = bytes(range(32))
STATE, CONTENT = range(2)
WORLDS = (
    make_params(4),
    make_params(5, security="active", count_clipped=True),
    make_params(7, neighbours=4, max_weight=3, modulus=(1 << 31) - 1),
    make_params(4, suite="hybrid"),
    make_params(5, suite="hybrid", security="active"),
)


class World(NamedTuple):
    """A round: client 2's contents and the server's next message, by the phase that is due."""

    cohort: Cohort
    contents: dict[Phase, bytes]
    asked: dict[Phase, bytes]


@cache
def world(params: RoundParams) -> World:
    cohort, contents, asked = Cohort(params), {}, {}
    for phase in cohort.phases()[1:]:
        cohort.advance(1)
        client = cohort.clients[ME]
        contents[phase] = stored.pack(client._state, ME, client.clipped)
        asked[phase] = cohort.inbox[ME]
    return World(cohort, contents, asked)


def states(data: bytes) -> None:
    """Restore a client from a state, or from a state with this content."""
    if not data:
        return
    params, kind = WORLDS[data[0] % len(WORLDS)], data[0] // len(WORLDS) % 2
    cohort, contents, asked = world(params)
    old, slot = cohort.clients[ME], Slot(KEY)
    client = Client(
        ME,
        params,
        policy=testing.toy_policy(params),
        identity=make_identity(ME) if params.active else None,
        registry=old._registry,
    )
    state = data[1:] if kind == STATE else stored.seal(KEY, ME, params, data[1:])
    try:
        client.restore(state, slot)
    except VaultError as error:
        checks = {"content"}
        if kind == STATE:
            checks |= {"version", "length", "session", "parameters", "client", "latest"}
        assert error.check in checks
        assert len(str(error)) < 500
        assert (client.phase, slot.key) == (Phase.FAILED, KEY)
        return
    assert slot.key is None
    if kind == CONTENT:
        assert stored.pack(client._state, ME, client.clipped) == data[1:]
    try:
        client.answer(asked[client.phase], cohort.vectors[ME], cohort.weights[ME])
    except RemoteProtocolError as error:
        assert data[1:] not in contents.values(), error


def state_seeds() -> list[bytes]:
    """Every real state and content."""
    found = []
    for number, params in enumerate(WORLDS):
        for content in world(params).contents.values():
            found.append(bytes([number]) + stored.seal(KEY, ME, params, content))
            found.append(bytes([number + len(WORLDS)]) + content)
    return found
