"""Sums of reports in a database: workers, closers and helpers that fail, lie or start again."""

from __future__ import annotations

import pytest

from collect_parts import Collected, Databases, Rejecting
from oneshot_parties import Parties, parties
from secagg import RemoteProtocolError, TooFewSurvivors
from secagg.collect import State
from secagg.collect.close import result
from secagg.collect.reports import Verdict
from secagg.session.helpers import LocalHelper


def check_sum(collected: Collected, clients: set[int], batch: int | None = None) -> None:
    number = collected.batch if batch is None else batch
    found = result(collected.database, number)
    assert found is not None
    assert set(found.survivors) == clients
    assert found.integers.tolist() == collected.made.expected(clients)


def rejecting(made: Parties, at: int, *clients: int) -> list[LocalHelper]:
    """Return all helpers, and helper `at` rejects these clients."""
    return [Rejecting(h, frozenset(clients if h.number == at else ())) for h in made.helpers]


@pytest.mark.parametrize("security", ["active", "semi-honest"])
async def test_sum_of_two_batches(databases: Databases, security: str) -> None:
    with parties(3, security=security) as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(5))
        assert collected.close(reopen=True)
        collected.report(*range(5, 9))
        await collected.finish()
        check_sum(collected, set(range(5)))
        assert collected.close(1)
        await collected.finish(batch=1)
        check_sum(collected, {5, 6, 7, 8}, 1)
        # the reports are gone, but are recognised
        assert collected.report(0, 8) == [Verdict.STORED] * 2
        assert collected.send([(0, b"x")]) == [Verdict.OTHER]


async def test_steps_out_of_order_change_nothing(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(3))
        closer = collected.closer()
        assert not await collected.worker().step()
        assert await closer.step(0) == State.OPEN
        collected.close()
        assert await closer.step(0) == State.CLOSING
        assert result(collected.database, 0) is None
        await collected.finish()
        assert await closer.step(0) == State.DONE
        check_sum(collected, {0, 1, 2})


async def test_clients_that_a_helper_rejects_are_dropped(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(6))
        collected.close()
        await collected.finish(rejecting(made, 2, 1, 4, 77))
        check_sum(collected, {0, 2, 3, 5})


async def test_liar_that_rejects_too_many_is_left_out(databases: Databases) -> None:
    with parties(4) as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(6))
        collected.close()
        await collected.finish(rejecting(made, 3, *range(5)))
        check_sum(collected, set(range(6)))


async def test_too_many_rejections_by_all_fix_no_list(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(3))
        collected.close()
        links = [Rejecting(helper, frozenset({1})) for helper in made.helpers]
        await collected.work(links)
        with pytest.raises(TooFewSurvivors):
            await collected.closer(links).step(0)
        assert collected.state() == State.CLOSING


async def test_restarted_helpers_get_the_boxes_again(databases: Databases) -> None:
    with parties(3) as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(5))
        collected.close()
        await collected.work(rejecting(made, 1, 3))
        closer = collected.closer()
        for state in (State.FIXED, State.RESERVED, State.OPENED):
            made.restart()
            closer = collected.closer(database=databases.open())
            assert await closer.step(0) == state
        check_sum(collected, {0, 1, 2, 4})


async def test_slice_is_left_if_too_few_helpers_answer(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(4))
        collected.close()
        with pytest.raises(RemoteProtocolError) as caught:
            await collected.work(made.helpers[:1])
        assert caught.value.check == "helpers"
        await collected.finish()
        check_sum(collected, {0, 1, 2, 3})


async def test_late_worker_changes_nothing(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made, slices=1)
        collected.report(*range(4))
        collected.close()
        late = collected.worker(database=databases.open())
        task = late._take()
        assert task is not None
        assert late._take() is None, "the lease is taken"
        databases.time += late.lease
        second = collected.worker()
        other = second._take()
        assert other is not None
        for _ in range(2):
            assert not late._renew(task.lease)
            late._release(task.lease)
            assert not late._finish(task.lease, made.accumulator([]), {})
            await second._add(other, rejecting(made, 1, 2))
        await collected.finish_from(State.FIXED)
        check_sum(collected, {0, 1, 3})


async def test_worker_that_lives_keeps_its_lease(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes longer than the lease, but no chunk of reports does."""
    monkeypatch.setattr("secagg.collect.work.chunk_of", lambda _: 1)
    with parties() as made:
        collected = Collected(databases.open(), made, slices=1)
        collected.report(*range(4))
        collected.close()
        worker, other = collected.worker(), collected.worker(database=databases.open())

        class Slow(LocalHelper):
            async def check(self, boxes: bytes) -> tuple[int, ...]:
                assert other._take() is None
                databases.time += 0.4 * worker.lease  # two helpers
                return await super().check(boxes)

        await collected.finish([Slow(helper) for helper in made.helpers])
        check_sum(collected, {0, 1, 2, 3})


async def test_two_closers_fix_one_list(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(4))
        collected.close()
        await collected.work()
        first, second = (collected.closer(database=databases.open()) for _ in range(2))
        batch, session = second._read(0)
        other = second._merged(batch, session)
        other.add(made.report(9))  # a list that the second closer would fix
        second.__dict__["_merged"] = lambda *_: other
        assert await first.step(0) == State.FIXED
        second._fix(batch, session)
        for state in (State.RESERVED, State.OPENED):
            assert await second.step(0) == state
        check_sum(collected, {0, 1, 2, 3})


async def test_rows_of_a_liar_are_dropped(databases: Databases) -> None:
    """Reports that no client signed, or in another client's row, cost nobody the sum."""
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(3))
        collected.send(
            [(5, made.report(5)[:90]), (6, made.report(8)), (7, made.report(7)[:-1])]
        )
        collected.close()
        await collected.work()
        made.restart()  # the boxes that are sent again are those of the list
        await collected.finish_from(State.FIXED)
        check_sum(collected, {0, 1, 2})


async def test_restored_database_opens_no_second_list(databases: Databases) -> None:
    """The helpers' journals decide: they reserved another list with these clients."""
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(4))
        collected.close()
        await collected.work()
        closer = collected.closer()
        assert await closer.step(0) == State.FIXED
        assert await closer.step(0) == State.RESERVED, "two of two helpers reserve nothing"
        made.open(made.checked([0, 1, 2]))  # what the database before the copy opened
        with pytest.raises(RemoteProtocolError):
            await closer.step(0)
        assert result(collected.database, 0) is None


async def test_server_of_the_wheel_serves(wheel_postgres: str) -> None:
    databases = Databases.in_schema(wheel_postgres, 0)
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)
        collected.close()
        await collected.finish()
        check_sum(collected, {0, 1, 2})
    databases.close()
