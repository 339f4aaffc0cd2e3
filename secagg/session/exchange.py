"""Exchanges of a session: each client of a set gets a task and gives an answer.

`Exchanges` is the base of each transport. `Calls` and `Thread` make the calls of a driver.
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast

from secagg.errors import LocalProtocolError, RemoteProtocolError
from secagg.journal.lock import spoilt
from secagg.session.clock import Clock
from secagg.session.events import (
    EXCUSED,
    Hooks,
    MemberDeclined,
    MessageAccepted,
    MessageRejected,
    PhaseClosed,
    PhaseOpened,
    Place,
    TaskTaken,
)
from secagg.session.wire import FRAME, Task

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """Return the result of a call in any thread.

    Unlike with `asyncio.to_thread`, no frame of an error has the arguments. The frame of a pool
    would hold the call until the thread goes on.
    """

    def caught() -> tuple[T | None, BaseException | None]:
        try:
            return call(), None
        except BaseException as error:  # raised below, in another thread
            return None, error

    result, error = await asyncio.get_running_loop().run_in_executor(None, caught)
    if error is not None:
        raise error
    return cast("T", result)


class Calls:
    """Calls of a driver, made at once in the driver's thread."""

    async def run(self, call: Callable[[], T]) -> T:
        """Return the result of a call, or raise the error of the call."""
        return call()


def at_once(work: Coroutine[object, None, T]) -> T:
    """Return the result of a coroutine that waits for nothing.

    No event loop runs the coroutine, so the thread may have a loop, as in a notebook. A
    coroutine that waits is an error of the caller, and is closed.
    """
    try:
        work.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    work.close()
    raise LocalProtocolError("the coroutine waits for something; run it in an event loop")


class Thread(Calls):
    """Thread that makes calls in the order in which they are passed.

    So the event loop stays free, and a `Server`, which takes one thread at a time, is safe.
    """

    def __init__(self) -> None:
        self._closed = False
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="secagg-session")

    async def run(self, call: Callable[[], T]) -> T:
        """Return the result of a call, or raise the call's error or LocalProtocolError."""
        if self._closed:
            raise closed()
        # with the caller's context: the thread's own lines have the form of its command
        run = partial(copy_context().run, call)
        return await asyncio.get_running_loop().run_in_executor(self._pool, run)

    def close(self) -> None:
        """End the thread after the calls under way."""
        self._closed = True
        self._pool.shutdown(wait=False)


def closed() -> LocalProtocolError:
    """Return the error for a call of a closed session."""
    return LocalProtocolError("the session is closed; make a new one")


_RECORD = struct.Struct("<Q32s")
_LIMIT_BYTES = 8


@dataclass(eq=False, kw_only=True)
class Exchange:
    """A task for each of some clients, and the clients' answers.

    Attributes
    ----------
    phase : str
    id : bytes
        Id of the task, the same for all clients.
    clients : frozenset of int
        Clients that have a task.
    task : callable
        Function that makes the task of a client when the client fetches the task.
    receive : callable
        Function that validates and takes the content of an answer, in the session's thread.
    store : callable
        Function that writes the taken answers to the disk, in the session's thread.
    answered : set of int
        Clients with an accepted answer.
    given_up : set of int
        Clients that declined, or sent an answer that failed a check; not awaited any more.
    rejected : set of int
        Clients with an answer that failed a check other than "late" and "size".
    failure : Exception or None
        Error of the server itself, which ends the round.
    """

    place: Place
    phase: str
    id: bytes
    clients: frozenset[int]
    task: Callable[[int], Task]
    receive: Callable[[int, bytes], None]
    store: Callable[[], None]
    answered: set[int] = field(default_factory=set)
    given_up: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    bytes_down: int = 0
    bytes_up: int = 0
    failure: Exception | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def awaited(self) -> frozenset[int]:
        """Clients with an answer that may still come."""
        return self.clients - self.answered - self.given_up

    def settle(self) -> None:
        """Wake the driver if there is nothing left to wait for."""
        if self.failure is not None or not self.awaited:
            self.done.set()


