"""Marks of processes: a fork has another one, however it was forked and whatever its id is."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from forked import in_fork
from harness import make_params
from interruptions import interrupted
from secagg import Client, Vault, _secrets, simulate_round
from secagg.errors import JournalError, LocalProtocolError
from secagg.journal.lock import FileLock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's forks")

LIBC = ctypes.PyDLL(None)
"""Its fork knows nothing of Python's hooks; the GIL is held, so that the child has it."""


FORKS = pytest.mark.parametrize("fork", [os.fork, LIBC.fork], ids=["Python", "C"])


@FORKS
def test_fork_has_one_mark_of_its_own(fork: Callable[[], int]) -> None:
    mark = _secrets.process()

    def marks() -> set[tuple[int, int]]:
        return {_secrets.process(), _secrets.process()}

    def twice(again: Callable[[], int]) -> bool:
        own = _secrets.process()
        return in_fork(again, lambda: len({mark, own} | marks())) == "3"

    assert in_fork(fork, lambda: len({mark} | marks())) == "2"
    for again in (os.fork, LIBC.fork):
        assert in_fork(fork, partial(twice, again)) == "True"
    assert marks() == {mark}


def test_threads_of_a_fork_have_one_mark() -> None:
    def marks() -> int:
        together, found = threading.Barrier(8), list[object]()

        def draw() -> None:
            together.wait(60)
            found.append(_secrets.process())

        threads = [threading.Thread(target=draw) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        return len({*found, _secrets.process()})

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            assert in_fork(os.fork, marks) == "1"
    finally:
        sys.setswitchinterval(before)


def test_call_of_another_thread_at_any_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler of signals is such a call, too: both have the same mark."""
    found = list[tuple[int, int]]()
    before = signal.signal(signal.SIGUSR1, lambda *_: found.append(_secrets.process()))
    try:
        at, going_on = 0, True
        while going_on:
            monkeypatch.setattr(_secrets, "_page", bytearray(8))  # as in a fork
            monkeypatch.setattr(_secrets, "_latest", 5)
            found.clear()
            going_on = interrupted(lambda: found.append(_secrets.process()), at)
            assert set(found) == {(os.getpid(), 6)}
            at += 1
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert at > 20


@FORKS
def test_without_wiping_pages_ids_and_hooks_tell_forks_apart(
    fork: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_secrets, "_MADV_WIPEONFORK", -1)  # as in an older kernel
    monkeypatch.setattr(_secrets, "_page", _secrets._new_page())
    mark = _secrets.process()
    found = in_fork(fork, lambda: _secrets.process() == mark, same_id=fork is os.fork)
    assert found == "False"


@FORKS
def test_check01_client_and_journal_are_of_their_process(
    fork: Callable[[], int], tmp_path: Path
) -> None:
    client = Client(0, make_params(3))
    client.advertise_keys()
    (tmp_path / "journal").touch()
    lock, vault = FileLock(tmp_path / "journal"), Vault(tmp_path / "key")

    def write() -> None:
        with lock.use():
            pass

    assert in_fork(fork, lambda: client.suspend(vault)) == LocalProtocolError.__name__
    assert in_fork(fork, write) == JournalError.__name__
    write()
    assert client.suspend(vault)
    lock.close()


@FORKS
def test_fork_answers_with_clients_of_its_own(fork: Callable[[], int]) -> None:
    def run() -> bool:
        return simulate_round(np.ones((3, 4)), make_params(3)).sum.tolist() == [3, 3, 3, 3]

    assert in_fork(fork, run) == "True"


NAMESPACE = """
import ctypes, os, sys
from secagg import _secrets
libc = ctypes.PyDLL(None)
assert os.getpid() == 1
mark = _secrets.process()
assert libc.unshare(0x20000000) == 0
child = libc.fork()
if child == 0:
    os._exit(10 * (os.getpid() == mark[0]) + (_secrets.process() == mark))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_c_fork_with_its_parents_id_in_a_namespace() -> None:
    root = str(Path(__file__).parents[2])
    unshare = ["unshare", "-Urpf", "--mount-proc"]
    try:
        subprocess.run([*unshare, "true"], check=True, capture_output=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs namespaces of users and processes")
    done = subprocess.run(  # noqa: S603
        [*unshare, sys.executable, "-c", NAMESPACE],
        env=os.environ | {"PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "10\n"  # the id of its parent, and another mark
