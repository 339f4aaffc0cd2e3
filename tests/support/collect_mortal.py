"""A collection in one process, from the tables to the sum, which ends at some statement.

As a script: a nursery, which forks a process for each connection. The process lives the life
that it receives, sends the clients whose reports it acknowledges, and kills itself in earnest.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Client as connect
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import nursery
from collect_faults import Interposed, Kill, kill
from collect_parts import Collected, Databases
from oneshot_parties import Parties
from secagg.collect import Database, State
from secagg.collect.database import Transaction
from secagg.collect.reports import Verdict
from secagg.collect.schema import migrate

CLIENTS = frozenset(range(3))
HELPERS = 3


async def live(
    database: Database,
    made: Parties,
    sent: dict[int, bytes],
    acknowledge: Callable[[int], object],
) -> None:
    """Run a process, from the tables to the sum of the first batch of a session."""
    try:
        migrate(database)
        collected = Collected(database, made, slices=2)
        collected.sent = sent
        for u in sorted(CLIENTS):
            if collected.report(u) == [Verdict.STORED]:
                acknowledge(u)
        collected.close()
        await collected.work()
        while await collected.closer().step(collected.batch) != State.DONE:
            pass
    finally:
        database.close()


class Life(NamedTuple):
    """Life of a process.

    Attributes
    ----------
    where : str
        The database.
    folder : Path
        The helpers' journals.
    session : bytes
    sent : mapping of id to bytes
        Reports of all clients.
    time : float
        Time of the database.
    at : int or None
        Number of the statement before which the process dies; None for none.
    unanswered : bool
        `at` is the number of a COMMIT instead, which is sent, and not answered.
    """

    where: str
    folder: Path
    session: bytes
    sent: Mapping[int, bytes]
    time: float
    at: int | None = None
    unanswered: bool = False


class Unanswered(Interposed):
    """Database of PostgreSQL that kills this process when it has sent a COMMIT."""

    def __init__(self, database: Database, at: int | None) -> None:
        super().__init__(database, lambda _: None)
        self.at, self.commits = at, 0

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self.database.transaction() as tx:
            yield tx
            if self.commits == self.at:
                connection = tx._connection.pgconn  # type: ignore[attr-defined]
                connection.send_query(b"COMMIT")
                connection.flush()
                kill()
            self.commits += 1


def serve(connection: Connection) -> None:
    life = connection.recv()
    databases = Databases(life.where)
    databases.time = life.time
    database = databases.connect()
    killed = Interposed(database, Kill(life.at))
    if life.unanswered:
        killed = Unanswered(database, life.at)
    made = Parties(life.folder, HELPERS, session=life.session)
    asyncio.run(live(killed, made, dict(life.sent), connection.send))
    connection.send(None)


def start_nursery(address: str) -> subprocess.Popen[bytes]:
    """Return when it listens."""
    return nursery.start(__file__, address)


def lived(address: str, life: Life) -> tuple[set[int], bool]:
    """Return the clients that a process acknowledged, and whether it died before its end."""
    acknowledged = set[int]()
    with connect(address, "AF_UNIX") as connection:
        connection.send(life)
        try:
            while (u := connection.recv()) is not None:
                acknowledged.add(u)
        except (EOFError, ConnectionResetError):
            return acknowledged, True
    return acknowledged, False


if __name__ == "__main__":
    nursery.main(serve, wait=True)
