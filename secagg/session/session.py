"""Session of a server: many rounds with the same members, over any transport."""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from secrets import SystemRandom
from typing import Self

from secagg._check import as_bytes, check_integer, check_kind
from secagg.errors import (
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    TooFewSurvivors,
)
from secagg.protocol import CohortLedger, Registry, RoundParams
from secagg.protocol.client_ids import ClientKey, Names, identify
from secagg.server import RoundResult, Server
from secagg.session.deadlines import Clock, Deadlines
from secagg.session.desk import Desk
from secagg.session.events import Hook, Hooks, Place, RoundBegun, RoundFailed, RoundFinished
from secagg.session.rounds import Attempt
from secagg.session.thread import Thread, closed
from secagg.session.wire import AttemptName, write_name

__all__ = ["Session"]


class Session:
    """Session of a server. Its members call `next_task` and `accept`, over some transport.

    Use it as an asynchronous context manager, or `close` it. One round runs at a time.

    Parameters
    ----------
    members : collection of int or str
        Ids or names of the clients that may take part, such as a `Registry`.
    name : str
        Name of the session, in events and in the rounds' ``params.session``.
    deadlines : Deadlines or float
        Seconds that a phase may take; one number for all phases.
    attempts : int
        Largest number of attempts at a round, 1 to 1000. A next one leaves out the clients
        whose messages failed a check.
    registry : Registry, optional
        Public identity keys of the members, for rounds with ``security="active"``.
    ledger : CohortLedger, optional
        Cohorts of earlier sums; see `Server`.
    on_event : iterable of callables
        Functions that are called with every event; see `secagg.session.events`.
    clock : Clock, optional
        Clock of all deadlines; replace it only in a test.

    Raises
    ------
    ParameterError
        An argument is invalid.
    """

    def __init__(
        self,
        members: Collection[ClientKey],
        *,
        name: str = "session",
        deadlines: Deadlines | float | None = None,
        attempts: int = 3,
        registry: Registry | None = None,
        ledger: CohortLedger | None = None,
        on_event: Iterable[Hook] = (),
        clock: Clock | None = None,
    ) -> None:
        check_kind("name", name, str, "a str")
        check_integer("attempts", attempts, 1, 1000)
        if ledger is not None:
            check_kind("ledger", ledger, CohortLedger, "a secagg.CohortLedger")
        self.name = name
        self._deadlines = Deadlines() if deadlines is None else Deadlines.of(deadlines)
        self._attempts = int(attempts)
        self._registry, self._ledger = registry, ledger
        self._hooks, self._clock = Hooks(on_event), clock or Clock()
        self._thread = Thread()
        ids = Names().keys(members)
        self._desk = Desk(name, ids, self._thread, self._hooks, self._clock)
        self._run = os.urandom(8)
        self._rounds = 0
        self._busy = False

    def __repr__(self) -> str:
        members = f"{len(self._desk.members):,} members"
        return f"<Session {self.name!r}: {members}, {self._rounds:,} rounds>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def round(
        self,
        params: RoundParams,
        message: bytes = b"",
        *,
        cohort: int | Collection[ClientKey] | None = None,
    ) -> RoundResult:
        """Run a round with a cohort of the members, and return the sum of their vectors.

        Parameters
        ----------
        params : RoundParams
            Parameters, of which each attempt gets a ``session`` of its own. It begins with the
            given one, or with the session's name.
        message : bytes
            Message to the members of the cohort, such as a model. `take_part` passes it to
            `train`. It is not secret.
        cohort : int or collection of clients, optional
            Number of members to choose at random from those present, or the members to wait
            for. None: all that are present, at most ``params.n_clients``.

        Raises
        ------
        ParameterError
            An argument is invalid.
        TooFewSurvivors, RemoteProtocolError
            All attempts have failed; the error of the last one.
        LocalProtocolError
            Another round is under way, or the session is closed.
        """
        check_kind("params", params, RoundParams, "a secagg.RoundParams")
        message = as_bytes(message)
        size = self._size(cohort, params.min_survivors, params.n_clients)
        async with self._turn() as number:
            left_out: set[int] = set()
            for attempt in range(self._attempts):
                final = attempt == self._attempts - 1
                place = Place(self.name, number, attempt)
                pool = self._pool(cohort) - left_out
                began = self._clock.now()
                try:
                    ids = await self._choose(pool, size, params.min_survivors)
                    result = await self._attempt(place, params, message, ids, left_out)
                except (TooFewSurvivors, RemoteProtocolError) as error:
                    self._hooks(
                        RoundFailed(
                            place=place,
                            error=type(error).__name__,
                            phase=error.phase,
                            check=getattr(error, "check", ""),
                            left_out=tuple(sorted(left_out)),
                            final=final,
                        )
                    )
                    if final:
                        raise
                    continue
                self._hooks(
                    RoundFinished(
                        place=place,
                        seconds=self._clock.now() - began,
                        survivors=len(result.survivors),
                        disputes=len(result.disputes),
                    )
                )
                return result
        raise AssertionError("a last attempt returns or raises")

    async def next_task(
        self, client: ClientKey, after: bytes = b"", wait: float = math.inf
    ) -> bytes | None:
        """Return the task of a member, or None after `wait` seconds or if the session ended.

        A transport calls it for a member that it has authenticated. If it returns None, the
        session has ended, or is not `closed` and the call should be repeated.

        Parameters
        ----------
        client : int or str
        after : bytes
            Id of the last task that the member has, or no bytes. That task is not returned.
        wait : float
            Largest number of seconds to wait for a task, ≥ 0.

        Raises
        ------
        RemoteProtocolError
            "unknown client": it is no member of the session.
        """
        return await self._desk.next_task(identify(client)[0], after, wait)

    async def accept(self, client: ClientKey, answer: bytes) -> None:
        """Validate and accept a member's answer to a task; the same bytes again are ignored.

        Acknowledge it when this call returns. It is then stored, if the session has a folder.

        Raises
        ------
        RemoteProtocolError
            "late": its task is closed, or was never given. "unknown client": it is no member of
            the session or the cohort. "size", "version" or "encoding": it is malformed. Or a
            check of `Server.receive`. Nothing has changed.
        JournalError, LocalProtocolError
            The server has ended.
        """
        await self._desk.accept(identify(client)[0], as_bytes(answer, "an answer"))

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._desk.closed

    @property
    def answer_limit(self) -> int:
        """Largest answer that a member can give, in bytes; a transport reads no more."""
        return self._desk.answer_limit

    async def close(self) -> None:
        """End the session: `take_part` of all members returns."""
        self._desk.close()
        self._thread.close()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[int]:
        """Yield the number of a new round."""
        if self.closed:
            raise closed()
        if self._busy:
            raise LocalProtocolError("another round is under way; await the rounds one by one")
        self._busy = True
        try:
            yield self._rounds
        finally:
            self._rounds += 1
            self._busy = False

    def _size(self, cohort: int | Collection[ClientKey] | None, least: int, most: int) -> int:
        """Return the largest size of the cohort, or raise `ParameterError`."""
        if cohort is None:
            return most
        if isinstance(cohort, int):
            check_integer("cohort", cohort, least, most)
            return cohort
        strangers = Names().keys(cohort).keys() - self._desk.members
        if strangers:
            raise ParameterError(
                f"client {min(strangers)} of the cohort is no member of the session; pass it "
                "to Session(members=…)"
            )
        check_integer("the size of the cohort", len(cohort), least, most)
        return len(cohort)

    def _pool(self, cohort: int | Collection[ClientKey] | None) -> frozenset[int]:
        if cohort is None or isinstance(cohort, int):
            return self._desk.members
        return frozenset(Names().keys(cohort))

    async def _choose(self, pool: frozenset[int], size: int, least: int) -> list[int]:
        """Return a cohort of present members of the pool, at most `size`, ascending."""
        here = await self._desk.gather(pool, size, least, self._deadlines.gather)
        chosen = SystemRandom().sample(sorted(here), size) if len(here) > size else here
        return sorted(chosen)

    async def _attempt(
        self,
        place: Place,
        params: RoundParams,
        message: bytes,
        cohort: list[int],
        left_out: set[int],
    ) -> RoundResult:
        name = AttemptName(self._run, place.number, place.attempt, os.urandom(8))
        session = write_name(params.session or self.name.encode(), name)
        server = Server(
            replace(params, session=session),
            registry=self._registry if params.active else None,
            ledger=self._ledger,
        )
        self._hooks(
            RoundBegun(
                place=place,
                kind="round",
                cohort=len(cohort),
                needed=params.min_survivors,
                length=params.length,
            )
        )
        attempt = Attempt(place=place, server=server, message=message, cohort=cohort)
        try:
            return await attempt.run(self._desk, self._deadlines)
        finally:
            left_out |= attempt.left_out
