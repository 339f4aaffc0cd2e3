"""Worker: leases a slice of a closing batch, and adds the reports that the helpers accept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from secagg._check import check_seconds
from secagg.collect import batches, reports, sessions, slices
from secagg.collect.batches import Batch
from secagg.collect.database import AlteredError, Database
from secagg.collect.helpers import Asking
from secagg.collect.sessions import StoredSession
from secagg.collect.slices import Lease
from secagg.errors import DatabaseError, RemoteProtocolError, SecAggError
from secagg.oneshot import Accumulator, OneShotParams, messages
from secagg.oneshot.messages import CHUNK
from secagg.protocol import Registry
from secagg.session.exchange import Calls
from secagg.session.helpers import HelperLink, Helpers
from secagg.session.opening import Opening

logger = logging.getLogger("secagg.collect")

LEASE = 600.0
"""Seconds of a lease, which a worker lengthens after every chunk of reports."""
_CHUNK_BYTES = 1 << 25
WORKER = 0
"""Number that stands for the worker among the helpers that reject clients."""


def chunk_of(params: OneShotParams) -> int:
    """Return the number of reports that are in memory at once."""
    return max(1, min(CHUNK, _CHUNK_BYTES // params.layout.report))


@dataclass(frozen=True)
class Worker:
    """Worker on the batches of a database.

    Attributes
    ----------
    database : Database
    asking : Asking
    registry : Registry or None
        Public keys of all clients of active sums.
    lease : float
        Seconds of a lease, > 0, more than the helpers' deadline; the same for all workers.
    thread : Calls
        Thread of the database and of the accumulator.
    """

    database: Database
    asking: Asking
    registry: Registry | None = None
    lease: float = LEASE
    thread: Calls = field(default_factory=Calls)

    def __post_init__(self) -> None:
        check_seconds(lease=self.lease)

    async def step(self, batch: int | None = None) -> bool:
        """Work on a slice; return False, after a short look, if no slice is to be had.

        Parameters
        ----------
        batch : int, optional
            Number of the batch. None: any closing batch.

        Raises
        ------
        RemoteProtocolError
            "helpers": too few helpers answered. The slice is left for a later try.
        DatabaseError
            The database failed.
        """
        task = await self.thread.run(lambda: self._take(batch))
        if task is None:
            return False
        try:
            async with self.asking.reach(task.session.params) as links:
                stored = await self._add(task, links)
        except (SecAggError, asyncio.CancelledError):
            # a process that ends in order leaves no lease behind, if the database is back
            with suppress(DatabaseError):
                await self.thread.run(lambda: self._release(task.lease))
            raise
        lease = task.lease
        if stored:
            known = {"batch": lease.batch, "slice": lease.slice}
            logger.info("slice %d of batch %d is added", lease.slice, lease.batch, extra=known)
        else:
            logger.warning("the lease of %s ran out, and another worker has it", lease)
        return True

    def _take(self, number: int | None = None) -> _Task | None:
        try:
            with self.database.transaction() as tx:
                lease = slices.take(tx, self.lease, number)
                if lease is None:
                    return None
                batch = batches.get(tx, lease.batch)
                return _Task(lease, batch, sessions.get(tx, batch.session))
        except AlteredError:
            # count the lease, or else this slice would come before the slices of other batches
            with self.database.transaction() as tx:
                if lease := slices.take(tx, self.lease, number):
                    slices.release(tx, lease)
            raise

    def _renew(self, lease: Lease) -> bool:
        with self.database.transaction() as tx:
            return slices.renew(tx, lease, self.lease)

    def _release(self, lease: Lease) -> None:
        with self.database.transaction() as tx:
            slices.release(tx, lease)

    async def _add(self, task: _Task, links: Iterable[HelperLink]) -> bool:
        """Store the part of a slice; return False if the lease was lost."""
        lease, batch, session = task
        params, run = session.params, self.thread.run
        registry = self.registry if params.active else None
        part = Accumulator(params, registry=registry, batch=batch.place)
        rejected: dict[int, set[int]] = {}
        helpers = self.asking.helpers(links, session, batch, lease.token)
        places = lease.first, lease.last
        source = reports.chunks(self.database, batch.number, places, chunk_of(params))
        while (chunk := await run(lambda: next(source, None))) is not None:
            added, invalid = await run(partial(_add_all, part, chunk))
            found = await self._check(part, helpers, added)
            for j, ids in (found | {WORKER: invalid}).items():
                rejected.setdefault(j, set()).update(ids)
            if not await run(lambda: self._renew(lease)):
                return False
        # a helper that failed in a later chunk has not checked the slice
        named = {-j if j in helpers.failed else j: ids for j, ids in rejected.items()}
        return await run(lambda: self._finish(lease, part, named))

    async def _check(
        self, part: Accumulator, helpers: Helpers, added: set[int]
    ) -> dict[int, set[int]]:
        """Return the clients that each helper rejects, and drop them; settle the others."""
        run, params = self.thread.run, part.params
        opening = Opening(part, part.boxes, self.thread)
        answers = await opening.check(helpers, self.asking.seconds)
        helpers.require(params.quorum or params.threshold, "check")
        rejected = {j: ids & added for j, ids in answers.items()}

        def settle() -> None:
            part.drop(set[int]().union(*rejected.values()))
            part.settle()

        await run(settle)
        return rejected

    def _finish(self, lease: Lease, part: Accumulator, rejected: dict[int, set[int]]) -> bool:
        data = part.to_bytes()
        with self.database.transaction() as tx:
            return slices.finish(tx, lease, data, rejected)


class _Task(NamedTuple):
    lease: Lease
    batch: Batch
    session: StoredSession


def _add_all(
    part: Accumulator, chunk: Sequence[tuple[int, bytes]]
) -> tuple[set[int], set[int]]:
    """Add the reports of a chunk; return the clients of valid rows, and of invalid rows."""
    added, invalid = set[int](), set[int]()
    for client, report in chunk:
        try:
            if messages.reporter(report) != client:
                raise messages.violation("report", "id", "it is in another client's row")
            part.add(report)
            added.add(client)
        except RemoteProtocolError as error:
            # `serve` stores valid reports only: somebody else has written this row
            logger.error("the row of client %d has no valid report: %s", client, error)
            invalid.add(client)
    return added, invalid
