"""A session with its members in one event loop, links that lose messages, and a hand clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from secagg import Registry, RemoteProtocolError, RoundParams
from secagg.session import (
    Clock,
    Event,
    LocalLink,
    PhaseClosed,
    PhaseOpened,
    Session,
    TaskTaken,
    take_part,
)
from secagg.session.wire import Answer as Answer
from secagg.session.wire import (
    AttemptName,
    Task,
    message_digest,
    read_answer,
    read_task,
    task_id,
    write_name,
)
from secagg.session.wire import Declined as Declined
from secagg.session.wire import encode as encode
from secagg.testing import make_identity, toy_policy


class HandClock:
    """Clock that stands until the test moves it; `expire` ends all deadlines under way."""

    def __init__(self) -> None:
        self.time = 0.0
        self.began: Callable[[], object] = lambda: None
        self._sleepers: list[asyncio.Future[None]] = []

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.time, self.sleep)

    async def sleep(self, seconds: float) -> None:
        one = asyncio.get_running_loop().create_future()
        self._sleepers.append(one)
        asyncio.get_running_loop().call_soon(self.began)
        try:
            await one
        finally:
            self._sleepers.remove(one)

    def expire(self) -> bool:
        """End the deadlines under way; return whether there were any."""
        for one in self._sleepers:
            if not one.done():
                one.set_result(None)
        return bool(self._sleepers)


class Link:
    """Link of a member that a test can cut: ``lost`` names steps, by attempt of a round.

    At ``(number, attempt, step): "task"`` the member does not get the task, and stays away for
    good. At ``"answer"`` its answer does not get out. `alter` changes tasks, as a liar would.
    """

    def __init__(self, party: Party, u: int, lost: Mapping[tuple[int, int, str], str]) -> None:
        self.party, self.u, self.lost = party, u, lost
        self.link = LocalLink(party.session, u)
        self.alter: Callable[[Any], Any] = lambda task: task
        self.tasks: list[Any] = []
        self.answers: list[Any] = []

    async def next_task(self, after: bytes) -> bytes | None:
        self.party._expire_if_quiet()
        data = await self.link.next_task(after)
        if data is not None:
            task = self.alter(read_task(data))
            data = encode(task)
            self.tasks.append(task)
            if self.lost.get((task.number, task.attempt, task.step)) == "task":
                await self.party.silence(self.u)
        return data

    async def send(self, answer: bytes) -> None:
        task = self.tasks[-1]
        self.answers.append(read_answer(answer, len(answer), self.u, task.step))
        if self.lost.get((task.number, task.attempt, task.step)) == "answer":
            await self.party.silence(self.u)
        await self.party.deliver(self.link, task, answer)


class Party:
    """Session with members; deadlines expire when only silent members are awaited."""

    def __init__(self, members: Collection[int], **options: Any) -> None:
        self.hand = HandClock()
        self.hand.began = self._check
        self.events: list[Event] = []
        self.silent: set[int] = set()
        self.helping = False
        self.taken: set[int] = set()
        self.on_event: Callable[[Event], object] = lambda event: None
        self.links: dict[int, Link] = {}
        self.running: dict[int, asyncio.Task[int]] = {}
        hooks = (self._noted, *options.pop("on_event", ()))
        self.session = Session(members, clock=self.hand.clock, on_event=hooks, **options)

    def join(
        self,
        u: int,
        train: Callable[..., Any],
        lost: Mapping[tuple[int, int, str], str] | None = None,
        **options: Any,
    ) -> asyncio.Task[int]:
        """Start a member."""
        self.silent.discard(u)
        self.links[u] = Link(self, u, lost or {})
        self.running[u] = asyncio.create_task(take_part(self.links[u], u, train, **options))
        return self.running[u]

    def come(
        self,
        params: RoundParams,
        members: Collection[int] | None = None,
        lost: Mapping[int, Mapping[tuple[int, int, str], str]] | None = None,
        seen: list[bytes] | None = None,
    ) -> None:
        """Start members, all by default, with their vectors; `seen` gets their messages."""
        for u in sorted(self.session._desk.members) if members is None else members:
            self.join(u, train_of(u, seen), (lost or {}).get(u), **member_options(u, params))

    async def deliver(self, link: LocalLink, task: Any, answer: bytes) -> None:
        """Deliver an answer; a test may override it."""
        await link.send(answer)

    async def silence(self, u: int) -> None:
        """Stay away for good."""
        self.silent.add(u)
        self._expire_if_quiet()
        await asyncio.get_running_loop().create_future()

    async def end(self) -> dict[int, int]:
        """Close the session; return the rounds that each member completed."""
        await self.session.close()
        for u in self.silent:
            self.running.pop(u).cancel()
        return {u: await one for u, one in self.running.items()}

    def kinds(self) -> list[str]:
        """Return the names of the events so far."""
        return [type(event).__name__ for event in self.events]

    def of(self, kind: type[Event]) -> list[Any]:
        """Return the events of a class."""
        return [event for event in self.events if isinstance(event, kind)]

    def _noted(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, PhaseOpened | PhaseClosed):
            helpers = event.phase in ("check", "reserve", "open")
            self.helping = helpers and isinstance(event, PhaseOpened)
            self.taken.clear()
        elif isinstance(event, TaskTaken):
            self.taken.add(event.client)
        self.on_event(event)
        self._expire_if_quiet()

    def _expire_if_quiet(self) -> None:
        asyncio.get_running_loop().call_soon(self._check)

    def _check(self) -> None:
        desk = self.session._desk
        if desk._exchange is not None:
            awaited = desk._exchange.awaited
            gone = {
                u for u in awaited & self.taken if desk.presence._polls[u]
            }  # it sent something else
            quiet = bool(awaited) and awaited <= self.silent | gone
        else:  # a round gathers its members, and all that will come are there
            quiet = not self.helping and all(
                desk.presence._polls[u] for u in desk.members - self.silent
            )
        if quiet:
            self.hand.expire()


class Script:
    """Link of one member that gets these tasks; its answers are kept."""

    def __init__(self, tasks: list[Task]) -> None:
        self.tasks, self.answers = list(tasks), list[Answer | Declined]()

    async def next_task(self, after: bytes) -> bytes | None:
        return encode(self.tasks.pop(0)) if self.tasks else None

    async def send(self, answer: bytes) -> None:
        self.answers.append(read_answer(answer, len(answer), 0, ""))


def named(params: RoundParams, number: int = 0, attempt: int = 0, **other: Any) -> RoundParams:
    fresh, digest = other.get("fresh", b"8 random"), message_digest(b"")
    name = AttemptName(other.get("run", b"the run!"), number, attempt, fresh, digest)
    return replace(params, session=write_name(b"app", name))


def first_task(params: RoundParams, number: int = 0, attempt: int = 0) -> Task:
    name = task_id(params.digest, number, attempt, "advertise_keys")
    return Task(name, number, attempt, "advertise_keys", params.to_bytes(), b"", b"")


async def rejects(check: str, call: Awaitable[object]) -> RemoteProtocolError:
    """Return the RemoteProtocolError of this check that a call raises."""
    with pytest.raises(RemoteProtocolError) as caught:
        await call
    assert caught.value.check == check
    return caught.value


async def until(true: Callable[[], object]) -> None:
    """Let the other coroutines go on until a condition holds."""
    while not true():
        await asyncio.sleep(0)


def vector_of(u: int, length: int) -> np.ndarray:
    """Return the vector of a client, exact in 16 fractional bits."""
    return np.arange(length) / 8 + u / 4


def train_of(u: int, seen: list[bytes] | None = None) -> Callable[..., np.ndarray]:
    """Return the training of a member, which gives its vector and keeps the messages."""

    def train(message: bytes, params: RoundParams) -> np.ndarray:
        if seen is not None:
            seen.append(message)
        return vector_of(u, params.length)

    return train


def registry_of(params: RoundParams) -> Registry | None:
    """Return the registry of an active round's members, None for other rounds."""
    members = range(params.n_clients) if params.active else ()
    return Registry({u: make_identity(u).public for u in members}) if members else None


def member_options(u: int, params: RoundParams) -> dict[str, Any]:
    """Return the policy, and in active rounds identity and registry, of a member."""
    more: dict[str, Any] = {"policy": toy_policy(params), "registry": registry_of(params)}
    return more | ({"identity": make_identity(u)} if params.active else {})


@asynccontextmanager
async def session_of(members: int, **options: Any) -> AsyncIterator[Party]:
    """Yield a party, and end its members after the block."""
    party = Party(range(members), **options)
    try:
        yield party
    finally:
        await party.session.close()
        for one in party.running.values():
            one.cancel()
        await asyncio.gather(*party.running.values(), return_exceptions=True)
