"""``secagg collect close`` in this process: sums, records, and batches one after the other."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli_processes import invoke
from collect_parts import Collected, Databases, Rejecting
from oneshot_parties import parties, registry_for
from secagg import (
    DatabaseError,
    JournalError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    TooFewSurvivors,
)
from secagg._files import replace_file
from secagg.cli.batch_book import BatchBook
from secagg.cli.closing import Closing, When
from secagg.cli.console import Document
from secagg.collect import Asking, Closer, State, Worker, batches, close, sessions
from secagg.collect.database import AlteredError, Transaction
from secagg.collect.reports import Verdict, place_of
from secagg.oneshot import OneShotParams
from secagg.session import bind
from secagg.session.helpers import HelperLink, LocalHelper

MINUTE = When(every="minute")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secagg.cli.closing.PAUSE", 0.0)


class Run:
    """A process of ``secagg collect close``."""

    def __init__(
        self,
        collected: Collected,
        out: Path,
        *others: Collected,
        helpers: Sequence[HelperLink] | None = None,
    ) -> None:
        self.book, self.shown = BatchBook(out), list[Document]()
        database, registry = collected.database, registry_for(collected.made.params)
        known = {one.made.params.digest: one.made for one in (collected, *others)}
        self.most, reached = 0, list[bytes]()

        @asynccontextmanager
        async def reach(params: OneShotParams) -> AsyncIterator[Sequence[HelperLink]]:
            reached.append(params.digest)
            self.most = max(self.most, len(set(reached)))
            await asyncio.sleep(0.001)
            try:
                yield helpers or [LocalHelper(one) for one in known[params.digest].helpers]
            finally:
                reached.remove(params.digest)

        asking = Asking(reach)
        parts = Closer(database, asking, registry), Worker(database, asking, registry)
        self.closing = Closing(database, *parts, self.book, self.shown.append)

    async def until(
        self, done: Callable[[], bool], when: When, keep: float | None = None
    ) -> None:
        """Stay until a condition holds, and end as by a signal."""
        task = asyncio.ensure_future(self.closing.stay(when, keep))
        while not done():
            assert not task.done() or task.result()
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@contextmanager
def two_sessions(databases: Databases) -> Iterator[tuple[Collected, Collected]]:
    """Return a context with two sessions in one database."""
    with parties() as made, parties(session=b"next model") as other:
        first = Collected(databases.open(), made)
        yield first, Collected(first.database, other)


def rejecting(collected: Collected, *clients: int) -> list[Rejecting]:
    return [Rejecting(helper, frozenset(clients)) for helper in collected.made.helpers]


def records(out: Path) -> list[Document]:
    """Return the records of a folder, whose chain and sums are whole."""
    done = invoke("verify", out, "--json")
    assert done.exit_code == 0, done.output
    found: list[Document] = json.loads(done.stdout)["records"]
    return found


@pytest.mark.parametrize("state", list(State)[:-1])
async def test_close_goes_on_from_every_state(
    databases: Databases, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)

        def write(path: Path, content: bytes) -> None:
            assert collected.state() == State.OPENED, "the reports are there until then"
            path.write_bytes(content)

        monkeypatch.setattr("secagg.cli.batch_book.replace_file", write)
        collected.report(0, 1, 2)
        if state != State.OPEN:
            collected.close(reopen=True)  # the next batch has too few reports
        if state not in (State.OPEN, State.CLOSING):
            await collected.work()
            while await collected.closer().step(0) != state:
                pass
        run = Run(collected, tmp_path)
        await run.closing.once(reopen=False)
        assert len(run.shown) == 1
        assert np.load(tmp_path / "sum-0.npy").tolist() == made.expected(range(3))
        assert collected.state() == State.DONE
        (record,) = records(tmp_path)
        assert (record["clients"], record["registered"]) == (["0", "1", "2"], 3)


async def test_batch_that_helpers_reject_keeps_no_other_from_its_sum(
    databases: Databases, tmp_path: Path
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2, 10)
        collected.close(reopen=True)
        collected.report(3, 4, 5)
        run = Run(collected, tmp_path, helpers=rejecting(collected, 1, 10))
        for _ in range(2):
            with pytest.raises(TooFewSurvivors):
                await run.closing.once(reopen=False)
            assert np.load(tmp_path / "sum-1.npy").tolist() == made.expected([3, 4, 5])
        assert run.book.status == 2
        assert [one["outcome"] for one in records(tmp_path)] == ["failed", "full"]
        # the operators of the helpers add the clients
        again = Run(collected, tmp_path)
        await again.closing.once(reopen=False)
        assert again.book.status == 0
        assert [one["outcome"] for one in records(tmp_path)] == ["failed", "full", "full"]


async def test_list_that_helpers_refuse_keeps_no_other_from_its_sum(
    databases: Databases, tmp_path: Path
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(4))
        collected.close(reopen=True)
        await collected.work()
        made.open(made.checked([0, 1, 2]))  # of the database before a copy was restored
        collected.report(5, 6, 7)
        run = Run(collected, tmp_path)
        with pytest.raises(RemoteProtocolError) as caught:
            await run.closing.once(reopen=False)
        assert caught.value.check == "refused"
        assert [one["batch"] for one in run.shown] == [1]
        close.drop(collected.database, 0)
        await run.closing.once(reopen=False)
        with pytest.raises(RemoteProtocolError) as caught:
            await run.closing.once(0, reopen=False)
        assert caught.value.check == "dropped"
        assert run.book.status == 2


async def test_absent_helpers_keep_the_next_batch_open(
    databases: Databases, tmp_path: Path
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)
        collected.close(reopen=True)
        collected.report(3, 4, 5)
        made.helpers = []
        for _ in range(2):
            with pytest.raises(RemoteProtocolError) as caught:
                await Run(collected, tmp_path).closing.once(reopen=False)
            assert caught.value.check == "helpers"
        assert collected.state(1) == State.OPEN


async def test_sum_without_some_reports(databases: Databases, tmp_path: Path) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(5))
        run = Run(collected, tmp_path, helpers=rejecting(collected, 3))
        await run.closing.once(reopen=False)
        (shown,), (record,) = run.shown, records(tmp_path)
        assert shown["missing"] == record["missing"]
        assert [one["client"] for one in record["missing"]] == ["3"]
        assert (shown["outcome"], run.book.status) == ("partial", 3)


async def test_reports_that_the_database_lost_are_no_rejections(
    databases: Databases, tmp_path: Path
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(6))
        with collected.database.transaction() as tx:
            tx.run("DELETE FROM secagg_reports_0 WHERE place = ?", place_of(1))
            altered = "UPDATE secagg_reports_0 SET report = ? WHERE place = ?"
            tx.run(altered, b"x", place_of(2))
        run = Run(collected, tmp_path, helpers=rejecting(collected, 3))
        await run.closing.once(reopen=False)
        (record,) = records(tmp_path)
        found = {one["client"]: (one["why"], one["check"]) for one in record["missing"]}
        assert found == {"1": ("lost", ""), "2": ("lost", ""), "3": ("rejected", "helpers")}
        assert (record["outcome"], run.book.status) == ("partial", 3)
        assert "1: lost; its report in the database" in invoke("verify", tmp_path).stdout
        # the reasons went with the slices
        (tmp_path / "other").mkdir()
        await Run(collected, tmp_path / "other").closing.once(0, reopen=False)
        (record,) = records(tmp_path / "other")
        assert {one["why"] for one in record["missing"]} == {"not known"}


_NO_REQUEST = b'{"secagg request 1"'


@pytest.mark.parametrize("state", [State.OPEN, State.CLOSING, State.OPENED])
@pytest.mark.parametrize(
    ("altered", "value"),
    [
        ("batches SET changed", 1e300),
        ("batches SET changed", -1e12),
        ("batches SET begun", 1e300),
        ("batches SET reports", 1 << 62),
        ("batches SET place", -1),
        ("batches SET session", 9),
        ("sessions SET message", _NO_REQUEST),
        ("sessions SET params", b"x"),
        ("sessions SET digest", b"x"),
    ],
)
async def test_altered_rows_of_a_batch_keep_no_other_from_its_sum(
    databases: Databases,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    state: State,
    altered: str,
    value: float | bytes,
) -> None:
    databases.time = 60.0 * 1000
    with two_sessions(databases) as (first, second):
        for one in (first, second):
            one.report(0, 1, 2)
        if state != State.OPEN:
            first.close()
        if state == State.OPENED:
            await first.work()
            while await first.closer().step(0) != state:
                pass
        with first.database.transaction() as tx:
            tx.run(f"UPDATE secagg_{altered} = ? WHERE number = 0", value)
        databases.time += 60.0
        run, more = Run(first, tmp_path, second), passes(5)
        await run.until(lambda: len(run.shown) == 1 and more(), MINUTE)
        assert [one["batch"] for one in run.shown] == [1]
        told = capsys.readouterr().err
        assert told.count("restore the database") == 1
        assert "batch 0" in told.lower() or "session" in told
        with pytest.raises(DatabaseError):
            await Run(first, tmp_path, second).closing.once(0, reopen=False)


@pytest.mark.parametrize(("column", "value"), [("begun", 1e300), ("list", b"x")])
async def test_altered_batch_lets_the_next_batch_close(
    databases: Databases, tmp_path: Path, column: str, value: float | bytes
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)
        collected.close(reopen=True)
        await collected.work()
        assert await collected.closer().step(0) == State.FIXED
        collected.report(3, 4, 5)
        altered = f"UPDATE secagg_batches SET {column} = ? WHERE number = 0"  # noqa: S608
        with collected.database.transaction() as tx:
            tx.run(altered, value)
        run = Run(collected, tmp_path)
        with pytest.raises(DatabaseError, match="restore the database"):
            await run.closing.once(reopen=False)
        assert [one["batch"] for one in run.shown] == [1]


async def test_batch_without_a_next_batch_lets_the_others_close(
    databases: Databases, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table of the next batch is there already."""
    databases.time = 60.0 * 1000
    with two_sessions(databases) as (first, second):
        first.report(0, 1, 2)
        second.report(0, 1, 2)
        second.close()
        with first.database.transaction() as tx:
            tx.run("CREATE TABLE secagg_reports_2 (place BIGINT)")
        databases.time += 60.0
        run = Run(first, tmp_path, second)
        await run.until(lambda: len(run.shown) == 1, MINUTE)
        assert [one["batch"] for one in run.shown] == [1]
        assert capsys.readouterr().err.count("secagg_reports_2") == 1


