"""A helper's journal: keys and lists in one file, for one process, safe from kill −9."""

from __future__ import annotations

import copy
import os
import pickle
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from helper_process import call
from oneshot_parties import Parties, rejects
from secagg import JournalError, LocalProtocolError, ParameterError, RemoteProtocolError
from secagg.journal import database
from secagg.journal.chain import Chain
from secagg.oneshot import HelperJournal, messages
from secagg.oneshot import journal as oneshot_journal
from secagg.oneshot.messages import Request

PARAMS = b"p" * 32
STATEMENTS = ["INSERT", "COMMIT", "PRAGMA wal_checkpoint", "answered"]


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint64)


@pytest.fixture
def path(ram_path: Path) -> Path:
    """A closed journal with two lists of one session and one of another."""
    path = ram_path / "helper"
    with HelperJournal.create(path, "x25519") as made:
        made.reserve(PARAMS, 0, b"D" * 32, ids(1, 2, 3))
        made.reserve(PARAMS, 1, b"E" * 32, ids(0, (1 << 64) - 1))
        made.reserve(b"q" * 32, 0, b"F" * 32, ids(1, 7))
    return path


@pytest.mark.parametrize("suite", ["hybrid", "x25519"])
def test_keys_come_back_with_the_journal(ram_path: Path, suite: str) -> None:
    with HelperJournal.create(ram_path / "helper", suite) as made:  # type: ignore[arg-type]
        public, signature = made.public, made.identity.sign(b"content")
    with HelperJournal.open(ram_path / "helper") as again:
        assert again.public == public
        assert again.identity.sign(b"content") == signature
    with pytest.raises(JournalError):
        HelperJournal.open(ram_path / "another")


def test_lists_are_spent_also_after_it_was_reopened(path: Path) -> None:
    last = (1 << 64) - 1
    taken = [
        ("batch", PARAMS, 0, b"X", ids(4, 5), None),
        ("spent", PARAMS, 9, b"X", ids(2, 5), 2),
        ("spent", PARAMS, 9, b"X", ids(5, last), last),
        ("spent", b"q" * 32, 9, b"X", ids(7), 7),
        ("spent", PARAMS, 9, b"D", ids(1, 2, 3), 1),  # the same D under another number
    ]
    for _ in range(2):
        with HelperJournal.open(path) as opened:
            opened.reserve(PARAMS, 0, b"D" * 32, ids(1, 2, 3))  # the same again
            for check, params, batch, letter, numbers, sender in taken:
                arguments = params, batch, letter * 32, numbers
                assert rejects(check, lambda a=arguments: opened.reserve(*a)).sender == sender
    with HelperJournal.open(path) as opened:
        opened.reserve(b"r" * 32, 0, b"D" * 32, ids(1, 2, 3))  # another session


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM lists WHERE number = 2",
        "UPDATE lists SET params = digest WHERE number = 1",
        "UPDATE head SET box = x'00'",
        "UPDATE head SET identity = 'text'",
        "UPDATE head SET suite = 'hybrid'",
        "UPDATE head SET suite = 'none'",
        "DELETE FROM head",
    ],
)
def test_altered_file_is_rejected(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(JournalError):
        HelperJournal.open(path)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: HelperJournal.create(7),
        lambda path: HelperJournal.open(None),
        lambda path: HelperJournal.create(path / "new", "x448"),
        lambda path: HelperJournal.create(path / "new", entropy=lambda size: b"short"),
    ],
)
def test_arguments(ram_path: Path, make: Callable[[Path], object]) -> None:
    with pytest.raises(ParameterError):
        make(ram_path)
    assert list(ram_path.iterdir()) == []


