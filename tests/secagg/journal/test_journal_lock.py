"""The lock of a journal: one process has it, whatever its children and its operator do."""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import resource
import shutil
import signal
import sqlite3
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from test_journal import ENTRIES, PARAMS, path, read

from harness import Cohort, make_params
from secagg import Integers, Journal, JournalError, LocalProtocolError, Server, TooFewSurvivors
from secagg.journal import database
from secagg.journal.lock import FileLock

__all__ = ["path"]


def in_a_child(work: Callable[[], object]) -> None:
    """Run a function in a forked process, and wait for its end."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def fails(*calls: Callable[[], object]) -> None:
    for call in calls:
        with pytest.raises(JournalError):
            call()


# ---- the lock


def test_check28_reading_keeps_the_lock(path: Path) -> None:
    """A process that closes any descriptor of a file loses all its POSIX locks on it."""
    with Journal.open(path, PARAMS) as opened:
        path.read_bytes()
        for _ in range(2):  # the first rejection must not unlock the file
            fails(lambda: Journal.open(path, PARAMS))
        in_a_child(lambda: fails(lambda: Journal.open(path, PARAMS)))
        opened.append(6, ENTRIES[1])
    assert read(path) == [*ENTRIES, ENTRIES[1]]


def test_failed_lock_leaves_no_descriptor_open(path: Path) -> None:
    with Journal.open(path, PARAMS):
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(BlockingIOError) as caught:  # its frames refer to the lock object
            FileLock(path)
        assert len(os.listdir("/proc/self/fd")) == before
    assert caught.tb is not None


def test_rejected_file_is_unlocked(path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        fails(lambda: Journal.open(path, make_params(4)))
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert read(path) == ENTRIES


# ---- forked


def test_check28_child_cannot_use_its_parents_journal(path: Path) -> None:
    with Journal.open(path, PARAMS) as opened:
        in_a_child(
            lambda: fails(
                lambda: opened.append(6, ENTRIES[1]),
                lambda: [*opened.entries()],
                lambda: Journal.open(path, PARAMS),
            )
        )
        opened.append(6, ENTRIES[1])
    assert read(path) == [*ENTRIES, ENTRIES[1]]


@pytest.mark.parametrize("how", ["close", "forget"])
def test_check28_child_closing_its_copy_keeps_the_log(path: Path, how: str) -> None:
    log = Path(f"{path}-wal")
    kept = [Journal.open(path, PARAMS)]
    kept[0].append(6, ENTRIES[1])
    inode = log.stat().st_ino

    def child() -> None:
        if how == "close":
            kept[0].close()
        kept.clear()
        gc.collect()

    in_a_child(child)
    assert log.stat().st_ino == inode
    fails(lambda: Journal.open(path, PARAMS))
    kept[0].append(7, ENTRIES[2])
    kept[0].close()
    assert read(path) == [*ENTRIES, *ENTRIES[1:3]]


def test_closed_journal_is_free_despite_a_forked_child(path: Path) -> None:
    """The child has the parent's descriptors, like one about to run another program."""
    opened = Journal.open(path, PARAMS)
    inherited = os.dup(opened._lock._descriptor)
    opened.close()
    assert read(path) == ENTRIES
    os.close(inherited)


def test_check28_child_outliving_its_parent_keeps_the_lock(path: Path) -> None:
    """The parent dies without a close, as by kill -9; the file is free once its child ends."""
    heard, say = os.pipe()
    wait, end = os.pipe()

    def parent() -> None:
        with Journal.open(path, PARAMS):
            if os.fork() == 0:
                os.close(end)
                os.write(say, b"!")  # the fork is complete
                os.read(wait, 1)  # until the test is over
                os._exit(0)
            os.read(heard, 1)
            os._exit(0)

    in_a_child(parent)
    fails(lambda: Journal.open(path, PARAMS))
    for descriptor in (heard, say, wait, end):
        os.close(descriptor)
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with suppress(JournalError):
            assert read(path) == ENTRIES
            return
    pytest.fail("the child has ended and the journal is still locked")


# ---- the file goes away


@pytest.mark.parametrize("also", ["gone", "moved", "replaced"])
def test_check28_lost_file_acknowledges_nothing(path: Path, also: str) -> None:
    """Nothing is acknowledged into a file that the path no longer names."""
    opened = Journal.open(path, PARAMS)
    kept = path.with_name("kept")
    shutil.copy(path, kept)
    if also == "moved":
        path.rename(path.with_name("elsewhere"))
    else:
        path.unlink()
    if also == "replaced":
        shutil.copy(kept, path)
    with opened:
        fails(lambda: opened.append(6, ENTRIES[1]))
        fails(lambda: [*opened.entries()])
    assert read(kept) == ENTRIES
    if also == "moved":
        assert read(path.with_name("elsewhere")) == ENTRIES


# ---- an older copy


