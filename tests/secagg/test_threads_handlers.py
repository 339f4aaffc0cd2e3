"""Threads and signals: a handler computes or forks at any instruction of the main thread."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import secagg
from secagg import _threads

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

_BEFORE_FORK: list[Callable[[], None]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lambda: [call() for call in _BEFORE_FORK])

SCRIPT = """
import os, signal, sys
import secagg
from interruptions import interrupted
from secagg import _threads

signal.alarm(120)  # a hang ends here, with the end of the process
mode, step, child = sys.argv[1], int(sys.argv[2]), False

def compute():
    done = bytearray(64)
    def work(rows):
        for i in range(rows.start, rows.stop):
            done[i] += 1
    _threads.in_slices(work, 64)
    assert done == bytearray([1] * 64)  # each element once

def handler(*_):
    global child
    if mode == "compute":
        compute()
        return
    child_id = os.fork()
    if child_id == 0:
        signal.alarm(20)  # a child does not inherit it
        if mode == "fork":
            compute()
            os._exit(0)
        child = True  # goes on with the call that was interrupted
    else:
        assert os.waitstatus_to_exitcode(os.waitpid(child_id, 0)[1]) == 0

def call():
    if at % 2:
        secagg.set_threads(3)  # threads begin anew
    compute()

signal.signal(signal.SIGUSR1, handler)
secagg.set_threads(3)
at = 0
while interrupted(call, at):
    if child:
        compute()
        os._exit(0)
    at += step
print(at)
"""


@pytest.mark.parametrize(("mode", "step"), [("compute", 1), ("fork", 7), ("fork and go on", 7)])
def test_handler_at_any_instruction_of_the_main_thread(
    mode: str, step: int, tmp_path: Path
) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", SCRIPT, mode, str(step)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{root / 'tests' / 'support'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


def test_fork_waits_for_the_parts_that_other_threads_compute() -> None:
    """So the child, which goes on with the batch, has them."""
    caller, begun, forking = threading.get_ident(), threading.Event(), threading.Event()
    done, children = bytearray(64), list[int]()

    def work(rows: slice) -> None:
        if threading.get_ident() != caller:
            begun.set()
            forking.wait(60)
        elif not children:
            begun.wait(60)
            _BEFORE_FORK.append(forking.set)
            children.append(os.fork())
            if children[0] == 0:
                signal.alarm(60)  # instead of waiting for ever
        for i in range(rows.start, rows.stop):
            done[i] += 1

    secagg.set_threads(2)
    try:
        _threads.in_slices(work, 64)
    finally:
        _BEFORE_FORK.clear()
        secagg.set_threads(None)
        if children[0] == 0:
            os._exit(0 if done == bytearray([1] * 64) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    assert done == bytearray([1] * 64)
