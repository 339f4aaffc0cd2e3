"""A process ends at any statement; the next process goes on, and the sum is exact."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from collect_faults import Death, Interposed, Killed
from collect_mortal import CLIENTS, HELPERS, Life, live, lived, start_nursery
from collect_parts import Databases
from oneshot_parties import Parties, parties
from postgres_server import Server
from secagg import DatabaseError, SecAggError
from secagg.collect import Database
from secagg.collect.close import result


def check(database: Database, number: int, made: Parties) -> None:
    found = result(database, number)
    assert found is not None
    assert set(found.survivors) == CLIENTS
    assert found.integers.tolist() == made.expected(CLIENTS)


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.slow)])
async def test_every_statement_can_be_the_last(databases: Databases, step: int) -> None:
    for at in count(0, step):
        sent, acknowledged, death = dict[int, bytes](), set[int](), Death(at)
        with parties(HELPERS, session=b"session %d" % at) as made:
            try:
                dying = Interposed(databases.connect(), death)
                await live(dying, made, sent, acknowledged.add)
            except (Killed, SecAggError):
                assert death.dead
            made.restart()
            databases.time += 10_000.0  # all leases run out
            await live(databases.connect(), made, sent, acknowledged.add)
            database = databases.open()
            check(database, at // step, made)
            database.close()
            assert acknowledged == CLIENTS
        if not death.dead:
            break
    assert at > 50, "the driver sees the statements"


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    address = str(tmp_path_factory.mktemp("n") / "socket")
    started = start_nursery(address)
    yield address
    started.kill()
    started.communicate()


def killed_at_every(
    step: int, databases: Databases, ram_path: Path, address: str, *, unanswered: bool
) -> int:
    """Kill a process at every statement, let another go on, and return the number of deaths."""
    for at in count(0, step):
        folder, session = ram_path / f"{at}", b"session %d" % at
        folder.mkdir()
        made = Parties(folder, HELPERS, session=session)
        made.close()  # the processes open the journals
        sent = {u: made.report(u) for u in CLIENTS}
        life = Life(databases.where, folder, session, sent, databases.time, at, unanswered)
        acknowledged, died = lived(address, life)
        databases.time += 10_000.0  # all leases run out
        database = databases.open()
        if died:
            later = life._replace(time=databases.time, at=None)
            assert lived(address, later) == (CLIENTS, False)
        else:
            assert acknowledged == CLIENTS
        check(database, at // step, made)
        database.close()
        if not died:
            break
    return at // step


@pytest.mark.parametrize("step", [43, pytest.param(1, marks=pytest.mark.slow)])
def test_process_is_killed_at_every_statement(
    databases: Databases, ram_path: Path, nursery: str, step: int
) -> None:
    assert killed_at_every(step, databases, ram_path, nursery, unanswered=False) * step > 50


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_process_is_killed_before_the_answer_to_its_commit(
    postgres: str, ram_path: Path, nursery: str, step: int
) -> None:
    databases = Databases.in_schema(postgres, 10_000 + step)
    assert killed_at_every(step, databases, ram_path, nursery, unanswered=True) * step > 15
    databases.close()


@pytest.mark.parametrize("step", [67, pytest.param(1, marks=pytest.mark.slow)])
async def test_server_crashes_at_every_statement(own_postgres: Server, step: int) -> None:
    """The process stays, and repeats what failed."""
    databases = Databases.in_schema(own_postgres.url, 0)
    for at in count(0, step):
        death, sent, acknowledged = Death(at), dict[int, bytes](), set[int]()

        def crash(statement: str, death: Death = death) -> None:
            try:
                death(statement)
            except Killed:
                if death.statements == death.at + 1:  # type: ignore[operator]
                    own_postgres.crash()
                    own_postgres.start()

        with parties(HELPERS, session=b"session %d" % at) as made:
            database = databases.connect()
            for _ in range(3):
                try:
                    await live(Interposed(database, crash), made, sent, acknowledged.add)
                except DatabaseError:
                    databases.time += 10_000.0
                    database = databases.connect()
                else:
                    break
            database = databases.open()
            check(database, at // step, made)
            database.close()
            assert acknowledged == CLIENTS
        if not death.dead:
            break
    databases.close()