def test_older_copy_put_back_ends_the_round_safely(ram_path: Path) -> None:
    """The two sets of survivors get t answers between them at most once: 2t > n."""
    params = make_params(7, encoding=Integers(max=9))
    where, copy, victim = ram_path / "round", ram_path / "copy", 3
    cohort = Cohort(params)
    made = Journal.create(where, params)
    cohort.server = Server(params, journal=made)
    cohort.advance(2)
    sent = cohort.step()
    late = sent.pop(victim)
    for u, data in sent.items():
        cohort.server.receive(u, data)
    shutil.copy(where, copy)
    cohort.inbox = cohort.server.close_round()
    answers = cohort.step(without=(5, 6))
    assert len(answers) == params.threshold
    cohort.deliver(answers)  # s of the victim, which is right: its input is not in the sum
    made.close()

    shutil.copy(copy, where)
    with Journal.open(where, params) as opened:
        cohort.server = Server.resume(opened)
        cohort.server.receive(victim, late)
        again = cohort.server.close_round()
        for u in answers:
            with pytest.raises(LocalProtocolError):
                cohort.clients[u].unmask(again[u])
        for u in set(again) - set(answers):
            cohort.server.receive(u, cohort.answer(u, again[u]))
        with pytest.raises(TooFewSurvivors):
            cohort.server.close_round()


def test_check28_closing_waits_for_another_threads_write(ram_path: Path) -> None:
    """Closing a connection that another thread uses crashed the interpreter."""
    params = make_params(5)
    for attempt in range(6):
        path = ram_path / str(attempt)
        journal = Journal.create(path, params)
        acknowledged: list[int] = []
        begun = threading.Event()

        def write(journal: Journal = journal, done: list[int] = acknowledged) -> None:
            try:
                while True:
                    journal.append(len(done), (1, bytes(100)))
                    done.append(1)
                    begun.set()  # noqa: B023
            except JournalError:
                return

        writer = threading.Thread(target=write)
        writer.start()
        assert begun.wait(30)
        journal.close()
        writer.join(30)
        assert not writer.is_alive()
        with Journal.open(path, params) as again:
            assert sum(1 for _ in again.entries()) == len(acknowledged)


# ---- shortage, interruption, threads


def test_check28_server_without_descriptors_continues(ram_path: Path) -> None:
    """Other connections may use up all descriptors; an open journal needs no further one."""
    cohort = Cohort(PARAMS)
    made = Journal.create(ram_path / "round", PARAMS)
    cohort.server = Server(PARAMS, journal=made)
    importlib.import_module("numpy.ma")  # numpy imports it at its first use
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with pytest.raises(OSError, match=r"\[Errno 24\]"):
            os.open(ram_path, os.O_RDONLY)
        cohort.advance(4)
        entries = [*made.entries()]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert cohort.server.result().integers.tolist() == cohort.expected(range(5))
    made.close()
    assert read(ram_path / "round") == entries


@pytest.mark.parametrize("how", ["close", "forget", "error", "interrupt"])
def test_check28_lock_outlasts_the_connection(
    path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Without it another process would open the file while its log is being emptied."""
    order: list[str] = []
    connect, flock = sqlite3.connect, fcntl.flock

    class Connection(sqlite3.Connection):
        def close(self) -> None:
            super().close()
            order.append("connection")

    def unlock(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        if operation == fcntl.LOCK_UN:
            order.append("lock")

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError if how == "error" else KeyboardInterrupt

    monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=Connection))
    monkeypatch.setattr(fcntl, "flock", unlock)
    kept = [Journal.open(path, PARAMS)]
    order.clear()
    if how == "close":
        kept[0].close()
    elif how == "forget":
        kept.clear()
        gc.collect()
    else:
        monkeypatch.setattr(database, "checkpoint", fail)
        with pytest.raises((JournalError, KeyboardInterrupt)):
            kept[0].append(6, ENTRIES[1])
    assert order == ["connection", "lock"]


def test_check28_interrupted_close_keeps_the_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    interrupts = [KeyboardInterrupt]

    class Connection(sqlite3.Connection):
        def close(self) -> None:
            if interrupts:
                raise interrupts.pop()
            super().close()

    monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=Connection))
    opened = Journal.open(path, PARAMS)
    with pytest.raises(KeyboardInterrupt):
        opened.close()
    fails(lambda: Journal.open(path, PARAMS))
    opened.close()
    assert read(path) == ENTRIES


def test_check28_entry_appended_during_a_read_is_read(path: Path) -> None:
    with Journal.open(path, PARAMS) as opened:
        reading = opened.entries()
        first = next(reading)
        opened.append(6, ENTRIES[1])
        assert [first, *reading] == [*ENTRIES, ENTRIES[1]]


def test_check28_child_forked_during_a_write_does_not_hang(path: Path) -> None:
    """The writing thread does not exist in the child, which could wait for it forever."""
    with Journal.open(path, PARAMS) as opened:
        inside, leave = threading.Event(), threading.Event()

        def hold() -> None:
            with opened._lock.use():
                inside.set()
                leave.wait(30)

        def child() -> None:
            signal.alarm(20)
            fails(lambda: opened.append(6, ENTRIES[1]))
            opened.close()

        holder = threading.Thread(target=hold)
        holder.start()
        assert inside.wait(30)
        in_a_child(child)
        leave.set()
        holder.join(30)
    assert read(path) == ENTRIES
