"""Calls of an application that runs a collection by functions, without the commands."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from secagg.collect import batches
from secagg.collect.batches import Batch
from secagg.collect.close import Closer, result
from secagg.collect.database import Database
from secagg.collect.sessions import StoredSession
from secagg.collect.states import State
from secagg.collect.work import Worker
from secagg.errors import RemoteProtocolError, TooFewSurvivors
from secagg.oneshot import OneShotParams, OneShotResult

_PAUSE = 1.0
"""Seconds between two looks at slices that others lease."""


def begin_session(
    database: Database,
    params: OneShotParams,
    endorsements: Iterable[bytes] = (),
    message: bytes = b"",
) -> StoredSession:
    """Return the session of `params`; a new session is stored, with the first batch open.

    Parameters
    ----------
    database : Database
    params : OneShotParams
    endorsements : iterable of bytes
        ``Helper.endorse()`` of all helpers, in order; or none.
    message : bytes
        Message to all clients, such as a model, at most 8 MiB. The parameters must name the
        message: ``session=secagg.session.bind(name, message)``.

    Raises
    ------
    ParameterError
        The endorsements are not 64 bytes each, or the parameters do not name the message. The
        message is longer; then pass a digest of the content. Or two sets of helpers without a
        common helper could open two lists of a batch whose database was restored.
    DatabaseError
        The database failed.
    """
    with database.transaction() as tx:
        return batches.begin(tx, params, endorsements, message)


def open_batches(database: Database) -> Sequence[Batch]:
    """Return the open batches of all sessions, the oldest first."""
    with database.transaction() as tx:
        return batches.in_states(tx, State.OPEN)


def close_batch(database: Database, number: int, *, reopen: bool = False) -> bool:
    """Close an open batch to further reports; return False if the batch is not open.

    Parameters
    ----------
    database : Database
    number : int
    reopen : bool
        Open the next batch of the session at once, in the same transaction.

    Raises
    ------
    TooFewSurvivors
        The batch has fewer reports than a sum needs, and stays open.
    DatabaseError
        The database failed.
    """
    with database.transaction() as tx:
        return batches.close(tx, number, reopen=reopen)


async def lead(
    closer: Closer, worker: Worker, number: int, *, pause: float = _PAUSE
) -> OneShotResult:
    """Lead a closed batch to the sum, and return the sum.

    The call can be repeated after any failure, and calls for several batches can run at the
    same time; `Closer.slots` bounds their number. The reports stay until
    ``closer.step(number)`` drops the reports, after the application has stored the sum.

    Parameters
    ----------
    closer : Closer
    worker : Worker
        Worker of this process, of the same database.
    number : int
    pause : float
        Seconds between two looks at slices that other workers lease.

    Raises
    ------
    TooFewSurvivors
        Helpers rejected too many reports, also when they were asked again.
    RemoteProtocolError
        "helpers": too few helpers answered, or too few checked all reports, and the next call
        has all checked again. "refused": too many refuse the list for good.
        "dropped": the batch was dropped. Or see
        `OneShotResult`.
    ParameterError
        There is no batch with this number.
    DatabaseError
        The database failed.
    LocalProtocolError
        A drop of the batch is not finished; drop the batch again.
    """
    try:
        return await _lead(closer, worker, number, pause)
    except TooFewSurvivors:
        # the answers may be old, and helpers may know more clients by now
        if not await closer.ask_again(number):
            raise
    return await _lead(closer, worker, number, pause)


async def _lead(closer: Closer, worker: Worker, number: int, pause: float) -> OneShotResult:
    while not await _go_on(closer, worker, number):
        # slices that other workers lease may come back
        await asyncio.sleep(pause)
    found = await closer.thread.run(lambda: result(closer.database, number))
    if found is None:
        why = "the operator dropped the batch, which has no sum"
        raise RemoteProtocolError(why, sender=None, phase="report", check="dropped")
    return found


async def _go_on(closer: Closer, worker: Worker, number: int) -> bool:
    """Lead a batch as far as possible; return False if other workers have the slices left."""
    async with closer.slots:
        # done: another process came first
        while (state := await closer.state(number)) not in (State.OPENED, State.DONE):
            worked = state == State.CLOSING and await worker.step(number)
            if await closer.step(number) == State.CLOSING and not worked:
                return False
    return True
