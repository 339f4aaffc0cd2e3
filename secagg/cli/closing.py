"""Batches on their way to sums: once for ``secagg collect close``, or until a signal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from secagg.cli.batch_book import BatchBook
from secagg.cli.collecting import PAUSE
from secagg.cli.console import Document, called
from secagg.cli.notices import tell
from secagg.cli.records import Missing
from secagg.cli.schedule import Every, Period
from secagg.cli.streams import is_of_disk, unwritten
from secagg.collect import Closer, Database, State, Worker, batches, lead, sessions, slices
from secagg.collect.batches import Batch
from secagg.collect.close import missing
from secagg.collect.database import AlteredError
from secagg.collect.sessions import StoredSession
from secagg.errors import (
    DatabaseError,
    LinkError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    SecAggError,
    TooFewSurvivors,
)

if TYPE_CHECKING:
    from secagg.collect.database import Transaction

T = TypeVar("T")
_SOON, _LATER = 10.0, 600.0
"""Seconds to the next try: without database or helpers at first, and if a person has to act."""


@dataclass(frozen=True)
class When:
    """Times at which open batches close.

    Attributes
    ----------
    reports : int or None
        Number of reports that closes a batch.
    every : str or None
        Kind of the periods of the calendar, in UTC; a batch closes at the end of a period.
    """

    reports: int | None = None
    every: Every | None = None

    def __bool__(self) -> bool:
        return self.reports is not None or self.every is not None

    def filled(self, batch: Batch, session: StoredSession) -> bool:
        """Return True for a batch that has its reports, or has no room for more."""
        params = session.params
        wanted = params.n_clients if self.reports is None else self.reports
        return batch.reports >= min(max(wanted, params.min_clients), params.n_clients)

    def ended(self, batch: Batch, now: float) -> bool:
        """Return True if a period has ended since the batch was opened or last looked at."""
        if self.every is None:
            return False
        period = Period.at(self.every, datetime.fromtimestamp(batch.changed, UTC))
        return period.end.timestamp() <= now


@dataclass
class Closing:
    """Closer of a collection's batches, which writes the sums.

    Attributes
    ----------
    database : Database
    closer : Closer
    worker : Worker
        Worker of this process, with the closer's thread.
    book : BatchBook
    show : callable
        Function that prints the document of a sum.
    """

    database: Database
    closer: Closer
    worker: Worker
    book: BatchBook
    show: Callable[[Document], None]
    _sessions: dict[int, StoredSession] = field(default_factory=dict)
    _told: set[int | str] = field(default_factory=set)
    _failing: set[str] = field(default_factory=set)
    _idle: bool = False

    async def once(self, number: int | None = None, *, reopen: bool) -> None:
        """Lead closed batches to their sums; if none can have a sum, close an open batch.

        So a command that is repeated, after a crash or while helpers are away, does not close
        the next batch.

        Parameters
        ----------
        number : int, optional
            Number of a batch, which alone is closed and led to the sum.
        reopen : bool
            Open the next batch of a session at once.

        Raises
        ------
        ParameterError
            There is no batch with this number.
        SecAggError
            A batch has no sum. The sums of the other batches are written, and the errors of
            further batches are printed.
        """
        failed, altered, waiting = list[SecAggError](), list[DatabaseError](), list[int]()
        if number is None:
            waiting = await self._run(partial(_under_way, altered=altered))
            failed = await self._lead_all(waiting)
        next_one = len(failed) == len(waiting) and not any(map(_passes, failed))
        failed += altered
        if number is not None or next_one:
            try:
                closed = await self._run(lambda tx: _close(tx, number, failed, reopen=reopen))
            except (DatabaseError, TooFewSurvivors) as error:
                failed.append(error)
            else:
                failed += await self._lead_all(closed)
        for other in failed[1:]:
            tell(str(other))
        if failed:
            raise failed[0]

    async def stay(self, when: When, keep: float | None) -> None:
        """Close batches whenever they are due, and lead all closed batches to their sums.

        The coroutine ends when it is cancelled, after the transactions under way.

        Parameters
        ----------
        when : When
        keep : float or None
            Seconds after which sessions that are done are deleted.

        Raises
        ------
        OSError, ParameterError, JournalError
            A sum cannot be written, although the disk has room.
        """
        tasks = dict[int, asyncio.Task[None]]()
        try:
            while True:
                for number in await self._waiting(when, keep):
                    if number not in tasks:
                        tasks[number] = asyncio.ensure_future(self._lead_on(number))
                await asyncio.sleep(PAUSE)
                for number in [one for one, task in tasks.items() if task.done()]:
                    tasks.pop(number).result()
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def forget(self, seconds: float) -> None:
        """Delete sessions that are done for so many seconds."""
        await self._run(lambda tx: sessions.delete_done(tx, seconds))

    async def _waiting(self, when: When, keep: float | None) -> list[int]:
        """Close batches that are due; return the numbers of all that lack a sum.

        A batch whose rows were altered is left out, and told once.
        """
        altered, errors = list[DatabaseError](), list[SecAggError]()
        try:
            if keep is not None:
                try:
                    await self.forget(keep)
                except DatabaseError as error:  # of a session whose rows were altered
                    errors.append(error)
            open_batches = await self._run(
                lambda tx: batches.in_states(tx, State.OPEN, altered=altered)
            )
            if not open_batches and not self._idle:
                tell("no batch is open, so clients are refused; begin a session")
            self._idle = not open_batches
            for batch in open_batches:
                try:
                    await self._run(partial(self._close_due, batch=batch, when=when))
                # also of one batch, such as rows out of range, or a count that fell
                except (DatabaseError, TooFewSurvivors) as error:
                    errors.append(error)
            found = await self._run(partial(self._kept, altered=altered))
        except DatabaseError as error:
            tell(f"{error}; trying again")
            await asyncio.sleep(_SOON)
            return []
        failing = dict.fromkeys(map(str, [*altered, *errors]))
        for why in failing:
            if why not in self._failing:
                tell(f"{why}; the other batches go on")
        self._failing = set(failing)
        return found

    def _close_due(self, tx: Transaction, batch: Batch, when: When) -> None:
        """Close a batch that is due, and open the next; say once that reports are too few."""
        ended = when.ended(batch, tx.now())
        if not ended and not when.filled(batch, self._session(tx, batch)):
            return
        least = self._session(tx, batch).params.min_clients
        if batch.reports >= least:
            batches.close(tx, batch.number, reopen=True)
            return
        batches.postpone(tx, batch.number)
        if batch.number not in self._told:
            self._told.add(batch.number)
            tell(
                f"batch {batch.number} has {batch.reports} reports at the end of a period, and "
                f"a sum needs {least}; the batch stays open"
            )

    async def _lead_on(self, number: int) -> None:
        """Lead a batch to the sum, or until the batch is dropped; rest after each error."""
        seconds = _SOON
        while True:
            error: SecAggError | OSError | None
            try:
                error = await self._lead(number)
            except OSError as full:
                if not is_of_disk(full):
                    raise
                error = full  # somebody may make room
            if error is None:
                return
            if isinstance(error, RemoteProtocolError) and error.check == "dropped":
                tell(f"batch {number}: {error}")
                return
            seconds = seconds if _passes(error) else _LATER
            why = unwritten(error) if isinstance(error, OSError) else str(error)
            tell(f"batch {number}: {why}; the next try is in {seconds:.0f} seconds")
            await asyncio.sleep(seconds)
            seconds = min(2 * seconds, _LATER)

    async def _lead_all(self, numbers: Iterable[int]) -> list[SecAggError]:
        """Lead batches to their sums at the same time, and return the errors."""
        found = await asyncio.gather(*map(self._lead, numbers))
        return [error for error in found if error is not None]

    async def _lead(self, number: int) -> SecAggError | None:
        """Lead a closed batch to the sum, write the sum, and drop the reports.

        An error is returned, so that no batch keeps the others from their sums. An error that
        concerns the folder is raised.
        """
        try:
            found = await lead(self.closer, self.worker, number, pause=PAUSE)
            batch, session = await self._run(lambda tx: self._read(tx, number))
            absent = list[Missing]()
            if len(found.survivors) < batch.reports:
                absent = await self.closer.thread.run(
                    lambda: self._absent(number, found.survivors)
                )
        except SecAggError as error:
            # a drop that another process has begun ends with an outcome of its own
            if not (_passes(error) or isinstance(error, LocalProtocolError)):
                # an altered row, or a message that is no request, has no record
                with suppress(DatabaseError, ParameterError, RemoteProtocolError):
                    batch, session = await self._run(lambda tx: self._read(tx, number))
                    self.book.keep_failure(batch, session, error)
            return error
        try:
            # before the reports are dropped: an operator whose disk is full can repeat all
            self.show(self.book.keep(batch, session, found, absent))
            with suppress(ParameterError):  # another process ended the batch and forgot it
                await self.closer.step(number)
        except (DatabaseError, RemoteProtocolError) as error:
            return error
        return None

    def _absent(self, number: int, survivors: Iterable[int]) -> list[Missing]:
        """Return the clients with an acknowledged report that are not in the sum."""
        ids = missing(self.database, number, survivors)
        with self.database.transaction() as tx:
            rejected = slices.rejected(tx, number)
        if rejected is None:  # another process has written the sum
            return [Missing(client=called(u), why="not known") for u in ids]
        return [
            Missing(client=called(u), why="rejected", phase="check", check="helpers")
            if u in rejected
            else Missing(client=called(u), why="lost")
            for u in ids
        ]

    def _kept(self, tx: Transaction, altered: list[DatabaseError]) -> list[int]:
        """Return the batches under way, and forget sessions of which no batch is left."""
        found = batches.in_states(tx, *list(State)[:-1], altered=altered)
        current = {batch.session for batch in found}
        # a message may have megabytes, and each model of a training has a session
        self._sessions = {at: one for at, one in self._sessions.items() if at in current}
        return [batch.number for batch in found if batch.state != State.OPEN]

    def _read(self, tx: Transaction, number: int) -> tuple[Batch, StoredSession]:
        batch = batches.get(tx, number)
        # not of the memory: the record names the session
        return batch, sessions.get(tx, batch.session)

    def _session(self, tx: Transaction, batch: Batch) -> StoredSession:
        """Return the session of a batch; sessions never change."""
        if batch.session not in self._sessions:
            self._sessions[batch.session] = sessions.get(tx, batch.session)
        return self._sessions[batch.session]

    async def _run(self, call: Callable[[Transaction], T]) -> T:
        """Return the result of a call with a transaction, in the closer's thread."""

        def run() -> T:
            with self.database.transaction() as tx:
                return call(tx)

        return await self.closer.thread.run(run)


def _under_way(tx: Transaction, altered: list[DatabaseError]) -> list[int]:
    """Return the numbers of closed batches whose reports are not dropped."""
    states = State.CLOSING, State.FIXED, State.RESERVED, State.OPENED
    return [batch.number for batch in batches.in_states(tx, *states, altered=altered)]


def _close(
    tx: Transaction, number: int | None, failed: list[SecAggError], *, reopen: bool
) -> list[int]:
    """Close a batch, or the newest open batch with a valid row; return the number, or none."""
    if number is None:
        altered = list[DatabaseError]()
        chosen = batches.in_states(tx, State.OPEN, altered=altered)[-1:]
        failed += altered
    else:
        chosen = [batches.get(tx, number)]
    for batch in chosen:
        batches.close(tx, batch.number, reopen=reopen)
    return [batch.number for batch in chosen]


def _passes(error: SecAggError | OSError) -> bool:
    """Return True for an error that needs no change of the batch: the next try can succeed."""
    if isinstance(error, AlteredError):
        return False
    away = isinstance(error, DatabaseError | LinkError | OSError)
    return away or (isinstance(error, RemoteProtocolError) and error.check == "helpers")