class Answers(dict[int, bytes]):
    """`fingerprint` of the last accepted answer of each client.

    Attributes
    ----------
    limit : int
        Largest size of an answer in the rounds so far, in bytes.
    """

    # until a round begins, a transport reads no more than a frame's head from a member
    limit: int = FRAME

    def to_bytes(self) -> bytes:
        """Return the limit as u64, then the id as u64 and the fingerprint of each client."""
        records = (_RECORD.pack(*item) for item in self.items())
        return self.limit.to_bytes(_LIMIT_BYTES, "little") + b"".join(records)

    def read(self, data: bytes) -> None:
        """Restore the content of `to_bytes`; empty bytes change nothing.

        JournalError is raised for any other bytes.
        """
        if data != b"":
            if not isinstance(data, bytes) or len(data) % _RECORD.size != _LIMIT_BYTES:
                raise spoilt("the last answers were altered")
            self.limit = int.from_bytes(data[:_LIMIT_BYTES], "little")
            self.update(_RECORD.iter_unpack(data[_LIMIT_BYTES:]))


def fingerprint(task: bytes, data: bytes) -> bytes:
    """Return the SHA-256 of an answer: of the task's id and the content."""
    # with the id: equal contents in two tasks are two answers
    return hashlib.sha256(task + data).digest()


class Exchanges(ABC):
    """Exchanges as `Attempt` and `Batch` drive them. A class for each transport inherits.

    Members of a session call the `Desk`. Nodes of Flower call nobody: the server pushes tasks
    and pulls replies (`secagg.flower.courier`).

    Parameters
    ----------
    place : Place
        Place of the events before the first exchange.
    thread : Calls
        Thread of the cryptography and the files.
    hooks : Hooks
    clock : Clock

    Attributes
    ----------
    answers : Answers
        Accepted answers.
    declined : dict of int to str
        Phase in which each member declined the present round.
    """

    def __init__(self, place: Place, thread: Calls, hooks: Hooks, clock: Clock) -> None:
        self.answers = Answers()
        self.declined: dict[int, str] = {}
        self.thread, self._hooks, self._clock = thread, hooks, clock
        self._place = place
        self._opened = 0.0

    async def run(
        self, exchange: Exchange, seconds: float, close: Callable[[], object]
    ) -> None:
        """Open an exchange, collect the answers and call `close` in the session's thread.

        Raises
        ------
        Exception
            The error of `close`, or the error with which the server ended.
        """
        self._place, self._opened = exchange.place, self._clock.now()
        place, phase = exchange.place, exchange.phase
        self._hooks(PhaseOpened(place, phase, len(exchange.awaited), deadline=seconds))
        await self._collect(exchange, seconds)
        try:
            if exchange.failure is not None:
                raise exchange.failure
            await self.thread.run(close)
        finally:
            # also after an error, so that hooks see the end of every phase
            self._hooks(
                PhaseClosed(
                    place,
                    phase,
                    seconds=self._clock.now() - self._opened,
                    answered=len(exchange.answered),
                    missing=tuple(sorted(exchange.clients - exchange.answered)),
                    bytes_down=exchange.bytes_down,
                    bytes_up=exchange.bytes_up,
                )
            )

    @abstractmethod
    async def _collect(self, exchange: Exchange, seconds: float) -> None:
        """Carry the tasks, and the answers that come before all are there or the deadline."""

    def _take_task(self, exchange: Exchange, client: int, size: int) -> None:
        """Note that a client has a task, of so many bytes."""
        exchange.bytes_down += size
        self._hooks(TaskTaken(exchange.place, exchange.phase, client, size))

    def _accept_answer(self, exchange: Exchange, client: int, size: int) -> None:
        """Count an answer that passed all checks."""
        exchange.answered.add(client)
        exchange.bytes_up += size
        exchange.settle()
        seconds = self._clock.now() - self._opened
        self._hooks(MessageAccepted(exchange.place, exchange.phase, client, size, seconds))

    def _reject(
        self, exchange: Exchange | None, client: int, size: int, error: RemoteProtocolError
    ) -> None:
        """Leave out the client of an answer that failed a check."""
        offence = error.check not in EXCUSED
        if offence and exchange is not None and client in exchange.clients:
            exchange.rejected.add(client)
            exchange.given_up.add(client)
            exchange.settle()
        self._hooks(MessageRejected(self._place, error.phase, client, size, error.check))

    def _decline(self, exchange: Exchange, client: int) -> None:
        """Stop awaiting a client that takes no part."""
        exchange.given_up.add(client)
        self.declined[client] = exchange.phase
        exchange.settle()
        self._hooks(MemberDeclined(exchange.place, exchange.phase, client))
