"""Reports of a node: once for a sum, on the message that all agreed on, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
from flwr.app import Message

from flower_helpers import Door, grid_of
from flower_nodes import (
    NODES,
    Meddler,
    assert_mean,
    configs,
    noting,
    run,
    secure_app,
    wrapped,
)
from secagg import ParameterError
from secagg.flower import OneShotMod, SecAggMod
from secagg.flower.testing import LocalGrid

Answer = Callable[[Message], Message]
OTHERS = [node for node in NODES if node != NODES[0]]
REFUSED = "secagg: RemoteProtocolError"


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
    assert {reply.error.reason for reply in grid.replies} == {REFUSED}


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
        assert {reply.error.reason for reply in grid.replies} == {REFUSED}
