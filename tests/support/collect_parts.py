"""Parts of a collection in tests: databases under a hand clock, and parties that report."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from oneshot_parties import Parties, registry_for
from secagg import LinkError, Registry
from secagg.collect import Asking, Closer, Database, State, Worker, batches, reports
from secagg.collect.batches import Batch
from secagg.collect.reports import Report, Verdict
from secagg.collect.schema import migrate
from secagg.collect.sqlite import SQLite
from secagg.oneshot import Helper, OneShotParams
from secagg.session.helpers import HelperLink, LocalHelper


class Databases:
    """One database, opened as by many processes, whose clock the test sets."""

    def __init__(self, where: str) -> None:
        self.where, self.time = where, 1000.0
        self._opened: list[Database] = []

    @classmethod
    def in_schema(cls, url: str, number: int) -> Databases:
        """Return an empty schema in a server of PostgreSQL."""
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA s{number}".encode())
        return cls(f"{url}&options=-csearch_path%3Ds{number}")

    def connect(self) -> Database:
        """Return a connection of a new process, without a look at the tables."""
        made: Database
        if self.where.startswith("postgresql:"):
            from secagg.collect.postgres import PostgreSQL

            made = PostgreSQL(self.where, lambda: self.time)
        else:
            made = SQLite(Path(self.where), lambda: self.time, new=True)
        self._opened.append(made)
        return made

    def open(self) -> Database:
        """Return a connection to tables of this version."""
        database = self.connect()
        migrate(database)
        return database

    def close(self) -> None:
        for one in self._opened:
            one.close()


class Rejecting(LocalHelper):
    """Helper that also rejects some clients."""

    def __init__(self, helper: Helper, rejected: frozenset[int]) -> None:
        super().__init__(helper)
        self.rejected = rejected

    async def check(self, boxes: bytes) -> tuple[int, ...]:
        return (*await super().check(boxes), *self.rejected)


class Absent(LocalHelper):
    """Helper that does not answer some of the checks, by their places in the helper's order."""

    def __init__(self, helper: Helper, checks: Iterable[int]) -> None:
        super().__init__(helper)
        self._absent, self._next = set(checks), count()

    async def check(self, boxes: bytes) -> tuple[int, ...]:
        if next(self._next) in self._absent:
            raise LinkError("it is away", check="patience")
        return await super().check(boxes)


class Collected:
    """Session of some parties in a database, with its first batch open."""

    def __init__(
        self,
        database: Database,
        made: Parties,
        slices: int = 2,
        *,
        endorsed: bool = False,
        message: bytes = b"",
        registry: Registry | None = None,
    ) -> None:
        self.database, self.made, self.slices = database, made, slices
        self.registry = registry or registry_for(made.params)
        self.sent: dict[int, bytes] = {}
        endorsements = [helper.endorse() for helper in made.helpers] if endorsed else []
        with database.transaction() as tx:
            self.session = batches.begin(tx, made.params, endorsements, message)
        self.batch = self.stored()[0].number

    def stored(self) -> list[Batch]:
        """Return the batches of the session, the oldest first."""
        with self.database.transaction() as tx:
            found = batches.in_states(tx, *State)
        return [batch for batch in found if batch.session == self.session.number]

    def report(self, *clients: int, database: Database | None = None) -> list[Verdict]:
        """Send the reports of clients, each the same whenever it is sent."""
        for u in clients:
            if u not in self.sent:
                self.sent[u] = self.made.report(u)
        return self.send([(u, self.sent[u]) for u in clients], database)

    def send(
        self, sent: Iterable[tuple[int, bytes]], database: Database | None = None
    ) -> list[Verdict]:
        """Send reports by a group commit of their own."""
        found = [Report.of(u, content) for u, content in sent]
        return reports.add(database or self.database, self.session, found)

    def close(self, batch: int | None = None, *, reopen: bool = False) -> bool:
        with self.database.transaction() as tx:
            number = self.batch if batch is None else batch
            return batches.close(tx, number, reopen=reopen, parts=self.slices)

    def state(self, batch: int | None = None) -> State:
        with self.database.transaction() as tx:
            return batches.get(tx, self.batch if batch is None else batch).state

    def asking(self, helpers: Sequence[Helper | HelperLink] | None = None) -> Asking:
        """Return the way to these helpers, or to all honest helpers."""
        given = self.made.helpers if helpers is None else helpers
        links = [LocalHelper(one) if isinstance(one, Helper) else one for one in given]

        @asynccontextmanager
        async def reach(params: OneShotParams) -> AsyncIterator[Sequence[HelperLink]]:
            assert params.digest == self.made.params.digest
            yield links

        return Asking(reach)

    def worker(
        self,
        helpers: Sequence[Helper | HelperLink] | None = None,
        database: Database | None = None,
    ) -> Worker:
        return Worker(database or self.database, self.asking(helpers), self.registry)

    def closer(
        self,
        helpers: Sequence[Helper | HelperLink] | None = None,
        database: Database | None = None,
    ) -> Closer:
        return Closer(database or self.database, self.asking(helpers), self.registry)

    async def work(self, helpers: Sequence[Helper | HelperLink] | None = None) -> None:
        """Finish all slices."""
        worker = self.worker(helpers)
        while await worker.step():
            pass

    async def finish(
        self,
        helpers: Sequence[Helper | HelperLink] | None = None,
        batch: int | None = None,
    ) -> None:
        """Lead a batch from closing to done."""
        await self.work(helpers)
        await self.finish_from(State.FIXED, helpers, batch)

    async def finish_from(
        self,
        state: State,
        helpers: Sequence[Helper | HelperLink] | None = None,
        batch: int | None = None,
    ) -> None:
        """Lead a batch into a state, and on to done."""
        closer, number = self.closer(helpers), self.batch if batch is None else batch
        for after in list(State)[list(State).index(state) :]:
            assert await closer.step(number) == after