async def test_count_that_fell_and_a_bad_session_let_the_others_close(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a lying `serve`, between two looks at the batch, and by a row of an old session."""
    close_batch = batches.close

    def close_lowered(tx: Transaction, number: int, **settings: Any) -> bool:
        tx.run("UPDATE secagg_batches SET reports = 0 WHERE number = 0")
        return close_batch(tx, number, **settings)

    def delete_done(tx: Transaction, seconds: float) -> list[int]:
        raise AlteredError(f"a session of {seconds} s was altered")

    monkeypatch.setattr(batches, "close", close_lowered)
    monkeypatch.setattr(sessions, "delete_done", delete_done)
    databases.time = 60.0 * 1000
    with two_sessions(databases) as (first, second):
        first.report(0, 1, 2)
        second.report(0, 1, 2)
        databases.time += 60.0
        run = Run(first, tmp_path, second)
        await run.until(lambda: len(run.shown) == 1, MINUTE, keep=1e6)
        assert [one["batch"] for one in run.shown] == [1]


async def test_session_that_another_closer_forgot_is_no_error(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)
        run = Run(collected, tmp_path)

        def show(document: Document) -> None:
            run.shown.append(document)
            with collected.database.transaction() as tx:
                batches.advance(tx, 0, State.DONE, list=None, reservations=None)
                batches.drop_reports(tx, 0)
            databases.time += 1.0
            with collected.database.transaction() as tx:
                sessions.delete_done(tx, 0.0)

        monkeypatch.setattr(run.closing, "show", show)
        await run.closing.once(reopen=False)
        assert [one["batch"] for one in run.shown] == [0]


async def test_altered_open_batch_lets_the_newest_close(
    databases: Databases, tmp_path: Path
) -> None:
    with two_sessions(databases) as (first, second):
        second.report(0, 1, 2)
        with first.database.transaction() as tx:
            tx.run("UPDATE secagg_batches SET reports = -1 WHERE number = 0")
        run = Run(first, tmp_path, second)
        with pytest.raises(DatabaseError, match="Batch 0"):
            await run.closing.once(reopen=False)
        assert [one["batch"] for one in run.shown] == [1]


async def test_message_that_is_no_request_keeps_no_other_from_its_sum(
    databases: Databases, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        parties(session=bind(b"a", _NO_REQUEST)) as made,
        parties(session=b"next model") as other,
    ):
        first = Collected(databases.open(), made, message=_NO_REQUEST)
        second = Collected(first.database, other)
        for one in (first, second):
            one.report(0, 1, 2)
        run = Run(first, tmp_path, second)
        await run.until(lambda: len(run.shown) == 1, When(reports=3))
        await run.until(lambda: "no JSON" in capsys.readouterr().err, When(reports=3))
        with pytest.raises(RemoteProtocolError):
            await run.closing.once(0, reopen=False)
        assert first.state() == State.OPENED


async def test_drop_under_way_has_no_record_of_its_own(
    databases: Databases, tmp_path: Path
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)
        with collected.database.transaction() as tx:  # the first of the drop's two
            batches.advance(tx, 0, State.CLOSING)
        run = Run(collected, tmp_path)
        with pytest.raises(LocalProtocolError):
            await run.closing.once(reopen=False)
        close.drop(collected.database, 0)
        with pytest.raises(RemoteProtocolError):
            await run.closing.once(0, reopen=False)
        (record,) = records(tmp_path)
        assert "dropped" in record["why"]


async def test_stored_sum_is_written_again(databases: Databases, tmp_path: Path) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)
        await Run(collected, tmp_path).closing.once(0, reopen=True)
        before = records(tmp_path)
        (tmp_path / "sum-0.npy").unlink()
        await Run(collected, tmp_path).closing.once(0, reopen=False)
        assert records(tmp_path) == before
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "sum-0.npy").write_bytes(b"of another collection")
        with pytest.raises(ParameterError):
            await Run(collected, tmp_path / "other").closing.once(0, reopen=False)
        (tmp_path / "sum-0.npy").write_bytes(b"altered")
        await Run(collected, tmp_path).closing.once(0, reopen=False)
        assert records(tmp_path) == before
        with pytest.raises(ParameterError):
            await Run(collected, tmp_path).closing.once(7, reopen=False)
        (tmp_path / "record-0000.json").write_bytes(b"{}")
        with pytest.raises(JournalError):
            Run(collected, tmp_path)


async def test_process_that_died_before_the_record(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)

        def die(*_: object) -> None:
            raise OSError("killed")

        with monkeypatch.context() as patch:
            patch.setattr("secagg.cli.records.Chain.append", die)
            with pytest.raises(OSError, match="killed"):
                await Run(collected, tmp_path).closing.once(reopen=False)
        assert collected.state() == State.OPENED
        await Run(collected, tmp_path).closing.once(reopen=False)
        assert collected.state() == State.DONE
        assert len(records(tmp_path)) == 1


async def test_batches_close_when_they_have_their_reports(
    databases: Databases, tmp_path: Path
) -> None:
    with two_sessions(databases) as (first, second):
        run = Run(first, tmp_path, second)
        first.report(0, 1, 2)
        second.report(*range(4))
        await run.until(lambda: len(run.shown) == 1, When(reports=4))
        first.report(3)
        second.report(*range(4, 9))
        assert first.state() == State.OPEN
        # after a restart; the batches that are left have fewer reports
        run = Run(first, tmp_path, second)
        await run.until(lambda: len(run.shown) == 2, When(reports=4))
        found = {one["number"]: one["clients"] for one in records(tmp_path)}
        assert found == {1: list("0123"), 0: list("0123"), 2: list("45678")}
        for one in (2, 3):
            close.drop(first.database, one + 1)
        await run.until(lambda: not run.closing._sessions, MINUTE)


async def test_full_batch_closes_before_it_has_its_reports(
    databases: Databases, tmp_path: Path
) -> None:
    with parties(n_clients=4) as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(4))
        run = Run(collected, tmp_path)
        await run.until(lambda: bool(run.shown), When(reports=1000))


async def test_batches_close_at_the_ends_of_periods(
    databases: Databases, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    databases.time = 60.0 * 1000
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1)
        databases.time += 60.0
        run = Run(collected, tmp_path)
        await run.until(lambda: "batch 0 has 2 reports" in capsys.readouterr().err, MINUTE)
        collected.report(2, 3)
        databases.time += 59.0
        await Run(collected, tmp_path).until(passes(3), MINUTE)
        assert collected.state() == State.OPEN
        databases.time += 1.0
        await run.until(lambda: bool(run.shown), MINUTE)
        assert run.shown[0]["reports"] == 4
        assert collected.report(9) == [Verdict.STORED]


async def test_absence_of_an_open_batch_is_told_once(
    databases: Databases, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told once more after a session that began, and ended."""
    database = databases.open()
    with parties() as made, parties(session=b"next model") as other:
        run = Run(Collected(database, made), tmp_path)
        for batch in range(2):
            await run.until(passes(3), MINUTE)
            assert "no batch is open" not in capsys.readouterr().err
            close.drop(database, batch)
            await run.until(passes(3), MINUTE)
            assert capsys.readouterr().err.count("no batch is open") == 1
            if batch == 0:
                Collected(database, other)


async def test_batch_without_helpers_waits_alone(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum of another session is there while the helpers of the first are away."""
    monkeypatch.setattr("secagg.cli.closing._SOON", 0.001)
    with two_sessions(databases) as (first, second):
        for one in (first, second):
            one.report(0, 1, 2)
        run = Run(first, tmp_path, second)
        honest, first.made.helpers = first.made.helpers, []
        await run.until(lambda: len(run.shown) == 1, When(reports=3))
        assert run.shown[0]["batch"] == 1
        first.made.helpers = honest
        await run.until(lambda: len(run.shown) == 2, When(reports=3))
        assert run.book.status == 0


@pytest.mark.parametrize("function", ["batch_book.replace_file", "records.replace_file"])
async def test_full_disk_ends_no_resident_process(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setattr("secagg.cli.closing._SOON", 0.001)
    errors = iter([errno.ENOSPC, errno.EDQUOT])

    def write(path: Path, content: bytes) -> None:
        if found := next(errors, 0):
            raise OSError(found, "full")
        replace_file(path, content)

    monkeypatch.setattr(f"secagg.cli.{function}", write)
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)
        run = Run(collected, tmp_path)
        await run.until(lambda: len(run.shown) == 1, When(reports=3))
        assert len(records(tmp_path)) == 1


async def test_helpers_have_few_sums_at_once(databases: Databases, tmp_path: Path) -> None:
    """A batch whose slices another process leases takes no turn from the others."""
    with ExitStack() as stack:
        made = [stack.enter_context(parties(session=b"%d" % i)) for i in range(6)]
        found = [Collected(databases.open(), one) for one in made]
        for one in found:
            one.report(0, 1, 2)
            one.close()
        dead = found[0].worker(database=databases.open())
        for batch in (0, 1, 2, 3):
            assert dead._take(batch) is not None
        run = Run(found[0], tmp_path, *found[1:])
        await run.until(lambda: len(run.shown) == 2, When(reports=3))
        assert {one["batch"] for one in run.shown} == {4, 5}
        databases.time += dead.lease
        await run.until(lambda: len(run.shown) == 6, When(reports=3))
        assert 1 < run.most <= 3


def passes(count: int) -> Callable[[], bool]:
    """Return a condition that holds after some looks."""
    left = iter(range(count))
    return lambda: next(left, None) is None
