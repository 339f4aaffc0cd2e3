"""Closer: leads a batch from closing to the sum; every step can be repeated after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np

from secagg.collect import batches, reports, sessions, slices
from secagg.collect.batches import Batch
from secagg.collect.database import AlteredError, Database, unsigned
from secagg.collect.helpers import Asking
from secagg.collect.rejections import Rejections
from secagg.collect.sessions import StoredSession
from secagg.collect.states import State
from secagg.collect.work import chunk_of
from secagg.errors import (
    DatabaseError,
    JournalError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
)
from secagg.oneshot import Accumulator, OneShotParams, OneShotResult, messages
from secagg.protocol import Registry
from secagg.session import outcomes
from secagg.session.exchange import Calls
from secagg.session.opening import Opening

_AT_ONCE = 3
"""Batches that a closer leads at the same time."""
_CHUNK = 10_000
"""Clients that are read at once."""
_BOX_SECONDS, _BYTES_A_SECOND = 1e-3, 1 << 24
"""Seconds of a helper for a box, and bytes of reports that a database reads; both are slow."""
_RESERVATIONS = msgspec.msgpack.Decoder(tuple[bytes, ...])


@dataclass(frozen=True)
class Closer:
    """Closer of the batches of a database.

    Attributes
    ----------
    database : Database
    asking : Asking
    registry : Registry or None
        Public keys of all clients of active sums.
    thread : Calls
        Thread of the database and of the accumulator.
    slots : asyncio.Semaphore
        Bound on the batches that are led to their sums at the same time. A helper keeps the
        checked boxes of four sums, and more sums at once would make the helper forget some.
    """

    database: Database
    asking: Asking
    registry: Registry | None = None
    thread: Calls = field(default_factory=Calls)
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def step(self, number: int) -> State:
        """Lead a closing batch one state further, and return the batch's state.

        The state stays *closing* until workers have finished all slices. An *open* batch stays
        open; see `secagg.collect.batches.close`.

        Raises
        ------
        TooFewSurvivors
            Fewer than ``params.min_clients`` reports passed the checks.
        RemoteProtocolError
            "helpers": too few helpers answered, or too few checked all slices, whose results
            are then forgotten. "refused": too many refuse the list for good. Or see
            `Accumulator.result`.
        ParameterError
            There is no batch with this number.
        LocalProtocolError
            A drop of the batch is not finished; drop the batch again.
        DatabaseError
            The database failed, or was altered.
        """
        batch, session = await self.thread.run(lambda: self._read(number))
        match batch.state:
            case State.CLOSING:
                await self.thread.run(lambda: self._fix(batch, session))
            case State.FIXED:
                await self._reserve(batch, session)
            case State.RESERVED:
                await self._open(batch, session)
            case State.OPENED:
                await self.thread.run(lambda: self._drop(batch))
        return await self.state(number)

    async def state(self, number: int) -> State:
        """Return the state of a batch."""
        batch, _ = await self.thread.run(lambda: self._read(number))
        return batch.state

    async def ask_again(self, number: int) -> bool:
        """Let the helpers check a closing batch again; return False in any other state.

        After `TooFewSurvivors`, when a helper may accept clients that the helper rejected.
        """
        return await self.thread.run(lambda: self._forget(number))

    def _read(self, number: int) -> tuple[Batch, StoredSession]:
        with self.database.transaction() as tx:
            batch = batches.get(tx, number)
            return batch, sessions.get(tx, batch.session)

    def _forget(self, number: int) -> bool:
        with self.database.transaction() as tx:
            return batches.ask_again(tx, number)

    def _fix(self, batch: Batch, session: StoredSession) -> None:
        """Store the list of clients, once all slices are finished."""
        with self.database.transaction() as tx:
            if slices.unfinished(tx, batch.number):
                return
            # in this order: another process may end the batch meanwhile
            gone = not slices.count(tx, batch.number)
            if gone and batches.get(tx, batch.number).state == State.CLOSING:
                raise LocalProtocolError(
                    f"batch {batch.number} has no slices, since a drop was not finished; "
                    "finish the drop with `secagg collect drop`"
                )
        try:
            whole = self._merged(batch, session)
        except slices.Unfinished:
            return  # another closer asks again
        whole.request()
        listed = whole.to_bytes()
        del whole  # a million clients have 40 MB here, and as much in each copy of the driver
        with self.database.transaction() as tx:
            # in any other state the row has another closer's list, and this list is forgotten
            batches.advance(tx, batch.number, State.FIXED, list=listed)

    def _merged(self, batch: Batch, session: StoredSession) -> Accumulator:
        """Return the sum of all slices, without the clients that helpers reject.

        If too few helpers checked all slices, the results of the slices are forgotten, and
        workers ask the helpers again.
        """
        params, rejections = session.params, Rejections(session.params)
        whole = Accumulator(params, registry=self._registry(params), batch=batch.place)
        for part in slices.parts(self.database, batch.number):
            try:
                whole.merge(self._accumulator(part.part, params))
            except (ParameterError, LocalProtocolError) as error:
                raise AlteredError(
                    f"the slices of batch {batch.number} were altered ({error}); restore the "
                    "database"
                ) from None
            rejections.add(part.rejected)
        together = rejections.clients
        try:
            dropped = rejections.dropped(len(whole) + len(together))
        except RemoteProtocolError:
            if not self._forget(batch.number):
                raise slices.Unfinished from None
            raise
        for report in reports.of(self.database, batch.number, together - dropped):
            whole.add(report)
            whole.settle()
        return whole

    async def _reserve(self, batch: Batch, session: StoredSession) -> None:
        reservations: tuple[bytes, ...] = ()
        if session.params.quorum:
            opening, _ = await self.thread.run(lambda: self._opening(batch, session))
            async with self.asking.reach(session.params) as links:
                helpers = self.asking.helpers(links, session, batch)
                reservations = await opening.reserve(helpers, self._deadline(batch, session))
        stored = msgspec.msgpack.encode(reservations)
        await self.thread.run(lambda: self._advance(batch, State.RESERVED, reservations=stored))

    async def _open(self, batch: Batch, session: StoredSession) -> None:
        opening, reservations = await self.thread.run(lambda: self._opening(batch, session))
        async with self.asking.reach(session.params) as links:
            helpers = self.asking.helpers(links, session, batch)
            result = await opening.open(reservations, helpers, self._deadline(batch, session))
        stored = _name(batch, session) + outcomes.write_result(result, session.params)
        await self.thread.run(lambda: self._advance(batch, State.OPENED, outcome=stored))

    def _drop(self, batch: Batch) -> None:
        """Drop the reports and the parts of a batch whose sum is stored."""
        with self.database.transaction() as tx:
            if batches.advance(tx, batch.number, State.DONE, list=None, reservations=None):
                batches.drop_reports(tx, batch.number)

    def _advance(self, batch: Batch, to: State, **columns: bytes) -> None:
        with self.database.transaction() as tx:
            batches.advance(tx, batch.number, to, **columns)

    def _opening(
        self, batch: Batch, session: StoredSession
    ) -> tuple[Opening, tuple[bytes, ...]]:
        """Return the calls of helpers for the stored list, and the stored reservations."""
        whole, reservations = self._fixed(batch, session)
        ids = np.array(whole.ids, np.uint64)

        def boxes(helper: int) -> Iterator[bytes]:
            most = chunk_of(session.params)
            rows = reports.chunks(self.database, batch.number, reports.EVERYWHERE, most)
            for chunk in map(dict, rows):
                clients = np.array(list(chunk), np.uint64)
                # not isin, which sorts the ids of the whole list for each chunk
                known = ids.take(ids.searchsorted(clients), mode="clip") == clients
                found = [chunk[u] for u in clients[known].tolist()]
                yield from messages.boxes(found, helper, session.params)

        return Opening(whole, boxes, self.thread), reservations

    def _fixed(
        self, batch: Batch, session: StoredSession
    ) -> tuple[Accumulator, tuple[bytes, ...]]:
        """Return the stored list, and the stored reservations."""
        with self.database.transaction() as tx:
            row = batches.stored(tx, batch.number)
        if row.list is None:
            raise DatabaseError(
                f"batch {batch.number} has no list any more, since another process finished "
                "the batch; read the state again"
            )
        try:
            reservations = _RESERVATIONS.decode(row.reservations) if row.reservations else ()
        except msgspec.MsgspecError:
            raise AlteredError(
                f"the reservations of batch {batch.number} were altered; restore the database"
            ) from None
        whole = self._accumulator(row.list, session.params)
        if whole.batch != batch.place:
            raise AlteredError(
                f"the list of batch {batch.number} is of another batch; restore the database"
            )
        return whole, reservations

    def _deadline(self, batch: Batch, session: StoredSession) -> float:
        """Return the seconds for a reply; a restarted helper first checks all boxes again."""
        again = _BOX_SECONDS + session.params.layout.report / _BYTES_A_SECOND
        return self.asking.seconds + batch.reports * again

    def _accumulator(self, data: bytes, params: OneShotParams) -> Accumulator:
        try:
            return Accumulator.from_bytes(data, params, registry=self._registry(params))
        except RemoteProtocolError as error:
            raise AlteredError(
                f"an accumulator in the database was altered ({error}); restore the database"
            ) from None

    def _registry(self, params: OneShotParams) -> Registry | None:
        return self.registry if params.active else None


def missing(database: Database, number: int, survivors: Iterable[int]) -> list[int]:
    """Return the clients with an acknowledged report in a batch that are not in the sum."""
    there, found, first = set(survivors), list[int](), -(1 << 63)
    statement = (
        "SELECT id FROM secagg_clients WHERE session = ? AND batch = ? AND id >= ? "
        "ORDER BY id LIMIT ?"
    )
    with database.transaction() as tx:
        session = batches.get(tx, number).session
    while first < 1 << 63:
        with database.transaction() as tx:
            rows = tx.query(_Id, statement, session, number, first, _CHUNK)
        if not rows:
            break
        found += [u for row in rows if (u := unsigned(row.id)) not in there]
        first = rows[-1].id + 1
    return sorted(found)


def drop(database: Database, number: int) -> None:
    """End a batch without a sum, and drop the reports; the outcome is an error "dropped".

    Raises
    ------
    ParameterError
        The batch has a sum, or was dropped before.
    DatabaseError
        The database failed. The same call can be repeated.
    """
    # insertions wait for the row with a lock of the table, so the table goes later
    with database.transaction() as tx:
        batches.advance(tx, number, State.CLOSING)
    why = "the operator dropped the batch"
    error = RemoteProtocolError(why, sender=None, phase="report", check="dropped")
    with database.transaction() as tx:
        state = batches.get(tx, number).state
        if not batches.drop(tx, number, outcomes.write_error(error)):
            raise ParameterError(
                f"batch {number} is {state}, and only a batch without a sum can be dropped; "
                f"write the sum with `secagg collect close --batch {number}`"
            )


class _Id(NamedTuple):
    id: int


def result(database: Database, number: int) -> OneShotResult | None:
    """Return the sum of a batch, or None while the sum is not there.

    Raises
    ------
    DatabaseError
        The database failed, or the stored sum was altered or is of another batch.
    """
    with database.transaction() as tx:
        batch = batches.get(tx, number)  # first: another process may store the sum in between
        outcome, session = batches.outcome(tx, number), sessions.get(tx, batch.session)
    if batch.dropped or batch.state not in (State.OPENED, State.DONE):
        return None
    name, stored = _name(batch, session), outcome or b""
    with suppress(JournalError):
        found = outcomes.read(stored.removeprefix(name), session.params)
        if stored.startswith(name) and isinstance(found, OneShotResult):
            return found
    raise AlteredError(
        f"the sum of batch {number} was altered or is of another batch; restore the database"
    )


def _name(batch: Batch, session: StoredSession) -> bytes:
    """Return the bytes before a sum, which no other batch has."""
    return session.params.digest + batch.place.to_bytes(8, "little")