def test_failed_write_reserves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = HelperJournal.open(path)

    def full(_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(database, "checkpoint", full)
        with pytest.raises(JournalError):
            opened.reserve(PARAMS, 5, b"X" * 32, ids(20, 21))
    with pytest.raises(JournalError):
        opened.reserve(PARAMS, 6, b"Y" * 32, ids(30, 31))
    with HelperJournal.open(path) as again:
        again.reserve(PARAMS, 5, b"X" * 32, ids(20, 21))


def interrupted(path: Path) -> bytes:
    """Bring a journal to the state of a kill before its log is emptied; return the log.

    The log has list D of the clients 20 and 21, which was not acknowledged.
    """
    before, log = path.read_bytes(), Path(f"{path}-wal")
    logs = []
    with HelperJournal.open(path) as opened:
        with opened._lock.use() as connection:
            connection.set_trace_callback(
                lambda statement: (
                    logs.append(log.read_bytes()) if "wal_checkpoint" in statement else None
                )
            )
        opened.reserve(PARAMS, 5, b"D" * 32, ids(20, 21))
    path.write_bytes(before)
    log.write_bytes(logs[0])
    return logs[0]


@pytest.mark.parametrize("moved_into_the_file", ["nothing", "all"])
def test_log_that_a_kill_left_is_taken(path: Path, moved_into_the_file: str) -> None:
    left = interrupted(path)
    if moved_into_the_file == "all":
        HelperJournal.open(path).close()
        Path(f"{path}-wal").write_bytes(left)
    with HelperJournal.open(path) as opened:
        rejects("spent", lambda: opened.reserve(PARAMS, 6, b"X" * 32, ids(21, 22)))


@pytest.mark.parametrize("alias", [os.rename, os.link])
@pytest.mark.parametrize("through_a_link", [False, True])
def test_log_that_would_take_lists_back_is_rejected(
    path: Path, alias: Callable[[Path, Path], None], through_a_link: bool
) -> None:
    """The file was used under another name, without the log that a kill left at the first."""
    left, other = interrupted(path), path.with_name("other")
    alias(path, other)
    with HelperJournal.open(other) as opened:
        opened.reserve(PARAMS, 6, b"X" * 32, ids(21, 22))
    other.replace(path)
    assert Path(f"{path}-wal").read_bytes() == left
    name = path.with_name("link") if through_a_link else path
    if through_a_link:
        name.symlink_to(path)
    for _ in range(2):
        with pytest.raises(JournalError):
            HelperJournal.open(name)
    Path(f"{path}-wal").unlink()
    with HelperJournal.open(name) as opened:  # its lists are still there
        rejects("spent", lambda: opened.reserve(PARAMS, 5, b"D" * 32, ids(20, 21)))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (Chain, "end"),
        (oneshot_journal, "_lists"),
        (database, "transaction"),
        (database, "checkpoint"),
    ],
    ids=["head", "lists", "transaction", "checkpoint"],
)
def test_two_lists_are_not_reserved_by_one_within_the_other(
    path: Path, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    """A signal's handler runs in the thread that has the lock, and may reserve, too."""
    function, reserved = getattr(module, name), []
    opened = HelperJournal.open(path)

    def attempt(batch: int, digest: bytes, numbers: np.ndarray) -> None:
        with suppress(JournalError, RemoteProtocolError):
            opened.reserve(PARAMS, batch, digest, numbers)
            reserved.append(batch)

    def handled(*arguments: object) -> object:
        monkeypatch.setattr(module, name, function)
        attempt(6, b"Y" * 32, ids(21, 22))
        return function(*arguments)

    monkeypatch.setattr(module, name, handled)
    attempt(5, b"X" * 32, ids(20, 21))
    opened.close()
    assert len(reserved) == 1


def test_private_keys_are_in_no_repr_and_do_not_pickle(ram_path: Path) -> None:
    drawn = [bytes(range(96)), bytes(range(100, 132))]
    source = iter(drawn)
    with HelperJournal.create(
        ram_path / "helper", "hybrid", entropy=lambda _size: next(source)
    ) as made:
        shown = repr((made, made.box_key, made.identity, vars(made)))
        assert not any(secret.hex()[:16] in shown for secret in drawn)
        for secret in (made, made.box_key):
            with pytest.raises(LocalProtocolError):
                pickle.dumps(secret)
            assert copy.deepcopy(secret) is secret


@pytest.fixture
def made(ram_path: Path) -> Parties:
    """Helpers, closed, with the files of `helper_process` for the first one."""
    made = Parties(ram_path, 2, 2)
    accumulator = made.accumulator(range(5))
    (ram_path / "params").write_bytes(made.params.to_bytes())
    (ram_path / "chunk").write_bytes(next(iter(accumulator.boxes(1))))
    made.close()
    return made


def request(made: Parties, numbers: list[int], batch: int) -> bytes:
    return messages.write_request(Request(batch, ids(*numbers), {}), made.params)


@pytest.mark.large
@pytest.mark.parametrize("statement", STATEMENTS)
def test_killed_at_every_point_of_a_reservation(
    made: Parties, ram_path: Path, statement: str
) -> None:
    """A list that was answered is spent. One that was not can be opened, and is spent then."""
    journal = made.journals[0].path
    first, second = request(made, [0, 1, 2, 3], 0), request(made, [1, 2, 3, 4], 1)
    assert call(ram_path, journal, first, die_at=statement) is None
    answer = call(ram_path, journal, first)
    assert answer is not None
    assert len(answer) == 68 + made.params.layout.packed
    assert call(ram_path, journal, second) == b"rejected spent"
    assert call(ram_path, journal, first) == answer  # the same answer again


@pytest.mark.parametrize(
    "statement", [pytest.param("PRAGMA wal_checkpoint", marks=pytest.mark.large), "answered"]
)
def test_committed_list_is_spent(made: Parties, ram_path: Path, statement: str) -> None:
    """Nothing proves that no answer was seen, so no other list is opened."""
    journal = made.journals[0].path
    assert call(ram_path, journal, request(made, [0, 1, 2, 3], 0), die_at=statement) is None
    assert call(ram_path, journal, request(made, [1, 2, 3, 4], 1)) == b"rejected spent"
    log = Path(f"{journal}-wal")
    if statement == "answered" and log.exists():
        log.unlink()  # the file itself has the list
        assert call(ram_path, journal, request(made, [1, 2, 3, 4], 1)) == b"rejected spent"
