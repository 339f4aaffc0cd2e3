"""One identity in two processes: the others keep their sums, and a member names the cause."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from http_party import MEMBERS, PARAMS, REGISTRY, party_of, vector_of
from secagg import LinkError
from secagg.http import application
from secagg.session import (
    Event,
    MessageAccepted,
    PhaseOpened,
    RoundFinished,
    Session,
    take_part,
)
from secagg.session.wire import Task, encode

ACTIVE = replace(PARAMS, security="active", threshold=3)
CAUSE = "this identity is joined by another process"


@dataclass(frozen=True)
class Situation:
    """Moment at which further processes of client 0 come: an event, or before sum 0."""

    comes: Callable[[Event], bool] | None = None
    more: int = 1
    crashes: bool = False
    params: Any = PARAMS

    def starts(self, event: Event) -> bool:
        return self.comes is not None and self.comes(event)


def opened(phase: str) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, PhaseOpened) and event.phase == phase


def answered(phase: str) -> Callable[[Event], bool]:
    return lambda event: (
        isinstance(event, MessageAccepted) and (event.phase, event.client) == (phase, 0)
    )


PHASES = ("advertise_keys", "share_keys", "masked_input", "unmasking")
FINISHED: Callable[[Event], bool] = lambda event: isinstance(event, RoundFinished)  # noqa: E731
TWICE = {
    "at once": Situation(),
    "three at once": Situation(more=2),
    "after a sum, active": Situation(FINISHED, params=ACTIVE),
    **{f"while {phase} is open": Situation(opened(phase)) for phase in PHASES[1:3]},
    **{f"after an answer in {phase}": Situation(answered(phase)) for phase in PHASES[::2]},
}
RESTARTED = {
    "active, between two sums": Situation(FINISHED, crashes=True, params=ACTIVE),
    "while a phase is open": Situation(opened("share_keys"), crashes=True),
    "after an answer": Situation(answered("masked_input"), crashes=True),
    "after the last answer": Situation(answered("unmasking"), crashes=True),
}


async def two_sums(situation: Situation) -> tuple[list[set[int]], list[Any], list[Any]]:
    """Return the survivors of two sums, what the others completed, and what client 0 did."""
    session = Session(REGISTRY, registry=REGISTRY, deadlines=3.0)
    registry = REGISTRY if situation.params.active else None
    async with party_of(session) as party:
        zeros = [party.join(0, registry=registry)]

        def come(event: Event) -> None:
            if len(zeros) == 1 and situation.starts(event):
                if situation.crashes:
                    zeros[0].cancel()
                zeros.extend(party.join(0, registry=registry) for _ in range(situation.more))

        session.watch(come)
        if situation.comes is None:
            zeros.extend(party.join(0, registry=registry) for _ in range(situation.more))
        others = [party.join(u, registry=registry) for u in range(1, MEMBERS)]
        await party.until_polls(len(zeros) + len(others))
        survivors = [set((await session.round(situation.params)).survivors) for _ in "ab"]
        await session.close()
        done = await asyncio.gather(*zeros, return_exceptions=True)
        return survivors, await asyncio.gather(*others), done


def causes(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the hints that members logged."""
    hints = [getattr(record, "hint", None) for record in caplog.records]
    return [hint for hint in hints if hint]


@pytest.mark.parametrize("situation", TWICE.values(), ids=list(TWICE))
def test_members_that_share_an_identity_name_it_as_the_cause(situation, caplog):
    survivors, others, _ = asyncio.run(two_sums(situation))
    assert all(one >= {1, 2, 3} for one in survivors)
    assert others == [2] * (MEMBERS - 1)
    assert [hint for hint in causes(caplog) if CAUSE in hint]


@pytest.mark.parametrize("situation", RESTARTED.values(), ids=list(RESTARTED))
def test_restarted_member_is_in_the_next_sum(situation):
    survivors, others, (_, restarted) = asyncio.run(two_sums(situation))
    assert survivors[1] == set(range(MEMBERS))
    assert others == [2] * (MEMBERS - 1)
    assert 1 in restarted.rounds


async def test_member_alone_with_its_identity_reads_of_no_other_process(caplog):
    session = Session(REGISTRY)

    async with party_of(session) as party:
        members = party.join_all()
        await session.round(PARAMS)
        await session.close()
        assert await asyncio.gather(*members) == [1] * MEMBERS
    assert not causes(caplog)


async def test_process_beyond_the_polls_of_its_identity_names_the_others():
    async with party_of() as party, asyncio.timeout(20):  # or it would wait for ever
        many = range(application._POLLS_OF_CLIENT)
        party.running += [asyncio.create_task(party.task(0)) for _ in many]
        await party.until_polls(len(many))
        with pytest.raises(LinkError) as caught:
            await party.join(0, patience=1e-9)
        assert caught.value.check == "patience"
        assert CAUSE in str(caught.value)


async def test_logs_name_a_step_of_another_process_once(caplog):
    caplog.set_level(logging.WARNING, "secagg.session")
    tasks = [encode(Task(bytes(16), 0, 0, step, b"", b"", b"")) for step in PHASES[1:]]
    await take_part(AsyncMock(**{"next_task.side_effect": [*tasks, None]}), 0, vector_of)
    unbegun = [one for one in caplog.records if getattr(one, "check", "") == "unbegun"]
    assert len(unbegun) == 1
