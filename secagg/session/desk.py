"""Desk of a session, where members fetch tasks and hand in answers.

A single exchange at a time is open. An exchange ends when all awaited members have answered, or
at the deadline. Later answers are rejected with the check "late" and change nothing.

An answer is acknowledged when the answer is on the disk, which takes milliseconds. Answers that
come meanwhile wait for the next write, so that many answers share a write.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from secagg.errors import RemoteProtocolError
from secagg.session import wire
from secagg.session.clock import Clock
from secagg.session.events import Hooks, Place
from secagg.session.exchange import Calls, Exchange, Exchanges, Thread, closed, fingerprint
from secagg.session.presence import GATHER, Presence
from secagg.session.wire import Answer, Declined

_TOGETHER = 64
"""Answers in one write, at most. The answers are in memory until the write."""


class _Waiting(NamedTuple):
    """Answer that waits: client, content, the call after the write, and the outcome."""

    client: int
    data: bytes
    accepted: Callable[[], None]
    done: asyncio.Future[None]


class Desk(Exchanges):
    """Desk of a session.

    Transports call `next_task` and `accept`; the session calls the other methods.

    Parameters
    ----------
    name : str
        Name of the session.
    members : collection of int
        Ids of the clients that may take part.

    Attributes
    ----------
    closed : bool
    thread : Thread
    presence : Presence
    answers, declined
        See `Exchanges`.
    """

    def __init__(
        self, name: str, members: Collection[int], thread: Thread, hooks: Hooks, clock: Clock
    ) -> None:
        super().__init__(Place(name, 0, 0), thread, hooks, clock)
        self.members = frozenset(members)
        self.closed = False
        self.presence = Presence(hooks, clock)
        self._exchange: Exchange | None = None
        self._intake: Intake | None = None
        self._calls: dict[int, set[asyncio.Event]] = {}  # pending calls of next_task
        self._declined: dict[int, bytes] = {}  # task that each client declined last
        self._ready = asyncio.Event()
        self._ready.set()

    async def next_task(self, client: int, after: bytes, wait: float) -> bytes | None:
        """Return the client's task unless the task's id is `after`; see `Session.next_task`."""
        self._check_member(client)
        news = asyncio.Event()
        self._calls.setdefault(client, set()).add(news)
        try:
            with self.presence.waiting(client), suppress(TimeoutError):
                async with asyncio.timeout(None if math.isinf(wait) else wait):
                    while not self.closed:
                        task = self._task_of(client, after)
                        if task is not None:
                            return task
                        news.clear()
                        await news.wait()
            return None
        finally:
            self._calls[client].discard(news)

    async def accept(self, client: int, answer: bytes) -> None:
        """Validate and accept a client's answer; see `Session.accept`."""
        self._check_member(client)
        self.presence.see(client)
        # after a restart, an answer to the resumed attempt must not be rejected as late
        await self._ready.wait()
        # both now: the driver may open the next exchange during the checks
        exchange, intake = self._exchange, self._intake
        try:
            await self._accept(client, answer, exchange, intake)
        except RemoteProtocolError as error:
            self._reject(exchange, client, len(answer), error)
            raise

    def hold(self) -> None:
        """Let answers wait until the driver has resumed the attempt under way."""
        self._ready.clear()

    async def choose(
        self, place: Place, pool: Collection[int], size: int, least: int, seconds: float
    ) -> tuple[int, ...]:
        """Let waiting answers pass; return a cohort of members, see `Presence.choose`."""
        self._ready.set()
        return await self.presence.choose(place, pool, size, least, seconds)

    def close(self) -> None:
        """End the round under way, and all calls of `next_task`; later calls end at once."""
        self.closed = True
        self._ready.set()
        self.presence.close()
        if self._exchange is not None:
            self._exchange.failure = closed()
            self._exchange.settle()
            self._exchange = None
        self._call(self._calls)

    async def _collect(self, exchange: Exchange, seconds: float) -> None:
        self._exchange = exchange
        self._intake = intake = Intake(exchange, self.thread)
        self._ready.set()
        exchange.settle()
        self._call(exchange.awaited)
        try:
            async with self._clock.deadline(seconds) as deadline:
                await deadline.before(exchange.done)
        finally:
            self._exchange = None  # later answers are late
        # answers that came before the deadline count, also while their write takes longer
        await intake.join()
        # they may be gone: the next gathering does not take them for present
        self.presence.forget(exchange.awaited)
        self.presence.miss(exchange.awaited)

    def _task_of(self, client: int, after: bytes) -> bytes | None:
        exchange = self._exchange
        if exchange is None or exchange.id == after or client not in exchange.awaited:
            return None
        data = wire.encode(exchange.task(client))
        self._take_task(exchange, client, len(data))
        return data

    async def _accept(
        self, client: int, answer: bytes, exchange: Exchange | None, intake: Intake | None
    ) -> None:
        phase = GATHER if exchange is None else exchange.phase
        frame = wire.read_answer(answer, self.answers.limit, client, phase)
        # before the check "late": a repeated answer is acknowledged also in a later phase
        given = fingerprint(frame.task, frame.data) if isinstance(frame, Answer) else b""
        if given and self.answers.get(client) == given:
            return
        if not given and self._declined.get(client) == frame.task:
            return
        if exchange is None or intake is None or frame.task != exchange.id:
            raise _violation(client, phase, "late", "the task of this answer is not open")
        if client not in exchange.clients:
            why = "this client was not chosen, or an earlier answer of it was missing"
            raise _violation(client, phase, "unknown client", why)
        if isinstance(frame, Declined):
            self._declined[client] = frame.task
            # an accepted answer stands: a client cannot take part and decline
            if client in exchange.awaited:
                self._decline(exchange, client)
                self.presence.forget([client])
            return
        accepted = partial(self._accepted_now, client, frame, len(answer), exchange)
        await intake.put(client, frame.data, accepted)

    def _accepted_now(self, client: int, frame: Answer, size: int, exchange: Exchange) -> None:
        self.answers[client] = fingerprint(frame.task, frame.data)
        if client not in exchange.answered:  # the same answer came twice at the same time
            self._accept_answer(exchange, client, size)

    def _check_member(self, client: int) -> None:
        if client not in self.members:
            why = "no member of this session; pass its id to Session(members=…)"
            raise _violation(client, GATHER, "unknown client", why)

    def _call(self, clients: Collection[int]) -> None:
        for u in clients:
            for news in self._calls.get(u, ()):
                news.set()


