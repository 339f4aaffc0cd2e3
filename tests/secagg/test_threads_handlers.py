"""Threads and signals: a handler computes or forks at any instruction of the main thread."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

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
