"""Messages that come twice or out of order, and reports: one for a sum, on one message."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
from flwr.app import ConfigRecord, Message
from flwr.common.serde import message_from_proto, message_to_proto

from flower_helpers import Door, grid_of
from flower_nodes import (
    NODES,
    Meddler,
    assert_mean,
    configs,
    errors,
    noting,
    phase_of,
    registry,
    run,
    secure_app,
    signed_configs,
    wrapped,
)
from secagg import ParameterError
from secagg.flower import OneShotMod, SecAggMod
from secagg.flower.testing import LocalGrid

Answer = Callable[[Message], Message]
FIRST = NODES[0]
PHASES = ["advertise_keys", "share_keys", "masked_input", "consistency_check", "unmasking"]
REFUSED = "secagg: RemoteProtocolError"


@pytest.fixture(params=["semi-honest", "active"])
def security(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def completes(security: str, meddle: Callable[[Message, Answer], Message]) -> list[int]:
    """Run a sum whose messages to one node are meddled with; return the nodes that trained."""
    trained: list[int] = []

    active = security == "active"
    grid = Meddler(secure_app(train=noting(trained)), signed_configs() if active else configs())
    grid.meddle = lambda message, answer: (
        meddle(message, answer) if message.metadata.dst_node_id == FIRST else answer(message)
    )
    settings = {"security": "active", "registry": registry()} if active else {}
    assert_mean(run(grid, wrapped(**settings)).arrays, NODES)
    assert not errors(grid)
    assert not grid.contexts[FIRST].state
    return trained


def copied(message: Message, **fields: object) -> Message:
    found = message_from_proto(message_to_proto(message))
    found.content["secagg"] = ConfigRecord({**found.content["secagg"], **fields})
    return found


@pytest.mark.parametrize("times", [1, 3])
def test_check49_every_message_twice(security: str, times: int) -> None:
    reasons = []

    def meddle(message: Message, answer: Answer) -> Message:
        again = [copied(message) for _ in range(times)]
        reply = answer(message)
        if phase_of(message) != "unmasking":  # there is no client afterwards
            reasons.extend(answer(one).error.reason for one in again)
        return reply

    assert sorted(completes(security, meddle)) == list(NODES)
    assert set(reasons) == {REFUSED}
    assert len(reasons) == times * (3 if security == "semi-honest" else 4)


@pytest.mark.parametrize("phase", PHASES[1:])
def test_check49_all_earlier_messages_before_each_one(security: str, phase: str) -> None:
    earlier: list[Message] = []
    reasons = []

    def meddle(message: Message, answer: Answer) -> Message:
        if phase_of(message) == phase:
            reasons.extend(answer(copied(one)).error.reason for one in earlier)
        earlier.append(copied(message))
        return answer(message)

    completes(security, meddle)
    assert set(reasons) <= {REFUSED}


@pytest.mark.parametrize("phase", PHASES[1:])
@pytest.mark.parametrize("other", PHASES)
def test_check49_a_message_of_another_phase_before_each_one(
    security: str, phase: str, other: str
) -> None:
    kept: dict[str, Message] = {}
    refused = []

    def meddle(message: Message, answer: Answer) -> Message:
        if phase_of(message) == phase != other:
            training = other == "masked_input"
            wrong = copied(
                message,
                phase=other,
                plan=b"\x94\xa1w\xc0\x90\x90" if training else b"",
                data=b"" if other == "advertise_keys" else message.content["secagg"]["data"],
            )
            refused.append(answer(wrong).error.reason)
        kept[phase_of(message)] = message
        return answer(message)

    completes(security, meddle)
    assert set(refused) <= {REFUSED}


def test_check49_a_phase_of_the_context_is_no_more_than_a_hint() -> None:
    """An altered phase gives no answer of another phase: the client's own state has it, too."""
    refused = []

    def meddle(message: Message, answer: Answer) -> Message:
        node = message.metadata.dst_node_id
        if node == FIRST and phase_of(message) == "unmasking":
            grid.contexts[node].state["secagg"]["phase"] = "share_keys"
            refused.append(answer(copied(message, phase="share_keys")).error.reason)
        return answer(message)

    grid = Meddler(secure_app(), configs())
    grid.meddle = meddle
    assert_mean(run(grid).arrays, NODES)
    assert refused == [REFUSED]


OTHERS = [node for node in NODES if node != NODES[0]]


def test_check50_a_node_reports_once_for_a_sum(party):
    trained = []

    def meddle(message: Message, answer: Answer) -> Message:
        reply, again = answer(message), answer(copy.deepcopy(message))
        if reply.has_content():
            assert again.error.reason == REFUSED
        return reply

    grid = Meddler(party.app(noting(trained)), party.configs())
    grid.meddle = meddle
    assert_mean(run(grid, party.wrapped()).arrays, NODES)
    assert sorted(trained) == list(NODES)


def test_check50_an_identity_reports_once_also_under_a_new_node_id(active):
    first: list[Message] = []

    def meddle(message: Message, answer: Answer) -> Message:
        if message.metadata.dst_node_id == NODES[0]:
            first.append(copy.deepcopy(message))
        return answer(message)

    grid = grid_of(active, meddle)
    run(grid, active.wrapped())
    moved = LocalGrid(active.app(), {99: grid.contexts[NODES[0]].node_config})
    first[0].metadata.__dict__["_dst_node_id"] = 99
    assert moved.answer(first[0]).error.reason == REFUSED


def test_check50_a_sum_of_another_run_gets_no_report(party):
    def meddle(message: Message, answer: Answer) -> Message:
        grid.contexts[message.metadata.dst_node_id].run_id = 2
        return answer(message)

    grid = grid_of(party, meddle)
    assert not run(grid, party.wrapped(on_failure="skip")).arrays
    assert set(errors(grid)) == {REFUSED}


@pytest.mark.parametrize("mod", [SecAggMod, OneShotMod])
def test_arguments_of_the_mods_are_validated(mod):
    with pytest.raises(ParameterError):
        mod("policy")
    with pytest.raises(ParameterError):
        mod(public="loss")


def test_check50_a_restarted_node_is_in_no_earlier_sum(door: Door) -> None:
    first: list[Message] = []

    def meddle(message: Message, answer: Answer) -> Message:
        if message.metadata.dst_node_id == NODES[0]:
            first.append(copy.deepcopy(message))
        return answer(message)

    grid = door.grid()
    grid.meddle = meddle
    run(grid, door.strategy(), rounds=2)
    again = door.grid(nodes={NODES[0]: grid.contexts[NODES[0]].node_config})
    for message in first:
        assert again.answer(message).has_error()


def test_a_mod_refuses_the_other_protocol(semi_honest):
    for grid, strategy in (
        (grid_of(semi_honest), wrapped(on_failure="skip")),
        (LocalGrid(secure_app(), configs()), semi_honest.wrapped(on_failure="skip")),
    ):
        assert not run(grid, strategy).arrays
        assert set(errors(grid)) == {REFUSED}
