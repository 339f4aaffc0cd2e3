"""A process ends at any statement; the next process goes on, and the sum is exact."""

from __future__ import annotations

from itertools import count

import pytest

from collect_faults import Death, Interposed, Killed
from collect_parts import Collected, Databases
from oneshot_parties import Parties, parties
from secagg import SecAggError
from secagg.collect import State
from secagg.collect.close import result
from secagg.collect.reports import Verdict
from secagg.collect.schema import migrate

CLIENTS = frozenset(range(3))


async def live(
    databases: Databases,
    made: Parties,
    sent: dict[int, bytes],
    acknowledged: set[int],
    death: Death,
) -> None:
    """Run a process, from the tables to the sum of the first batch of a session."""
    database = Interposed(databases.connect(), death)
    try:
        migrate(database)
        collected = Collected(database, made, slices=2)
        collected.sent = sent
        for u in sorted(CLIENTS - acknowledged):
            if collected.report(u) == [Verdict.STORED]:
                acknowledged.add(u)
        collected.close()
        await collected.work()
        while await collected.closer().step(collected.batch) != State.DONE:
            pass
    finally:
        database.close()


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.large)])
async def test_every_statement_can_be_the_last(databases: Databases, step: int) -> None:
    for at in count(0, step):
        sent, acknowledged, death = dict[int, bytes](), set[int](), Death(at)
        with parties(3, session=b"session %d" % at) as made:
            try:
                await live(databases, made, sent, acknowledged, death)
            except (Killed, SecAggError):
                assert death.dead
            made.restart()
            databases.time += 10_000.0  # all leases run out
            await live(databases, made, sent, acknowledged, Death())
            database = databases.open()
            found = result(database, at // step)
            database.close()
            assert found is not None
            assert set(found.survivors) == CLIENTS == acknowledged
            assert found.integers.tolist() == made.expected(CLIENTS)
        if not death.dead:
            break
    assert at > 50, "the driver sees the statements"