class Intake:
    """Intake of the answers of an exchange."""

    def __init__(self, exchange: Exchange, thread: Calls) -> None:
        self._exchange, self._thread = exchange, thread
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def put(self, client: int, data: bytes, accepted: Callable[[], None]) -> None:
        """Validate and store an answer, then call `accepted`, also if this call is cancelled.

        Raises
        ------
        RemoteProtocolError
            The answer failed a check.
        Exception
            The server has ended. The `failure` of the exchange is the same error.
        """
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(client, data, accepted, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        await done

    async def join(self) -> None:
        """Wait until all answers are taken or rejected."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def _drain(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
            errors: list[Exception | None]
            try:
                errors = await self._thread.run(partial(self._take, some))
            except Exception as failure:  # the server has ended, and nothing more is stored
                self._exchange.failure = self._exchange.failure or failure
                self._exchange.settle()
                errors = [failure] * len(some)
            for one, error in zip(some, errors, strict=True):
                if error is None:
                    one.accepted()
                if one.done.done():  # cancelled by the transport
                    continue
                if error is None:
                    one.done.set_result(None)
                else:
                    one.done.set_exception(error)

    def _take(self, some: list[_Waiting]) -> list[Exception | None]:
        errors: list[Exception | None] = []
        for one in some:
            try:
                self._exchange.receive(one.client, one.data)
                errors.append(None)
            except RemoteProtocolError as error:
                errors.append(error)
        self._exchange.store()
        return errors


def _violation(client: int, phase: str, check: str, why: str) -> RemoteProtocolError:
    return RemoteProtocolError(why, sender=client, phase=phase, check=check)
