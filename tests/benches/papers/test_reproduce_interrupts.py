"""An impatient Ctrl-C: real processes that get SIGINT again and again until they have ended."""

import multiprocessing
import os
import signal
from contextlib import suppress
from subprocess import TimeoutExpired
from time import monotonic

import pytest
from test_reproduce import started

from benches.papers.pool import Job, run_jobs

AT_MOST = 20  # seconds; it takes one or two
BEGUN = "0 runs kept from before, 3 to make"


def hammer(process):
    """Send SIGINT to the whole group, as a terminal does, until the command has ended."""
    end = monotonic() + AT_MOST
    while process.returncode is None and monotonic() < end:
        os.killpg(process.pid, signal.SIGINT)
        with suppress(TimeoutExpired):
            process.wait(timeout=0.01)
    return process.communicate(timeout=AT_MOST)[1]


def until_the_folder_is_there(process, out):
    while not out.exists():
        assert process.poll() is None


def until_the_pool_starts(process, out):
    assert process.stderr.readline() == f"{BEGUN}\n"


def until_a_run_is_kept(process, out):
    for line in process.stderr:
        if "endless, seed 0: RMSE 1" in line:
            return


@pytest.mark.large
@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (until_the_folder_is_there, "fedmf: interrupted before the first run; nothing is lost"),
        (until_the_pool_starts, "interrupted: 0 runs are kept in {out}, 3 are not made yet"),
        (until_a_run_is_kept, "interrupted: 1 runs are kept in {out}, 2 are not made yet"),
    ],
)
def test_ctrl_c_again_and_again_ends_it_with_one_line(tmp_path, monkeypatch, wait, said):
    """It neither hangs nor shows where it was, and no process of the pool is left.

    That the pipe is closed at the end shows the latter.
    """
    monkeypatch.setenv("FAKE_TRACE", str(tmp_path / "trace"))
    monkeypatch.setenv("FAKE_ENDLESS", "1")
    out = tmp_path / "out"
    with started(out) as process:
        wait(process, out)
        stderr = hammer(process)
    assert process.returncode == 130, stderr
    *printed, line = stderr.splitlines()
    assert set(printed) <= {BEGUN}, stderr  # rich prints again what it was struck in
    assert line.startswith(said.format(out=out))


# Python runs this when it starts; only what the pool starts is struck.
STRUCK = """
import os, signal, sys
if "--multiprocessing-fork" in sys.orig_argv:
    os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.large
def test_processes_of_the_pool_are_deaf_from_the_first(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_TRACE", str(tmp_path / "trace"))
    (tmp_path / "sitecustomize.py").write_text(STRUCK)
    with started(tmp_path / "out", tmp_path) as process:
        _, stderr = process.communicate(timeout=AT_MOST)
    assert process.returncode == 0, stderr
    assert "Traceback" not in stderr


def test_ctrl_c_does_not_strike_where_something_is_half_done(tmp_path, monkeypatch):
    """Not while a run is being kept; then no other begins, and no process is left."""
    monkeypatch.setenv("FAKE_TRACE", str(tmp_path / "trace"))
    jobs = [
        Job(module="reproduce_fakes", table="good", row="steady", seed=seed, quick=False)
        for seed in range(3)
    ]
    before, kept = signal.getsignal(signal.SIGINT), []

    def finished(job, outcome):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        kept.append((job.seed, outcome.figures["MAE"]))

    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, processes=1, finished=finished, progress=lambda *_: None)
    assert kept == [(0, 0.7)]
    assert (tmp_path / "trace").read_text().split() == ["0"]
    assert signal.getsignal(signal.SIGINT) is before
    assert multiprocessing.active_children() == []
