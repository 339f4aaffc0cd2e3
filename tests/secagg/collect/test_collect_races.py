"""A batch that closes at any statement of an insertion: acknowledged reports are all read."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pytest

from collect_faults import BEGIN, COMMIT, COMMITTED, Interposed
from collect_parts import Collected, Databases
from oneshot_parties import Parties, parties
from secagg.collect import batches, reports
from secagg.collect.reports import Verdict

MANY = 3000
MOMENTS = [
    BEGIN,
    "SELECT number",
    "INSERT INTO secagg_clients",
    "INSERT INTO secagg_reports",
    "UPDATE secagg_batches",
    COMMIT,
    COMMITTED,
]


@pytest.fixture
def made() -> Iterator[Parties]:
    with parties(n_clients=MANY) as found:
        yield found


@pytest.mark.parametrize("reopen", [False, True])
@pytest.mark.parametrize("moment", MOMENTS)
def test_closed_batch_has_every_acknowledged_report(
    databases: Databases, made: Parties, moment: str, reopen: bool
) -> None:
    collected = Collected(databases.open(), made)
    collected.report(0, 1, 2)
    read: dict[int, bytes] = {}

    def close() -> None:
        other = databases.connect()
        with other.transaction() as tx:
            assert batches.close(tx, 0, reopen=reopen)
        # as a worker that comes at once
        read.update(*reports.chunks(other, 0, reports.EVERYWHERE, 100))

    closing = threading.Thread(target=close)
    # a closer waits for a writer of SQLite, and in PostgreSQL for one that counted
    waits = moment == COMMIT or (
        databases.where.startswith("/") and moment not in (BEGIN, COMMITTED)
    )

    def before(statement: str) -> None:
        if closing.ident is None and statement.startswith(moment):
            closing.start()
            if not waits:
                closing.join()

    verdicts = collected.report(3, 4, database=Interposed(databases.connect(), before))
    closing.join()
    acknowledged = {0, 1, 2}
    if waits or moment == COMMITTED:
        assert verdicts == [Verdict.STORED] * 2
        acknowledged |= {3, 4}
    else:
        assert verdicts == [Verdict.STORED if reopen else Verdict.CLOSED] * 2
    assert read.keys() == acknowledged


def test_two_processes_with_the_same_clients_do_not_block_each_other(
    databases: Databases, made: Parties
) -> None:
    """Each insertion would wait for clients of the other insertion, unless they are sorted."""
    collected = Collected(databases.open(), made)
    sent = [(u, b"a report") for u in range(MANY)]
    found: list[Verdict] = []
    together = threading.Barrier(2)

    def report(order: Iterable[tuple[int, bytes]]) -> None:
        database = databases.connect()
        with database.transaction():
            pass  # connected
        together.wait()
        found.extend(collected.send(order, database=database))

    both = [threading.Thread(target=report, args=[order]) for order in (sent, sent[::-1])]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert found == [Verdict.STORED] * 2 * MANY
    with collected.database.transaction() as tx:
        assert batches.get(tx, 0).reports == MANY
