"""Exchange of a session: one task for each of some clients, and their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from secagg.session.events import Place
from secagg.session.wire import Task


@dataclass(eq=False, kw_only=True)
class Exchange:
    """One task for each of some clients, and their answers.

    Attributes
    ----------
    phase : str
    id : bytes
        Id of the task, the same for all clients.
    clients : frozenset of int
        Clients that have a task.
    task : callable
        Function that makes the task of a client when it is fetched.
    receive : callable
        Function that validates and takes the content of an answer, in the session's thread.
    store : callable
        Function that writes the taken answers to the disk, in the session's thread.
    answered : set of int
        Clients whose answer was accepted.
    given_up : set of int
        Clients that declined, or whose answer failed a check; they are not awaited.
    rejected : set of int
        Clients whose answer failed a check.
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
        """Clients whose answer may still come."""
        return self.clients - self.answered - self.given_up

    def settle(self) -> None:
        """Wake the driver if there is nothing left to wait for."""
        if self.failure is not None or not self.awaited:
            self.done.set()
