"""Reports in a database: each client once, nothing after the close, and one schema."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from collect_parts import Collected, Databases
from oneshot_parties import parties
from secagg import DatabaseError, ParameterError, TooFewSurvivors
from secagg.collect import batches, open_database, reports, sessions
from secagg.collect.reports import Report, Verdict
from secagg.collect.schema import MIGRATIONS, migrate

STORED, OTHER, FULL, CLOSED, UNKNOWN = Verdict
IDS = (0, 7, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def stored(collected: Collected) -> dict[int, bytes]:
    """Return the reports in all slices of the batch, which are read two by two."""
    found = reports.chunks(collected.database, collected.batch, reports.EVERYWHERE, 2)
    return {u: content for chunk in found for u, content in chunk}


def test_same_bytes_count_once_and_others_are_rejected(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        assert collected.report(1, 2, 1) == [STORED] * 3
        assert collected.report(2, 3, database=databases.open()) == [STORED] * 2
        other = made.report(2, seed=1)
        assert collected.send([(2, other), (4, other), (4, b"x")]) == [OTHER, STORED, OTHER]
        assert stored(collected) == collected.sent | {4: other}
        with collected.database.transaction() as tx:
            assert batches.get(tx, collected.batch).reports == 4


def test_ids_of_all_sizes_come_back(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        sent = {u: bytes([at]) for at, u in enumerate(IDS)}
        assert collected.send(sent.items()) == [STORED] * 5
        assert stored(collected) == sent


def test_batch_takes_as_many_as_fit(databases: Databases) -> None:
    with parties(n_clients=5) as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1)
        verdicts = collected.report(1, 2, 3, 4, 5, 6)
        assert verdicts == [STORED] * 4 + [FULL] * 2
        assert stored(collected).keys() == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("reopen", [False, True])
def test_closed_batch_takes_no_report(databases: Databases, reopen: bool) -> None:
    """The next batch of the session takes it, but nobody reports in two batches."""
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2)
        assert collected.close(reopen=reopen)
        assert not collected.close()
        later = STORED if reopen else CLOSED
        assert collected.report(0, 3, 4) == [STORED, later, later]
        assert collected.send([(1, b"x")]) == [OTHER]
        assert stored(collected).keys() == {0, 1, 2}


@pytest.mark.parametrize("altered", ["digest", "number"])
def test_session_of_another_database_takes_no_report(
    databases: Databases, altered: str
) -> None:
    """An older copy of the database gives the numbers again, to other sessions."""
    with parties() as made:
        collected = Collected(databases.open(), made)
        assert collected.report(0) == [STORED]
        value = {"digest": b"of another session", "number": 7}[altered]
        with collected.database.transaction() as tx:
            tx.run(f"UPDATE secagg_sessions SET {altered} = ?", value)  # noqa: S608
        assert collected.report(0, 1) == [UNKNOWN] * 2
        with collected.database.transaction() as tx:
            assert tx.number("SELECT count(*) FROM secagg_clients") == 1
            assert tx.number("SELECT reports FROM secagg_batches") == 1


def test_close_waits_for_enough_reports(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1)
        with pytest.raises(TooFewSurvivors):
            collected.close()
        assert collected.report(2) == [STORED]
        assert collected.close()


def test_session_has_its_endorsements(databases: Databases) -> None:
    with parties() as made:
        database = Collected(databases.open(), made).database
        other = made.make_params(session=b"session 2")
        with database.transaction() as tx:
            number = batches.begin(tx, other, [bytes(64)] * 2).number
            assert sessions.get(tx, number).endorsements == [bytes(64)] * 2
            with pytest.raises(ParameterError):
                batches.begin(tx, made.make_params(session=b"session 3"), [b"x"])


def test_many_processes_begin_once(databases: Databases) -> None:
    with parties() as made, ThreadPoolExecutor(6) as pool:
        begun = list(pool.map(lambda _: Collected(databases.open(), made), range(6)))
    assert {(one.session.number, one.batch) for one in begun} == {(0, 0)}
    with begun[0].database.transaction() as tx:
        assert tx.number("SELECT count(*) FROM secagg_schema") == 1
        assert tx.number("SELECT version FROM secagg_schema") == len(MIGRATIONS)
    assert len(begun[0].stored()) == 1


def test_newer_tables_are_refused(databases: Databases) -> None:
    database = databases.open()
    with database.transaction() as tx:
        tx.run("UPDATE secagg_schema SET version = ?", len(MIGRATIONS) + 1)
    with pytest.raises(DatabaseError):
        migrate(databases.connect())


def test_error_in_a_transaction_changes_nothing(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)

        def fail() -> None:
            with collected.database.transaction() as tx:
                tx.run("INSERT INTO secagg_clients VALUES (0, 5, 0, ?)", b"x")
                tx.run("no statement")

        with pytest.raises(DatabaseError):
            fail()
        assert collected.report(5) == [STORED]


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_stored_in_a_file_that_was_deleted_or_replaced(
    tmp_path: Path, replaced: bool
) -> None:
    path, copy = tmp_path / "reports", tmp_path / "copy"
    databases = Databases(str(path))
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0)
        with closing(sqlite3.connect(path)) as one, closing(sqlite3.connect(copy)) as other:
            one.backup(other)
        before = copy.read_bytes()
        if replaced:
            copy.replace(path)
        else:
            path.unlink()
        for _ in range(2):
            with pytest.raises(DatabaseError):
                collected.report(1)
        assert path.exists() == replaced
        assert not replaced or path.read_bytes() == before
    databases.close()


@pytest.mark.parametrize("ends", [("-wal",), ("-shm",), ("-wal", "-shm")])
def test_log_that_was_deleted_takes_no_report(tmp_path: Path, ends: tuple[str, ...]) -> None:
    """Also after other errors; what was acknowledged is there once all processes have ended."""
    databases = Databases(str(tmp_path / "reports"))
    with parties() as made:
        first = Collected(databases.open(), made)
        second = Collected(databases.open(), made)
        first.report(0)
        second.report(1)

        def fail() -> None:
            with first.database.transaction():
                for end in ends:
                    (tmp_path / f"reports{end}").unlink()
                raise ValueError("another error")

        with pytest.raises(ValueError, match="another"):
            fail()
        for one in (first, second, first):
            with pytest.raises(DatabaseError):
                one.report(2)
        databases.close()
        again = Databases(databases.where)
        with again.open().transaction() as tx:
            assert tx.number("SELECT count(*) FROM secagg_reports_0") == 2
        again.close()


def test_file_that_was_moved_away_and_back_takes_no_report(tmp_path: Path) -> None:
    """Another process may have made a log beside another file in between."""
    path, aside = tmp_path / "reports", tmp_path / "aside"
    databases = Databases(str(path))
    with parties() as made:
        collected = Collected(databases.open(), made)
        path.rename(aside)
        with pytest.raises(DatabaseError):
            collected.report(0)
        aside.rename(path)
        with pytest.raises(DatabaseError):
            collected.report(0)
    databases.close()


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("empty", [False, True])
def test_log_without_its_file_is_kept(tmp_path: Path, new: bool, empty: bool) -> None:
    """SQLite deletes a log that it finds beside an empty file."""
    path, log = tmp_path / "reports", tmp_path / "reports-wal"
    databases = Databases(str(path))
    with parties() as made:
        Collected(databases.open(), made).report(0)
        commits = log.read_bytes()
        path.unlink()
        if empty:
            path.touch()
        with pytest.raises(DatabaseError):
            open_database(str(path), new=new)
        assert commits
        assert log.read_bytes() == commits
        assert path.exists() == empty
    databases.close()


@pytest.mark.parametrize("link", [False, True])
def test_only_a_new_collection_makes_a_file(tmp_path: Path, link: bool) -> None:
    path, file = tmp_path / "reports", tmp_path / "file"
    if link:
        path.symlink_to(file)
    with pytest.raises(DatabaseError):
        open_database(str(path))
    assert not path.exists()
    open_database(str(path), new=True).close()
    assert (file if link else path).stat().st_mode & 0o777 == 0o600
    open_database(str(path)).close()


def test_newest_session_is_one_that_there_is(databases: Databases) -> None:
    with parties() as made, parties(session=b"next model") as other:
        first = Collected(databases.open(), made)
        Collected(first.database, other)
        with first.database.transaction() as tx:
            assert batches.newest(tx) == other.params.digest
            tx.run("UPDATE secagg_batches SET session = 99 WHERE number = 1")
            assert batches.newest(tx) == made.params.digest


def test_altered_row_is_an_error(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        with collected.database.transaction() as tx:
            tx.run("UPDATE secagg_batches SET state = 'shut'")
        with pytest.raises(DatabaseError):
            collected.state()


def test_digest_is_of_all_bytes() -> None:
    assert Report.of(1, b"a").digest != Report.of(1, b"b").digest
