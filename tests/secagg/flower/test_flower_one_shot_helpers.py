"""One-shot rounds in one process with helpers that die, lie or have the wrong place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from flower_helpers import Faulty, dies, garbage, grid_of, lies
from flower_nodes import (
    NODES,
    assert_mean,
    run,
)
from secagg import LinkError, RemoteProtocolError
from secagg.flower.testing import LocalHelper


def unreachable(answer: object) -> object:
    raise LinkError("nobody answers", check="connection")


@pytest.mark.parametrize("fault", [dies, unreachable])
@pytest.mark.parametrize("step", ["endorse", "check", "open"])
@pytest.mark.parametrize("number", [0, 2])
def test_a_helper_that_dies_is_left_out(party, step, number, fault):
    helpers: list[LocalHelper] = party.helpers
    helpers[number] = Faulty(party.journals[number], step, fault, registry=party.registry)
    assert_mean(run(grid_of(party), party.wrapped(helpers=helpers)).arrays, NODES)


@pytest.mark.parametrize("fault", [dies, lies, garbage])
def test_an_active_sum_leaves_out_a_helper_that_fails_to_reserve(active, fault):
    helpers: list[LocalHelper] = active.helpers
    helpers[1] = Faulty(active.journals[1], "reserve", fault, registry=active.registry)
    assert_mean(run(grid_of(active), active.wrapped(helpers=helpers)).arrays, NODES)


@pytest.mark.parametrize("fault", [lies, garbage])
def test_an_active_sum_is_right_though_a_helper_lies(active, fault):
    helpers: list[LocalHelper] = active.helpers
    helpers[0] = Faulty(active.journals[0], "open", fault, registry=active.registry)
    assert_mean(run(grid_of(active), active.wrapped(helpers=helpers)).arrays, NODES)


def test_a_helper_that_rejects_every_node_is_left_out(party):
    helpers: list[LocalHelper] = party.helpers
    ids = tuple(NODES) if not party.active else tuple(party.registry)
    helpers[0] = Faulty(party.journals[0], "check", lambda _: ids, registry=party.registry)
    assert_mean(run(grid_of(party), party.wrapped(helpers=helpers)).arrays, NODES)


def test_helpers_that_contradict_each_other_end_the_round(semi_honest):
    helpers: list[LocalHelper] = semi_honest.helpers
    helpers[0] = Faulty(semi_honest.journals[0], "open", lies)
    with pytest.raises(RemoteProtocolError) as caught:
        run(grid_of(semi_honest), semi_honest.wrapped(helpers=helpers))
    assert caught.value.check == "holders"


@pytest.mark.parametrize("step", ["endorse", "check", "open"])
def test_too_few_helpers_are_an_error(party, step):
    helpers: list[LocalHelper] = [
        Faulty(journal, step, dies, registry=party.registry) for journal in party.journals
    ]
    helpers[-1] = party.helpers[-1]
    with pytest.raises(RemoteProtocolError) as caught:
        run(grid_of(party), party.wrapped(helpers=helpers))
    assert caught.value.check == "helpers"
    skipped = run(grid_of(party), party.wrapped(helpers=helpers, on_failure="skip"))
    assert not skipped.arrays


def test_a_helper_at_the_place_of_another_is_left_out(semi_honest):
    helpers: Sequence[LocalHelper] = semi_honest.helpers
    helpers[1] = LocalHelper(semi_honest.journals[0])
    helpers[1].public = semi_honest.journals[1].public
    assert_mean(run(grid_of(semi_honest), semi_honest.wrapped(helpers=helpers)).arrays, NODES)
