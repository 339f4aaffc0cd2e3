"""An impatient Ctrl-C: real processes that get SIGINT again and again until they have ended."""

import os
import re
import signal
import threading
from contextlib import suppress
from multiprocessing import active_children
from subprocess import TimeoutExpired
from time import monotonic
from unittest.mock import Mock

import pytest
from test_reproduce import started

import reproduce_fakes
from benches.papers import table as listed
from benches.papers.runner import reproduce

AT_MOST = 20  # seconds; it takes one or two
BEGUN = "0 earlier runs kept, 3 to run"


def hammer(process):
    """Send SIGINT to the whole group, as a terminal does, until the command has ended."""
    end = monotonic() + AT_MOST
    while process.returncode is None and monotonic() < end:
        os.killpg(process.pid, signal.SIGINT)
        with suppress(TimeoutExpired):
            process.wait(timeout=0.01)
    return process.communicate(timeout=AT_MOST)[1]


def until_the_runs_begin(process):
    assert process.stderr.readline() == f"{BEGUN}\n"


def until_a_run_is_kept(process):
    for line in process.stderr:
        if "endless, seed 0: RMSE 1" in line:
            return


@pytest.mark.large
@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (until_the_runs_begin, "interrupted: 0 runs are kept in {out}, 3 are missing"),
        (until_a_run_is_kept, "interrupted: 1 runs are kept in {out}, 2 are missing"),
    ],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_repeated_ctrl_c_ends_with_one_line(tmp_path, monkeypatch, wait, said, jobs):
    """It neither hangs nor shows where it was, and no process of the pool is left.

    That the pipe is closed at the end shows the latter.
    """
    monkeypatch.setenv("FAKE_TRACE", str(tmp_path / "trace"))
    monkeypatch.setenv("FAKE_ENDLESS", "0" if wait is until_the_runs_begin else "1")
    out = tmp_path / "out"
    with started(out, jobs=jobs) as process:
        wait(process)
        stderr = hammer(process)
    assert process.returncode == 130, stderr
    *printed, line = stderr.splitlines()
    assert {one for one in printed if not one.startswith("endless: ")} <= {BEGUN}, stderr
    assert re.match(said.format(out=out), line), line


@pytest.mark.large
def test_no_process_and_no_thread_is_left_after_an_interrupt(tmp_path, monkeypatch):
    """At its exit Python would race with a thread of the pool, and may show a traceback."""
    monkeypatch.setattr(listed, "MODULES", reproduce_fakes.MODULES)
    monkeypatch.setenv("FAKE_TRACE", str(tmp_path / "trace"))
    watch = Mock(finished=Mock(side_effect=KeyboardInterrupt))
    before = {*threading.enumerate()}
    with pytest.raises(KeyboardInterrupt) as caught:  # it keeps the frames and what is in them
        reproduce(["endless"], tmp_path, watch, jobs=2)
    assert caught
    assert active_children() == []
    assert {*threading.enumerate()} == before


# Python runs this when it starts; only worker processes are struck.
STRUCK = """
import os, signal, sys
if "spawn_main" in " ".join(sys.orig_argv):
    os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.large
def test_worker_processes_ignore_ctrl_c_from_the_start(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_TRACE", str(tmp_path / "trace"))
    (tmp_path / "sitecustomize.py").write_text(STRUCK)
    with started(tmp_path / "out", tmp_path, jobs=2) as process:
        _, stderr = process.communicate(timeout=AT_MOST)
    assert process.returncode == 0, stderr
    assert "Traceback" not in stderr
