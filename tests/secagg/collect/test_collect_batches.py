"""Batches beside their way to a sum: dropped, asked again, and forgotten after a time."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from collect_faults import BEGIN, Death, Interposed
from collect_parts import Collected, Databases, Rejecting
from oneshot_parties import parties
from secagg import (
    DatabaseError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    TooFewSurvivors,
)
from secagg.collect import State, batches, close, sessions, slices
from secagg.collect.reports import Verdict
from secagg.collect.slices import Lease
from secagg.session import bind, outcomes
from secagg.session.helpers import LocalHelper


@pytest.mark.parametrize("state", list(State)[:4])
async def test_dropped_batch_keeps_digests_only(databases: Databases, state: State) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)
        if state != State.OPEN:
            collected.close(reopen=True)
        if state in (State.FIXED, State.RESERVED):
            await collected.work()
            while await collected.closer().step(0) != state:
                pass
        close.drop(collected.database, 0)
        assert collected.state() == State.DONE
        assert close.result(collected.database, 0) is None
        with collected.database.transaction() as tx:
            stored = batches.stored(tx, 0)
            assert tx.number("SELECT count(*) FROM secagg_slices") == 0
        assert stored.list is stored.reservations is None
        error = outcomes.read(stored.outcome or b"", made.params)
        assert isinstance(error, RemoteProtocolError)
        assert error.check == "dropped"
        # a client of the batch is in no later batch of the session
        assert collected.report(0) == [Verdict.STORED]
        last = Verdict.CLOSED if state == State.OPEN else Verdict.STORED
        assert collected.report(5) == [last]
        with pytest.raises(ParameterError):
            close.drop(collected.database, 0)
        assert await collected.closer().step(0) == State.DONE


async def test_drop_that_died_is_told_and_repeated(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)

        def die(*_: object) -> None:
            raise DatabaseError("killed between its transactions")

        with monkeypatch.context() as patch:
            patch.setattr(batches, "drop", die)
            with pytest.raises(DatabaseError):
                close.drop(collected.database, 0)
        assert collected.state() == State.CLOSING
        with pytest.raises(LocalProtocolError):
            await collected.closer().step(0)
        close.drop(collected.database, 0)
        assert collected.state() == State.DONE


async def test_batch_with_a_sum_is_not_dropped(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)
        collected.close()
        await collected.work()
        while await collected.closer().step(0) != State.OPENED:
            pass
        for number in (0, 1):  # there is no batch 1
            with pytest.raises(ParameterError):
                close.drop(collected.database, number)
        assert close.result(collected.database, 0) is not None


async def test_helpers_that_think_again_are_asked_again(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(3))
        collected.close()
        late = collected.worker(database=databases.open())
        task = late._take()
        assert task is not None
        databases.time += late.lease
        links = [Rejecting(helper, frozenset({1})) for helper in made.helpers]
        await collected.work(links)
        closer = collected.closer()
        with pytest.raises(TooFewSurvivors):
            await closer.step(0)
        whole = closer._read(0)
        assert await closer.ask_again(0)
        with collected.database.transaction() as tx:  # an alert counts from the close
            assert batches.get(tx, 0).changed < tx.now()
        monkeypatch.setattr("secagg.collect.slices.unfinished", lambda *_: 0)
        closer._fix(*whole)  # of a closer that looked before
        assert collected.state() == State.CLOSING
        monkeypatch.undo()
        assert not late._finish(task.lease, made.accumulator([]), {})
        task = late._take()
        assert task is not None
        assert await closer.ask_again(0)  # a lease of before is none any more
        assert not late._finish(task.lease, made.accumulator([]), {})
        await collected.finish()
        assert not await closer.ask_again(0)
        found = close.result(collected.database, 0)
        assert found is not None
        assert set(found.survivors) == {0, 1, 2}


async def test_clients_with_a_report_that_is_not_in_the_sum(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(close, "_CHUNK", 2)
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(6))
        collected.close(reopen=True)
        collected.report(7)
        assert close.missing(collected.database, 0, [0, 2, 3]) == [1, 4, 5]


async def test_sessions_that_are_done_for_long_are_deleted(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(3))
        collected.close()
        database = collected.database

        def delete() -> list[int]:
            with database.transaction() as tx:
                return sessions.delete_done(tx, 100.0)

        databases.time += 1000.0
        assert delete() == []
        await collected.finish()
        databases.time += 99.0
        assert delete() == []
        databases.time += 2.0
        assert delete() == [0]
        with database.transaction() as tx:
            for table in ("sessions", "batches", "clients", "slices"):
                assert tx.number(f"SELECT count(*) FROM secagg_{table}") == 0  # noqa: S608
        # numbers name files, so none is given twice
        again = Collected(database, made)
        assert (again.session.number, again.batch) == (1, 1)


async def test_message_of_a_session(databases: Databases) -> None:
    changes = {"session": bind(b"march", b"columns")}
    with parties(**changes) as made, databases.open().transaction() as tx:
        begun = batches.begin(tx, made.params, message=b"columns")
        found = sessions.find(tx, made.params.digest)
        assert found is not None
        assert found.message == begun.message == b"columns"
        assert found.title == "march"
        with pytest.raises(ParameterError):
            batches.begin(tx, made.params, message=b"other columns")


async def test_slice_that_was_given_up_waits_behind_the_others(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)
        collected.close(reopen=True)
        collected.report(3, 4, 5)
        collected.close(1)
        worker = collected.worker()

        def taken(batch: int | None = None) -> tuple[int, int]:
            task = worker._take(batch)
            assert task is not None
            worker._release(task.lease)
            return task.lease.batch, task.lease.slice

        assert [taken() for _ in range(5)] == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 0)]
        assert taken(1) == (1, 0)


async def test_lease_of_a_clock_that_was_ahead_blocks_no_slice(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made, slices=1)
        collected.report(0, 1, 2)
        collected.close()
        early = collected.worker(database=databases.open())
        task = early._take()
        assert task is not None
        databases.time -= early.lease  # a clock that is set back a little
        assert collected.worker()._take() is None
        databases.time -= 1.0
        await collected.work()
        assert not early._finish(task.lease, made.accumulator([]), {})
        assert not early._renew(task.lease)
        await collected.finish()


async def test_altered_batch_keeps_no_worker_from_the_others(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made, slices=1)
        for clients in ((0, 1, 2), (3, 4, 5)):
            collected.report(*clients)
            collected.close(collected.stored()[-1].number, reopen=True)
        with collected.database.transaction() as tx:
            tx.run("UPDATE secagg_batches SET begun = ? WHERE number = 0", 1e300)
        worker = collected.worker()
        with pytest.raises(DatabaseError, match="Batch 0 was altered"):
            await worker.step()
        assert await worker.step()
        assert await collected.closer().step(1) == State.FIXED


@pytest.mark.parametrize("count", [1, 3])
def test_every_place_is_in_a_slice(databases: Databases, count: int) -> None:
    with databases.open().transaction() as tx:
        slices.store(tx, 0, count)
        leases = tx.query(
            Lease, "SELECT batch, slice, token, first, last FROM secagg_slices ORDER BY slice"
        )
    ends = [-(1 << 63), *(lease.last + 1 for lease in leases)]
    assert [*(lease.first for lease in leases), 1 << 63] == ends


async def test_worker_that_ends_in_order_leaves_no_lease(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made, slices=1)
        collected.report(0, 1, 2)
        collected.close()

        asked = asyncio.Event()

        def away(_: str) -> None:
            raise DatabaseError("gone")

        class Silent(LocalHelper):
            async def check(self, boxes: bytes) -> tuple[int, ...]:
                asked.set()
                await asyncio.get_running_loop().create_future()
                return ()

        links = [Silent(helper) for helper in made.helpers]
        for is_away in (True, False):
            database = Interposed(collected.database, Death(None))
            step = asyncio.ensure_future(collected.worker(links, database).step())
            await asked.wait()
            asked.clear()
            if is_away:
                database.before = away
            step.cancel()
            with pytest.raises(asyncio.CancelledError):
                await step
            if is_away:
                databases.time += 10_000.0
        await collected.finish()


async def test_slice_of_a_worker_that_lost_the_database_waits_for_no_lease(
    databases: Databases,
) -> None:
    with parties() as made:
        collected, failures = Collected(databases.open(), made, slices=1), iter([True])
        collected.report(0, 1, 2)
        collected.close()

        def before(statement: str) -> None:
            if statement.startswith("UPDATE secagg_slices SET part") and next(failures, False):
                raise DatabaseError("gone")

        worker = collected.worker(database=Interposed(collected.database, before))
        with pytest.raises(DatabaseError):
            await worker.step()
        await collected.finish()


async def test_batch_that_ends_while_a_closer_looks_has_no_other_error(
    databases: Databases,
) -> None:
    """The slices are gone: all are finished, and they have no reports."""
    with parties() as made:
        collected, begun = Collected(databases.open(), made), count()
        collected.report(0, 1, 2)
        collected.close()

        def before(statement: str) -> None:
            # the closer has read the state
            if statement == BEGIN and next(begun) == 1:
                close.drop(databases.connect(), 0)

        closer = collected.closer(database=Interposed(databases.connect(), before))
        assert await closer.step(0) == State.DONE
